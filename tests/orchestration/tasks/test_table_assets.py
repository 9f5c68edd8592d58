"""One asset for each replicated table and site: a link that changed the table there updates it, and no other does."""

import re
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.asset import AssetDagRunQueue, AssetEvent, AssetModel
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.utils.session import create_session
from sqlalchemy import delete, select, update

from concord.orchestration.tasks.table_assets import table_asset
from tests.conftest import PROJECT
from tests.given.airflow_pair import Pair

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

#: The DAG of the example in docs/events.md.
FOLLOWER = "refresh_report"


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


def test_a_dag_that_is_scheduled_on_a_table_as_the_document_says_is_queued_by_its_link_alone(
    pair: Pair, tmp_path: Path
) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (PROJECT / "docs" / "events.md").read_text(), re.DOTALL)
    (tmp_path / "follower.py").write_text(f"# airflow dag\n{example}")
    bag = DagBag(str(tmp_path), bundle_path=tmp_path, bundle_name="followers")
    assert bag.import_errors == {}
    with create_session() as session:
        session.add(DagBundleModel(name="followers"))
        session.flush()
        sync_bag_to_db(bag, "followers", None, session=session)
        session.execute(update(DagModel).where(DagModel.dag_id == FOLLOWER).values(is_paused=False))
    try:
        pair.capetown.run("UPDATE flights SET delay = 10 WHERE flight = 1")
        pair.london.run("UPDATE airlines SET name = 'changed'")
        pair.run()
        assert queued() == []
        pair.london.run("UPDATE flights SET delay = 20 WHERE flight = 2")
        pair.run()
        assert queued() == [FOLLOWER]
    finally:
        with create_session() as session:
            session.execute(delete(AssetDagRunQueue))
            session.execute(delete(DagModel).where(DagModel.dag_id == FOLLOWER))


def queued() -> list[str]:
    """The DAGs that Airflow starts as soon as its scheduler looks."""
    with create_session() as session:
        return list(session.scalars(select(AssetDagRunQueue.target_dag_id)))


def test_names_that_are_no_part_of_an_address_are_quoted() -> None:
    assert table_asset("london", 'public.Zürich "gate" #1').uri == (
        "concord://london/public.Z%C3%BCrich%20%22gate%22%20%231"
    )
