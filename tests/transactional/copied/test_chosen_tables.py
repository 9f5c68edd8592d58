"""Tables that a person names for a copy: `replicate NAME --initialize --table`, or the DAG's parameter `tables`."""

from typing import Any

import pytest

from concord.jobs.replication import ReplicationDefinition
from concord.messages.errors import ParametersRefused
from concord.orchestration.tasks import parameters
from concord.orchestration.tasks.replication_copy import InitializeReplicationParameters
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name


def changes(tables: list[str] | None, **settings: Any) -> dict[str, Any]:
    how = {"name": "bank", "replication_set": "accounts", "publisher": "london", "subscriber": "capetown"}
    carried = [ReplicatedTable(table=parse_table_name(f"public.{name}")) for name in ("account", "movement")]
    definition = ReplicationDefinition(**how, tables=tuple(carried), **settings)
    conf = {"replace": True} if tables is None else {"replace": True, "tables": tables}
    return parameters.read(InitializeReplicationParameters, conf).changes(definition)


def test_without_a_name_all_tables_are_copied() -> None:
    assert changes(None) == {"initialize": True, "replace": True, "copied": frozenset()}
    assert changes(None, updates="both")["copied"] == frozenset()


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_named_tables_are_copied_alone(capture: str) -> None:
    assert changes(["public.movement"], capture=capture)["copied"] == {"public.movement"}


def test_a_table_that_is_not_replicated_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        ParametersRefused, match=r"'public\.item'; there are public\.account, public\.movement"
    ):
        changes(["public.item"])


def test_no_table_at_all_is_refused() -> None:
    with pytest.raises(ParametersRefused, match="tables"):
        changes([])


@pytest.mark.parametrize(
    "settings",
    [{"updates": "both"}, {"updates": "queued"}, {"procedures": (parse_table_name("public.transfer"),)}],
)
def test_where_tables_cannot_be_copied_apart_all_of_them_are_the_remedy(settings: dict[str, Any]) -> None:
    with pytest.raises(
        ParametersRefused, match=r"bank copies all of its tables together.*initialize it without"
    ):
        changes(["public.account"], **settings)
