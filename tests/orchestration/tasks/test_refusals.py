"""Runs that are refused or fail: nothing is written, the lease is free again, the start time is as it was."""

import re

import pendulum
import pytest
from airflow.sdk.api.datamodels._generated import DagRunType
from airflow.sdk.exceptions import AirflowFailException

from concord.messages.errors import ParametersRefused
from concord.orchestration.tasks import parameters, run_steps
from concord.orchestration.tasks.run_plan import SynchronizeParameters
from concord.repository import status
from tests.given.airflow_pair import NAME, Pair, states


@pytest.mark.airflow
def test_a_run_with_an_unknown_parameter_fails_before_it_takes_the_lease(pair: Pair) -> None:
    # A typo in plan_only would otherwise be a run that writes
    [before] = status.synchronizations(pair.repository)
    run = pair.run(conf={"plan_olny": True})
    assert run.state == "failed"
    assert states(run)["begin"] == "failed"
    assert states(run)["forward_link"] == "upstream_failed"
    assert status.synchronizations(pair.repository) == [before]
    assert status.last_runs(pair.repository) == []


@pytest.mark.airflow
def test_a_failed_link_makes_a_failed_run_and_frees_the_lease(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S1-21
    monkeypatch.setenv("AIRFLOW_CONN_CAPETOWN_APPLIER", '{"conn_type": "postgres", "host": "127.0.0.1"}')
    run = pair.run()
    assert run.state == "failed"
    expected = {"begin": "success", "forward_link": "failed", "reverse_link": "upstream_failed"}
    assert states(run) == {**expected, "complete": "upstream_failed", "release": "success"}
    [recorded] = status.last_runs(pair.repository)
    assert recorded.state == "failed"
    assert "connection 'capetown_applier' has no schema" in str(recorded.message)
    [synchronization] = status.synchronizations(pair.repository)
    assert (synchronization.owner, synchronization.last_started_at) == (None, None)


@pytest.mark.airflow
@pytest.mark.spark
def test_a_table_whose_columns_changed_is_left_out_by_both_links_and_the_run_fails_at_its_end(
    pair: Pair,
) -> None:
    # Visible, and no reason for the other tables to wait
    pair.london.run("ALTER TABLE flights ADD COLUMN extra text; UPDATE airlines SET name = 'in London'")
    pair.capetown.run("INSERT INTO airlines VALUES ('SA', 'in Cape Town'); UPDATE flights SET delay = 9")
    run = pair.run()
    expected = {"begin": "success", "forward_link": "success", "reverse_link": "success"}
    assert (run.state, states(run)) == ("failed", {**expected, "complete": "failed", "release": "success"})
    names = [("SA", "in Cape Town"), ("UA", "in London")]
    assert [site.run("TABLE airlines ORDER BY 1") for site in (pair.london, pair.capetown)] == [names] * 2
    assert pair.london.run("SELECT DISTINCT delay FROM flights") == [(0,)]
    [recorded] = status.last_runs(pair.repository)
    difference = (
        "public.flights: column extra exists at london but not at capetown; 1 other tables were carried"
    )
    for transmission in status.transmissions(pair.repository, recorded.id):
        assert (transmission.state, transmission.error_code) == ("failed", "tables_stopped")
        assert (transmission.acquired, transmission.applied) == (1, 1)
        assert str(transmission.error_message).endswith(difference)
        assert [each["table"] for each in transmission.tables if each["stopped"]] == ["public.flights"]
    assert recorded.state == "failed"
    assert "(column extra text was added)" in str(recorded.message)
    [synchronization] = status.synchronizations(pair.repository)
    assert (synchronization.owner, synchronization.last_started_at) == (None, None)


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"plan_olny": True}, "unknown parameter 'plan_olny'; did you mean plan_only?"),
        (
            {"full": True},
            "unknown parameter 'full'; there are direction, tables, plan_only, since, until, approve",
        ),
        ({"since": 7}, "parameter since"),
        ({"direction": "sideways"}, "parameter direction"),
        ({"tables": []}, "parameter tables"),
        ({"tables": "public.flights"}, "parameter tables"),
        ({"plan_only": "yes"}, "parameter plan_only"),
        ({"approve": 1}, "parameter approve"),
    ],
)
def test_what_a_parameter_does_not_mean_is_refused_by_name(conf: dict[str, object], message: str) -> None:
    with pytest.raises(ParametersRefused, match=message.replace("?", r"\?")):
        parameters.read(SynchronizeParameters, conf)


def test_a_table_that_the_synchronization_does_not_carry_is_refused() -> None:
    asked = parameters.read(SynchronizeParameters, {"tables": ["public.fligths"]})
    with pytest.raises(ParametersRefused, match=r"there is no table 'public\.fligths'"):
        asked.check_tables(["public.flights"])


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"until": "2026-03-01T00:00:00Z"}, "parameter until: it ends an interval; say since when"),
        ({"since": "yesterday"}, "parameter since: 'yesterday' is no moment; write 2026-03-01T00:00:00Z"),
        ({"since": "2026-03-01T00:00:00"}, "parameter since: '2026-03-01T00:00:00' has no time zone"),
        (
            {"since": "2026-03-02T00:00:00Z", "until": "2026-03-02T02:00:00+02:00"},
            "the interval from 2026-03-02T00:00:00+00:00 to 2026-03-02T02:00:00+02:00 is empty",
        ),
    ],
)
def test_an_interval_that_is_none_is_refused(conf: dict[str, object], message: str) -> None:
    with pytest.raises(ParametersRefused, match=re.escape(message)):
        parameters.read(SynchronizeParameters, conf).interval(pendulum.datetime(2026, 3, 3))


def test_a_backfill_run_without_a_data_interval_or_with_another_one_is_refused_for_good() -> None:
    class Backfill:
        dag_id, run_id, run_type, conf, start_date = "", "a backfill", DagRunType.BACKFILL, None, None
        data_interval_start = data_interval_end = None

    with pytest.raises(AirflowFailException, match="this backfill run has no data interval"):
        run_steps.begin(NAME, {"dag_run": Backfill()})  # type: ignore[typeddict-item]
    Backfill.conf = {"since": "2026-03-01T00:00:00Z"}  # type: ignore[assignment]
    with pytest.raises(AirflowFailException, match="a backfill run has its own data interval"):
        run_steps.begin(NAME, {"dag_run": Backfill()})  # type: ignore[typeddict-item]
