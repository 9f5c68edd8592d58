"""A hook adds rows whose columns get numbers by default: `provision` gives the applier what that takes."""

import itertools

import pytest

from concord.databases import provisioning
from tests.given.hooked_pair import BOOKS, COLUMNS, audit, hook, hooked_tables
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

NUMBERED = {
    "an identity": "n int GENERATED ALWAYS AS IDENTITY",
    "serial": "n serial",
    "a sequence of another schema": 'n int DEFAULT nextval(\'"Others"."Counter"\')',
    "two sequences": 'n serial, also bigint DEFAULT 1 + nextval(\'"Others"."Counter"\')',
    "a key": "n bigserial PRIMARY KEY",
}
OTHERS = ('CREATE SCHEMA "Others"', 'CREATE SEQUENCE "Others"."Counter"')


def hooked(replicated: Make, numbered: str, capture: str) -> Replicated:
    table = f"CREATE TABLE audit ({numbered}, book int, operation text, old numeric, new numeric)"
    sites = replicated((*BOOKS, *OTHERS, table), "public.book", capture=capture)
    sites.tables = hooked_tables(sites.tables, {"capetown": hook("audits", *COLUMNS)})
    return sites


CASES = list(zip(NUMBERED.values(), itertools.cycle(["log", "triggers"]), strict=False))


@pytest.mark.parametrize(("numbered", "capture"), CASES)
def test_rows_with_numbers_of_a_sequence_are_added(replicated: Make, numbered: str, capture: str) -> None:
    sites = hooked(replicated, numbered, capture)
    sites.provision()
    assert provisioning.check(sites.installations()) == []
    sites.initialize(replace=True)
    sites.london.run("UPDATE book SET price = 11 WHERE id = 1")
    sites.run()
    assert audit(sites.capetown) == [(1, "update", 10, 11)]


def test_a_right_that_was_taken_is_named_before_a_run_needs_it(replicated: Make) -> None:
    sites = hooked(replicated, NUMBERED["serial"], "log")
    sites.provision()
    sites.capetown.run("REVOKE ALL ON SEQUENCE audit_n_seq FROM link_applier")
    (line,) = provisioning.check(sites.installations())
    assert line.startswith(
        "capetown: the login link_applier lacks USAGE on sequence public.audit_n_seq; GRANT USAGE"
    )
    assert (
        sites.capetown.value("SELECT has_sequence_privilege('link_applier', 'audit_n_seq', 'SELECT')")
        is False
    )


def test_a_sequence_whose_column_the_hook_gives_needs_no_right(replicated: Make) -> None:
    sites = hooked(replicated, "n serial", "log")
    sites.tables = hooked_tables(sites.tables, {"capetown": hook("audits", "n", *COLUMNS)})
    sites.provision()
    assert (
        sites.capetown.value("SELECT has_sequence_privilege('link_applier', 'audit_n_seq', 'USAGE')") is False
    )
