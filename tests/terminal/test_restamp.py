"""`python -m concord restamp` at a terminal: what it says before and after, and when it leaves a row alone."""

import contextlib

import pytest

from concord.databases.postgresql.upkeep.restamped_table import RestampedTable
from concord.orchestration.leases import keeping
from concord.repository.status import synchronizations
from tests.given.airflow_pair import CONFIGURATION, NAME, Pair, states
from tests.given.typed_commands import Terminal

IN_2099 = 4_070_908_800_000_000  #: µs


def edit_in_2099(pair: Pair, rows: int) -> None:
    pair.london.run(f"UPDATE concord.site SET stamp_floor = {IN_2099}")
    pair.london.run(f"UPDATE flights SET delay = 10 WHERE flight <= {rows}")
    pair.london.run("UPDATE concord.site SET stamp_floor = 0")


def holders(pair: Pair) -> dict[str, str | None]:
    return {each.name: each.owner for each in synchronizations(pair.repository)}


TWO_SYNCHRONIZATIONS = f"""{CONFIGURATION.partition("replication_sets:")[0]}\
replication_sets:
  flights: {{tables: [{{table: public.flights}}]}}
  airlines: {{tables: [{{table: public.airlines}}]}}
synchronizations:
  airlines: {{replication_set: airlines, source: london, target: capetown, schedule: "*/5 * * * *"}}
  {NAME}: {{replication_set: flights, source: london, target: capetown, schedule: "*/5 * * * *"}}
"""
STAMPS = 'SELECT flight, changed_at FROM concord."public.flights"'


@pytest.mark.airflow
def test_it_is_refused_while_a_synchronization_of_the_site_runs_and_writes_nothing(
    pair: Pair, terminal: Terminal
) -> None:
    """A run could carry the old version away, after the other sites were asked what they have seen."""
    pair.path.write_text(TWO_SYNCHRONIZATIONS)
    edit_in_2099(pair, 1)
    before = pair.london.run(STAMPS)
    keeping.take(pair.repository, NAME, "a run")
    answer = terminal("restamp", "london")
    assert answer.status == 1
    assert answer.err.startswith(f"Synchronization '{NAME}' is being run by a run since ")
    assert "Wait for that run" in answer.err
    assert answer.err.count("\n") == 1
    assert pair.london.run(STAMPS) == before
    assert holders(pair) == {NAME: "a run", "airlines": None}, "the lease that was free is free again"
    assert terminal("restamp", "london", "--dry-run").status == 0
    keeping.give_back(pair.repository, NAME, "a run")
    assert terminal("restamp", "london", "--table", "public.airlines").status == 0
    assert holders(pair) == {NAME: None, "airlines": None}


@pytest.mark.airflow
@pytest.mark.parametrize("end", [KeyboardInterrupt, RuntimeError])
def test_its_leases_are_free_again_on_every_way_out(
    pair: Pair, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, end: type[BaseException]
) -> None:
    edit_in_2099(pair, 1)
    held: list[str | None] = []

    def ends(*about: object) -> None:
        held.extend(holders(pair).values())
        raise end

    monkeypatch.setattr(RestampedTable, "_elsewhere", ends)
    with contextlib.suppress(end):
        terminal("restamp", "london")
    assert len(held) == 1, "one lease, which it holds while it looks"
    assert held[0]
    assert holders(pair) == {NAME: None}
    monkeypatch.undo()


@pytest.mark.airflow
def test_all_rows_are_stamped_and_counted_and_the_first_are_shown(pair: Pair, terminal: Terminal) -> None:
    edit_in_2099(pair, 5)
    done = terminal("restamp", "london", "--limit", "2")
    assert done.status == 0
    assert done.out.count("2099-01-01 00:00:00 UTC") == 2
    assert done.out.endswith("and 3 more; raise --limit, or choose by --table\n5 of 5 rows stamped anew.\n")


@pytest.mark.airflow
def test_a_row_from_the_future_is_listed_stamped_anew_and_carried(pair: Pair, terminal: Terminal) -> None:
    edit_in_2099(pair, 1)
    assert set(states(pair.run()).values()) == {"success"}
    assert "stamped 2099-01-01" in terminal("waiting", "list").out

    foreseen = terminal("restamp", "london", "--dry-run")
    assert foreseen.status == 0
    assert "Rows that would be stamped anew at london" in foreseen.out
    assert "2099-01-01 00:00:00 UTC" in foreseen.out
    assert foreseen.out.endswith("1 of 1 row would be stamped anew.\n")
    assert terminal("restamp", "capetown").out == (
        "0 of 0 rows stamped anew: no version at capetown is stamped in the future.\n"
    )
    done = terminal("restamp", "london", "--table", "public.flights")
    assert (done.status, done.out.splitlines()[-1]) == (0, "1 of 1 row stamped anew.")
    pair.run()
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(10,)]
    assert "2099" not in terminal("waiting", "list").out


@pytest.mark.airflow
def test_a_version_that_a_sites_applier_has_made_up_is_shown_by_every_command_and_mended(
    pair: Pair, terminal: Terminal
) -> None:
    poison = '{"london#1": [9223372036854775807, 0], "x": "y"}'
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight <= 2")
    pair.london.run(
        f"UPDATE concord.\"public.flights\" SET changed_at = 9223372036854775807, vector = '{poison}',"
        " position = pg_current_xact_id() WHERE flight = 1"
    )
    assert terminal("status").status == 0
    assert set(states(pair.run()).values()) == {"success"}
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 2") == [(10,)]
    assert "public.flights" in terminal("waiting", "list").out
    assert terminal("status").status == 0
    assert "9999-12-29 00:00:00 UTC" in terminal("restamp", "london", "--dry-run").out
    assert terminal("restamp", "london").out.endswith("1 of 1 row stamped anew.\n")
    pair.run()
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(10,)]
    assert terminal("waiting", "list").out.count("public.flights") == 0


@pytest.mark.airflow
def test_unknown_names_are_wrong_command_lines(pair: Pair, terminal: Terminal) -> None:
    for words, said in (
        (("oslo",), "there is no site 'oslo'"),
        (("london", "--table", "public.gates"), "there is no table that london shares 'public.gates'"),
    ):
        answer = terminal("restamp", *words)
        assert answer.status == 2
        assert answer.err.startswith(said)


@pytest.mark.airflow
def test_updates_that_find_no_row_stand_in_the_result_and_in_status(pair: Pair, terminal: Terminal) -> None:
    """S0-48, T10."""
    pair.capetown.run(
        "SET session_replication_role = replica; ALTER TABLE flights DISABLE TRIGGER zz_concord_capture;"
        " DELETE FROM flights WHERE flight = 3; ALTER TABLE flights ENABLE REPLICA TRIGGER zz_concord_capture"
    )
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 3")
    run = pair.run()
    result = run.get_task_instance("forward_link").xcom_pull(task_ids="forward_link")
    assert (result["applied"], result["inserted_for_update"]) == (1, 1)
    shown = terminal("status").out
    assert "Updates that found no row at their target" in shown
    [line] = [line for line in shown.splitlines() if NAME in line and "capetown" in line and " 1 " in line][
        :1
    ]
    assert line
