"""`compare__<name>` and `python -m concord compare`: what differs, and its repair, as a person asks for it."""

import re
import shlex

import pytest
from sqlalchemy import text

from concord.databases.postgresql.capture import triggers
from concord.orchestration.leases import keeping
from concord.repository.comparisons import differences
from concord.repository.status import synchronizations
from tests.conftest import PROJECT
from tests.given.airflow_pair import NAME, Pair, Site, states
from tests.given.typed_commands import Terminal

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

DAG_ID = f"compare__{NAME}"
FLIGHT_1 = "SELECT note FROM flights WHERE flight = 1"


def damage(site: Site, statement: str) -> None:
    site.run("ALTER TABLE flights DISABLE TRIGGER USER")
    site.run(statement)
    site.run(triggers.enabling("flights"))


def test_a_comparison_is_a_success_that_says_what_differs_and_a_repair_mends_it(pair: Pair) -> None:
    damage(pair.capetown, "UPDATE flights SET note = 'a secret of the row' WHERE flight = 1")
    found = pair.run(DAG_ID)
    assert states(found) == {"compare": "success"}
    summary = found.get_task_instance("compare").xcom_pull(task_ids="compare")
    assert (summary["verdict"], summary["differences"]) == ("the sites differ", 1)
    assert "secret" not in str(summary), "rows stay in the repository"
    [difference] = differences(pair.repository, summary["comparison"])
    assert (difference.key, difference.target_row) == (
        ("1",),
        {"flight": "1", "delay": "0", "note": "a secret of the row"},
    )

    repaired = pair.run(DAG_ID, conf={"repair": "apply", "tables": ["public.flights"]})
    assert repaired.state == "success"
    assert pair.capetown.run(FLIGHT_1) == [("as loaded",)]
    with pair.repository.connect() as connection:
        logged = connection.execute(text("SELECT resolver, loser_site, loser_row FROM conflict")).all()
    assert [(row[0], row[1], "secret" in row[2]) for row in logged] == [("repair", "capetown", True)]
    assert [each.owner for each in synchronizations(pair.repository)] == [None], "the lease is given back"


def test_a_repair_waits_for_the_run_that_holds_the_lease(pair: Pair, terminal: Terminal) -> None:
    damage(pair.capetown, "DELETE FROM flights WHERE flight = 1")
    keeping.take(pair.repository, NAME, "a synchronization")
    refused = terminal("compare", NAME, "--repair", "apply")
    assert (refused.status, pair.capetown.run(FLIGHT_1)) == (1, [])
    assert "is being run by a synchronization" in refused.err


def test_an_unknown_parameter_is_refused(pair: Pair) -> None:
    """Airflow itself refuses values that a parameter does not take, but lets unknown ones through."""
    assert pair.run(DAG_ID, conf={"repairs": "apply"}).state == "failed"


def test_the_worked_example_of_the_documents(pair: Pair, terminal: Terminal) -> None:
    """docs/compare.md: somebody wrote to Cape Town with the triggers disabled; three commands find and mend it."""
    text = (PROJECT / "docs" / "compare.md").read_text()
    [block] = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    compares, plans, repairs = (shlex.split(line)[4:] for line in block.splitlines())
    damage(pair.capetown, "UPDATE flights SET note = 'damaged' WHERE flight = 1")
    assert terminal(*compares).status == 1
    planned = terminal(*plans)
    assert planned.status == 1, planned.err
    printed = [" ".join(line.split()) for line in planned.out.replace("│", " ").splitlines()]
    shown = [" ".join(line.split()) for line in text.splitlines()]
    found = [line for line in printed if "note=damaged" in line]
    assert found == [
        "public.flights 1 content note=as loaded [never changed] note=damaged [never changed]"
        " restamp: london to capetown, site priority and name"
    ]
    assert any(line.startswith(found[0][:90]) for line in shown), "as the document prints it"
    assert pair.capetown.run(FLIGHT_1) == [("damaged",)]
    repaired = terminal(*repairs)
    assert repaired.status == 0, repaired.err
    assert pair.capetown.run(FLIGHT_1) == [("as loaded",)]
    assert terminal("compare", NAME, "--table", "public.no").status == 2
