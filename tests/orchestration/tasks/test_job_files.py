"""The files that hold logins: nobody else may read them, and nothing of them stays."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from concord.messages.errors import ConcordError
from concord.orchestration.tasks.job_files import job_files
from spark_jobs.application import read_job
from tests.conftest import PROJECT


class Job(BaseModel):
    """A link's orders, as far as this is about."""

    password: str = "opens nothing"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go; whatever the mask of the user is."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = os.umask(0)
    yield tmp_path
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_job_is_a_file_that_its_owner_alone_can_read_in_a_directory_that_he_alone_can_enter(
    place: Path,
) -> None:
    with job_files(Job(), Job) as files:
        assert mode(files.job) == 0o600
        assert mode(files.job.parent) == 0o700
        assert files.report.parent == files.job.parent
        assert files.library().parent == files.job.parent
    assert list(place.iterdir()) == []


def test_nothing_stays_when_the_submission_fails(place: Path) -> None:
    with pytest.raises(ValueError, match="on purpose"), job_files(Job(), Job) as files:  # noqa: PT012
        assert files.job.exists()
        raise ValueError("on purpose")
    assert list(place.iterdir()) == []


def test_who_has_read_a_job_has_removed_it_and_one_that_others_could_read_is_refused(place: Path) -> None:
    with job_files(Job(), Job) as files:
        files.job.chmod(0o640)
        with pytest.raises(ConcordError, match="readable by others"):
            read_job(files.job, Job)
        files.job.chmod(0o600)
        assert read_job(files.job, Job) == Job()
        assert not files.job.exists()


HELD = """
import sys, tempfile, time
from pydantic import BaseModel
from concord.orchestration.tasks.job_files import job_files
tempfile.tempdir = sys.argv[1]
class Job(BaseModel):
    password: str = "opens nothing"
with job_files(Job(), Job) as files:
    print(files.job.parent, flush=True)
    time.sleep(60)
"""


def submitting(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """A task that waits for its application, and the directory of its job."""
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, str(place)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}"},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def an_hour_ago(directory: Path) -> None:
    os.utime(directory, (time.time() - 3600,) * 2)


def test_what_a_killed_task_left_goes_with_the_next_submission_and_a_living_ones_stays(place: Path) -> None:
    (killed, left), (living, held) = submitting(place), submitting(place)
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait(10)
        assert (left / "job.json").exists()
        for each in (left, held):
            an_hour_ago(each)
        with job_files(Job(), Job) as files:
            assert not left.exists()
            assert (held / "job.json").exists()
            assert files.job.exists()
    finally:
        for process in (killed, living):
            process.kill()
            process.wait(10)
            assert process.stdout is not None
            process.stdout.close()


def test_only_directories_of_its_own_are_cleared_up(place: Path) -> None:
    kept = place / "kept"
    kept.mkdir()
    (place / "concord-job-link").symlink_to(kept)
    (place / "concord-jobs").mkdir()
    (place / "concord-job-new").mkdir()  # whoever makes it is about to lock it
    with job_files(Job(), Job):
        pass
    assert {each.name for each in place.iterdir()} == {
        "kept",
        "concord-job-link",
        "concord-jobs",
        "concord-job-new",
    }
