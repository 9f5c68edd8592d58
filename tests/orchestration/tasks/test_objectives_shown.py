"""How links stand to their objectives: `python -m concord status`, and docs/monitoring.md (S2-10, S2-11)."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from concord.databases import provisioning
from concord.orchestration.tasks.jobs import installations
from tests.conftest import PROJECT
from tests.given.airflow_pair import CONFIGURATION, NAME, Pair
from tests.given.mailbox import Mailbox
from tests.given.objective_mails import AN_HOUR_AGO, Wants, box, long_ago, taken, wants
from tests.given.replicated_bookings import REPLICATIONS, configured
from tests.given.typed_commands import Terminal

__all__ = ["box", "wants"]
pytestmark = pytest.mark.airflow

FORWARD, REVERSE = f"{NAME}/forward", f"{NAME}/reverse"
BOOKINGS = "replicate__bookings_to_capetown"
Bookings = Callable[[str], None]


def test_the_example_of_the_page_is_what_happens(
    pair: Pair, terminal: Terminal, wants: Wants, box: Mailbox
) -> None:
    """S2-11: docs/monitoring.md, with `status` for a program beside it."""
    page = (PROJECT / "docs" / "monitoring.md").read_text()
    [settings] = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    pair.path.write_text(CONFIGURATION.partition("synchronizations:")[0] + settings)
    example = page.partition("### An example")[2].partition("\n## ")[0]
    said, mails = "", list[str]()
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", example, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if kind == "sql" and not line.startswith("--"):
                pair.london.run(line)
            elif kind == "text":
                assert line in said.splitlines()
            elif line.startswith("$ airflow"):
                assert pair.run(line.split()[-1]).state == "success"
                mails += taken(box)
            elif kind == "console":
                answer = terminal("status")
                said = answer.err
                assert answer.status == (1 if said else 0)
    assert mails == re.findall(r"`(\S+ \w+s its lag(?: again)?)`", example)
    assert said == ""


def test_status_shows_what_was_measured_what_is_now_and_what_is_wanted(
    pair: Pair, terminal: Terminal, wants: Wants, box: Mailbox
) -> None:
    """S2-10, S2-11."""
    assert shown(terminal) == (0, [])
    wants("lag: 30 min, rows_per_second: 1")
    nothing = {"lag": None, "rows_per_second": None, "missed": [], "missed_since": None}
    wanted = {"lag_wanted": 1800, "rows_per_second_wanted": 1}
    for _ in range(2):
        status, told = shown(terminal)
        assert status == 0
        for each, link in zip(told, (FORWARD, REVERSE), strict=True):
            assert each.pop("lag_now") == 0, "nothing waits since both sites were initialized"
            assert each == {"link": link, **nothing, **wanted}
    pair.london.run("UPDATE flights SET delay = 10")
    assert pair.run().state == "success"
    status, [forward, reverse] = shown(terminal)
    assert (status, forward["missed"], reverse["missed"]) == (0, [], [])
    assert 0 < forward["lag"] < 1800
    assert (forward["lag_now"], forward["rows_per_second"] > 1) == (0, True)
    pair.london.run("UPDATE flights SET delay = 20")
    pair.london.run(AN_HOUR_AGO)
    long_ago(pair)
    status, [forward, reverse] = shown(terminal)
    assert (status, forward["missed"], reverse["missed"]) == (1, ["lag"], [])
    assert 3600 <= forward["lag_now"] < 7200
    assert forward["missed_since"] is None, "nobody has heard of it so far"
    assert pair.run("log_purge").state == "success"
    _, [forward, _] = shown(terminal)
    assert forward["missed_since"]
    assert "misses its objective: lag" in terminal("status").err


def test_a_replication_is_measured_and_told_of_as_well(
    unprovisioned: Pair, terminal: Terminal, box: Mailbox, bookings: Bookings
) -> None:
    """S2-10, S2-11."""
    link = "bookings_to_capetown/forward"
    bookings("lag: 30 min, rows_per_second: 1")
    unprovisioned.london.run("UPDATE bookings SET name = 'new'")
    status, [told] = shown(terminal)
    assert (status, told["link"], told["lag"], told["missed"]) == (0, link, None, [])
    assert told["lag_now"] >= 0
    assert unprovisioned.run(BOOKINGS).state == "success"
    _, [told] = shown(terminal)
    assert 0 < told["lag"] < 1800
    assert told["rows_per_second"] > 1
    assert taken(box) == []

    bookings("lag: 1 ms")
    unprovisioned.london.run("UPDATE bookings SET name = 'newer'")
    for _ in range(2):
        assert unprovisioned.run("log_purge").state == "success"
    assert taken(box) == [f"{link} misses its lag"]
    assert unprovisioned.run(BOOKINGS).state == "success"
    status, [told] = shown(terminal)
    assert (status, told["missed"]) == (1, ["lag"])
    assert unprovisioned.run(BOOKINGS).state == "success"
    assert taken(box) == [f"{link} keeps its lag again"], "nothing waited"
    assert shown(terminal)[0] == 0


@pytest.fixture
def bookings(unprovisioned: Pair) -> Iterator[Bookings]:
    """Writes an objective into the configuration of a replication that was initialized."""
    for site in (unprovisioned.london, unprovisioned.capetown):
        site.run("CREATE TABLE bookings (id integer PRIMARY KEY, name text)")
    unprovisioned.london.run("INSERT INTO bookings SELECT n, 'name ' || n FROM generate_series(1, 5) n")

    def write(objective: str) -> None:
        wanted = f"objective: {{{objective}, through: objective_alerts}},"
        pair = configured(unprovisioned, REPLICATIONS.replace("schedule:", f"{wanted} schedule:"))
        provisioning.provision(installations(pair.configuration))
        if unprovisioned.capetown.run("SELECT id FROM bookings") == []:
            assert pair.run(BOOKINGS.replace("replicate", "initialize")).state == "success"

    yield write
    unprovisioned.london.drop_slots()


def shown(terminal: Terminal) -> tuple[int, list[dict[str, Any]]]:
    """The exit status of `status`, and its objectives."""
    answer = terminal("status", "--json")
    document = json.loads(answer.out[answer.out.index("{\n") :])
    codes = [each["code"] for each in document["problems"]]
    assert set(codes) <= {"objective"}
    return answer.status, document["objectives"]
