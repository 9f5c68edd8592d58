"""`python -m concord restamp` at a terminal: what it says before and after, and when it leaves a row alone."""

import pytest

from tests.orchestration.conftest import NAME, Pair, states
from tests.orchestration.terminal import Terminal

IN_2099 = 4_070_908_800_000_000  #: µs


@pytest.mark.airflow
def test_a_row_from_the_future_is_listed_stamped_anew_and_carried(pair: Pair, terminal: Terminal) -> None:
    pair.london.run(f"UPDATE concord.site SET stamp_floor = {IN_2099}")
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    pair.london.run("UPDATE concord.site SET stamp_floor = 0")
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
