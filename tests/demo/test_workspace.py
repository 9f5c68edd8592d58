"""The demo's directory: never another's, for one demo at a time, and nothing of it is left."""

import socket

import pytest

from demo import workspace
from demo.workspace import Unusable


def test_a_directory_with_anything_else_in_it_is_refused_and_stays_as_it_is(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(Unusable, match="is not empty and not a demo's"), workspace.workspace(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_second_demo_in_the_same_directory_is_refused(tmp_path):
    directory = tmp_path / "demo"
    with workspace.workspace(directory):
        (directory / "mine").touch()
        with pytest.raises(Unusable, match="Another demo is at work"), workspace.workspace(directory):
            pass
        assert (directory / "mine").exists()


def test_what_an_earlier_demo_left_is_gone_when_the_next_one_begins(tmp_path):
    with workspace.workspace(tmp_path):
        (tmp_path / "airflow").mkdir()
        (tmp_path / "airflow" / "airflow.db").touch()
    with workspace.workspace(tmp_path):
        assert not (tmp_path / "airflow").exists()


def test_a_socket_that_a_killed_program_left_is_gone_as_well(tmp_path):
    with workspace.workspace(tmp_path), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "spark"))
    with workspace.workspace(tmp_path):
        assert not (tmp_path / "spark").exists()


def test_the_logs_of_a_failed_demo_stay(tmp_path):
    with workspace.workspace(tmp_path):
        for name in ("logs", "airflow"):
            (tmp_path / name).mkdir()
        workspace.clear(tmp_path, but="logs")
        assert (tmp_path / "logs").exists()
        assert not (tmp_path / "airflow").exists()
