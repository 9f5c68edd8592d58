"""The transcripts of docs/ledger.md: typed as they stand there, on two sites, and answered as they say."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.given.airflow_pair import CONFIGURATION, Pair, states
from tests.given.typed_commands import Terminal
from tests.orchestration.file_notifier import TEXT, FileNotifier, connection

DOCUMENT = (PROJECT / "docs" / "ledger.md").read_text()
BLOCK = re.compile(r"```(console|sql|text)\n(.*?)```", re.DOTALL)
ID = re.compile(r"\b[0-9a-f]{12}\b")
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


class Transcript:
    """The lines typed so far, and the meaning of the document's ids."""

    def __init__(self, pair: Pair, terminal: Terminal) -> None:
        self.pair, self.terminal = pair, terminal
        self.said = ""
        self.ids: dict[str, str] = {}

    def sql(self, block: str) -> None:
        site, *lines = block.strip().splitlines()
        for line in lines:
            statement, _, expected = line.partition("-- ")
            answer = getattr(self.pair, site.removeprefix("-- at ")).run(statement)
            assert [str(value) for (value,) in answer] == ([expected] if expected else []), line

    def console(self, block: str) -> None:
        self.said = ""
        for line in block.splitlines():
            words = shlex.split(line.removeprefix("$ "))
            if words[:3] == ["airflow", "dags", "test"]:
                assert set(states(self.pair.run(words[3])).values()) == {"success"}
            else:
                answer = self.terminal(*(self.ids.get(word, word) for word in words[3:]))
                self.said += answer.out + answer.err

    def text(self, block: str) -> None:
        """Every line of the document was printed; ids, moments and the frames of tables aside."""
        printed = [plain(line) for line in self.said.splitlines()]
        for line in map(plain, block.splitlines()):
            found = next((each for each in printed if alike(each) == alike(line)), None)
            assert found is not None, f"{line!r} is not in {printed}"
            printed.remove(found)
            for theirs, ours in zip(ID.findall(line), ID.findall(found), strict=True):
                assert self.ids.setdefault(theirs, ours) == ours


def alike(line: str) -> str:
    return TIME.sub("", ID.sub("", line))


def plain(line: str) -> str:
    return " ".join(re.sub(r"[│┃━─┏┓┡┩└┘┴┬┼┳╇]", " ", line).split())


def blocks() -> Iterator[tuple[str, str]]:
    return ((found[1], found[2]) for found in BLOCK.finditer(DOCUMENT))


@pytest.mark.timeout(300)
def test_the_transcripts_are_what_happens(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """S4-071, S4-072 as well: the first run has two conflicts, and somebody is told by the DAG itself."""
    told = tmp_path / "told"
    notifier = f"{FileNotifier.__module__}.{FileNotifier.__name__}"
    monkeypatch.setenv("AIRFLOW_CONN_CONFLICT_ALERTS", connection(notifier, path=str(told), text=TEXT))
    monkeypatch.setenv("LOGNAME", "ada")
    pair.path.write_text(
        CONFIGURATION.replace('schedule: "', 'notify: {conflicts: 1, through: conflict_alerts}, schedule: "')
    )
    transcript = Transcript(pair, Terminal(monkeypatch, capsys))
    for kind, block in blocks():
        getattr(transcript, kind)(block)

    [message] = told.read_text().splitlines()
    assert message.startswith("2 of "), "once: the second run has none"
    (entry,) = pair.capetown.run("SELECT person, although_changed FROM concord.overturn")
    assert entry == ("ada", False)
    refused = pair.run("overturn_conflict", conf={"conflict": transcript.ids["b7e4ab21c55f"]})
    assert states(refused) == {"overturn": "failed"}
    done = pair.run("overturn_conflict", conf={"conflict": transcript.ids["40c0a3c1e9d2"]})
    assert states(done) == {"overturn": "success"}
    assert pair.capetown.run("SELECT delay, note FROM flights WHERE flight = 3") == [(10, "crew is late")]
