"""`provision --skip-refused` at a terminal: what is left out is named, and the lists to paste are valid."""

import json
from pathlib import Path

import pytest

from concord.configuration import file
from concord.configuration.configuration import load
from concord.configuration.fewer_tables import as_yaml, fewer_tables
from tests.given.airflow_pair import Pair
from tests.given.typed_commands import Terminal

KEYLESS = "ALTER TABLE airlines DROP CONSTRAINT airlines_pkey"
REASON = "has no primary key; add one, or name a unique key in the configuration (key: [...])"


@pytest.mark.airflow
def test_the_tables_that_are_accepted_are_provisioned_and_the_lists_can_be_pasted(
    unprovisioned: Pair, terminal: Terminal
) -> None:
    unprovisioned.capetown.run(KEYLESS)
    refused = terminal("provision")
    assert refused.status == 1
    assert f"capetown: public.airlines {REASON}" in refused.err
    assert unprovisioned.london.run("SELECT to_regclass('concord.site')") == [(None,)]
    done = terminal("provision", "--skip-refused")
    assert done.status == 0
    assert f"capetown: public.airlines {REASON}" in done.err.splitlines()
    assert done.out == (
        "Provisioned: london, capetown.\n"
        f"Left out: public.airlines. Take them out of {unprovisioned.path} before `initialize`: until then it is"
        " refused, and runs carry the other tables and fail for these.\n"
        "The lists of tables without them:\n"
        "\n"
        "replication_sets:\n"
        "  flights:\n"
        "    tables:\n"
        "      - table: public.flights\n"
    )
    assert terminal("provision", "--check").status == 1
    before, _, after = unprovisioned.path.read_text().partition("replication_sets:\n")
    lists = done.out.partition("replication_sets:\n")[2]
    unprovisioned.path.write_text(
        f"{before}replication_sets:\n{lists}{after[after.index('synchronizations:') :]}"
    )
    checked = terminal("provision", "--check")
    assert (checked.status, checked.err) == (0, "")


@pytest.mark.airflow
def test_without_a_refused_table_it_is_provision_itself(unprovisioned: Pair, terminal: Terminal) -> None:
    assert (
        terminal("provision", "--skip-refused").out
        == "Provisioned: london, capetown.\nNothing was refused.\n"
    )


@pytest.mark.airflow
def test_a_document_names_each_table_and_has_the_lists(unprovisioned: Pair, terminal: Terminal) -> None:
    unprovisioned.london.run(KEYLESS)
    answer = terminal("provision", "--skip-refused", "--json")
    told = json.loads(answer.out[answer.out.index("{\n") :])
    assert answer.status == 0
    assert told["left_out"] == {"tables": ["public.airlines"], "snapshots": []}
    assert told["tables"] == {"flights": [{"table": "public.flights"}]}
    assert told["problems"][0]["message"] == f"london: public.airlines {REASON}"


@pytest.mark.airflow
def test_the_same_reason_for_both_tables_is_one_line_a_site(unprovisioned: Pair, terminal: Terminal) -> None:
    for site in (unprovisioned.london, unprovisioned.capetown):
        site.run(KEYLESS)
        site.run("ALTER TABLE flights DROP CONSTRAINT flights_pkey")
    lines = [f"{site}: public.flights and public.airlines: {REASON}" for site in ("london", "capetown")]
    checked = terminal("provision", "--check").err.splitlines()
    assert checked[:2] == lines
    assert terminal("provision").err.splitlines()[1:] == [f"  - {line}" for line in lines]
    all_refused = terminal("provision", "--skip-refused")
    assert all_refused.status == 1
    assert all_refused.err.splitlines()[1:] == [f"  - {line}" for line in lines]


WRITTEN = """\
sites:
  london: {connection: london}
  capetown: {connection: capetown}
replication_sets:
  trips:
    identity: {slots: 10, slot: {london: 1, capetown: 2}}
    tables:
      - table: public.flights
        at: {capetown: ops.flights}
        where: "carrier IN ('UA', 'no')"
        key: [carrier, "no", "Größe"]
        brakes: {deletes: 50%, changes: 7}
      - {table: Public.Airlines, resolvers: [source_wins]}
      - table: '"y"."on"'
      - table: public.planes
  others: {tables: [{table: public.planes}]}
  left_as_it_is: {tables: [{table: public.trains}]}
synchronizations:
  london_capetown: {replication_set: trips, source: london, target: capetown}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = tmp_path / "concord.yaml"
    written.write_text(WRITTEN)
    return written


def test_the_lists_of_sets_that_lose_a_table_are_written_as_they_were(path: Path) -> None:
    written = file.read(path).value
    lists = fewer_tables(written, load(path), {"public.airlines", "public.planes"})
    assert set(lists) == {"trips", "others"}
    assert lists["others"] == []
    pasted = path.with_name("pasted.yaml")
    pasted.write_text(as_yaml(lists))
    document = file.read(pasted)
    assert document.findings == []
    sets = written["replication_sets"]  # type: ignore[index]
    kept = tuple(sets["trips"]["tables"][place] for place in (0, 2))
    assert document.value == {"replication_sets": {"trips": {"tables": kept}, "others": {"tables": ()}}}


def test_the_lists_are_indented_and_plain_where_they_may_be(path: Path) -> None:
    lists = fewer_tables(file.read(path).value, load(path), {"public.flights", "y.on", "public.planes"})
    assert as_yaml({"trips": lists["trips"]}) == (
        "replication_sets:\n"
        "  trips:\n"
        "    tables:\n"
        "      - table: Public.Airlines\n"
        "        resolvers:\n"
        "          - source_wins\n"
    )


def test_a_word_that_yaml_takes_for_another_value_is_quoted(path: Path) -> None:
    lists = {
        "trips": [
            {"table": each} for each in ("no", "Y", "null", "1", "1.5", "~", "a: b", "\u202ex", "public.a")
        ]
    }
    path.write_text(as_yaml(lists))
    document = file.read(path)
    assert document.findings == []
    assert document.value == {"replication_sets": {"trips": {"tables": tuple(lists["trips"])}}}
