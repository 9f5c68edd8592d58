"""One asset for each replicated table and site: a link that changed the table there updates it, and no other does."""

from typing import Any

import pytest
from airflow.models.asset import AssetEvent, AssetModel
from airflow.utils.session import create_session
from sqlalchemy import select

from concord.orchestration.table_assets import table_asset
from tests.orchestration.conftest import NAME, Pair, dag_named

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


def updated(run_id: str) -> dict[str, dict[str, Any]]:
    """The assets that the run's tasks updated, each with what the event says."""
    query = select(AssetModel.uri, AssetEvent.extra).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
    with create_session() as session:
        events = session.execute(query.where(AssetEvent.source_run_id == run_id))
        return {event.uri: event.extra for event in events}


def test_a_link_updates_the_assets_of_the_tables_that_it_changed_and_no_other(pair: Pair) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight IN (1, 2)")
    run = pair.run()
    found = updated(run.run_id)
    assert found.keys() == {"concord://capetown/public.flights"}
    event = found["concord://capetown/public.flights"]
    assert (event["rows"], event["source"]) == (2, "london")
    pair.capetown.run("INSERT INTO airlines VALUES ('AA', 'American')")
    run = pair.run()
    assert updated(run.run_id).keys() == {"concord://london/public.airlines"}


def test_a_change_that_loses_updates_the_winners_table_alone(pair: Pair) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    pair.capetown.run("UPDATE flights SET delay = 20 WHERE flight = 1")
    run = pair.run()
    assert pair.london.run("SELECT delay FROM flights WHERE flight = 1") == [(20,)]
    assert updated(run.run_id).keys() == {"concord://london/public.flights"}


def test_a_plan_and_a_run_without_changes_update_nothing(pair: Pair) -> None:
    assert updated(pair.run().run_id) == {}
    pair.london.run("UPDATE flights SET delay = 10")
    assert updated(pair.run(conf={"plan_only": True}).run_id) == {}


def test_names_that_are_no_part_of_an_address_are_quoted() -> None:
    assert table_asset("london", 'public.Zürich "gate" #1').uri == (
        "concord://london/public.Z%C3%BCrich%20%22gate%22%20%231"
    )


def test_the_dags_page_names_the_assets(pair: Pair) -> None:
    said = dag_named(f"synchronize__{NAME}").doc_md
    assert all(f"`concord://{site}/public.flights`" in said for site in ("london", "capetown"))
