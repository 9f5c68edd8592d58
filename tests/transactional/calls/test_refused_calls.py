"""A call that cannot travel, or cannot be replayed, is refused in one sentence (S4-126, S4-132, S4-134)."""

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.registry import dialect
from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import EntryRefused, ProvisioningRefused
from concord.transactional.upkeep import shown
from concord.values.identifier import parse_table_name
from tests.given.refused_entry import stopped_at
from tests.given.replicated_accounts import Make
from tests.given.replicated_calls import CLOSE_MONTH, let_an_application_call, with_calls
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLICATION, APPLIER

CALL = "SELECT concord.call('public.close_month', '2026-11-30', '2.50')"
ENDS = CLOSE_MONTH.replace("CREATE", "CREATE OR REPLACE").replace("BEGIN\n", "BEGIN\n  COMMIT;\n")


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    return with_calls(replicated)


def told(sites: Replicated) -> str:
    """Why the subscriber does not replay the entry; nothing of it stands."""
    before = sites.capetown.value("SELECT level FROM concord.replay")
    with pytest.raises(EntryRefused) as caught:
        sites.run()
    assert sites.capetown.value("SELECT level FROM concord.replay") == before
    assert sites.capetown.value("SELECT count(*) FROM account WHERE balance <> 100 OR owner = 'x'") == 0
    assert "(call of public.close_month)" in caught.value.message
    return caught.value.message


def test_a_procedure_that_the_subscriber_lacks_or_has_otherwise_stops_the_entry(sites: Replicated) -> None:
    """S4-132, S4-134: nothing of the entry stands, and once it is mended all of it is replayed."""
    sites.london.run(
        f"DO $$BEGIN UPDATE account SET owner = 'x'; PERFORM {CALL.removeprefix('SELECT ')}; END$$"
    )
    capetown, name = sites.capetown, "close_month"
    capetown.run(f"ALTER PROCEDURE {name} RENAME TO another")
    assert "the procedure public.close_month does not exist" in told(sites)
    capetown.run(CLOSE_MONTH.replace("fee numeric", "fee integer"))
    assert 'of the types ["pg_catalog.date", "pg_catalog.int4"]' in told(sites)
    capetown.run(CLOSE_MONTH)
    assert "several routines of that name" in told(sites)
    capetown.run(f"DROP PROCEDURE {name}(date, integer)", f"DROP PROCEDURE {name}")
    capetown.run(CLOSE_MONTH.replace("fee numeric", "INOUT fee numeric"))
    assert "has other parameters than IN" in told(sites)
    capetown.run(
        f"DROP PROCEDURE {name}", "CREATE FUNCTION close_month(date, numeric) RETURNS void LANGUAGE sql AS ''"
    )
    assert "is no procedure" in told(sites)
    capetown.run(f"DROP FUNCTION {name}", "ALTER PROCEDURE another RENAME TO close_month", ENDS)
    assert "ends transactions, and a call is replayed in one" in told(sites)
    capetown.run(CLOSE_MONTH.replace("CREATE", "CREATE OR REPLACE"))
    capetown.run(f"REVOKE EXECUTE ON PROCEDURE {name} FROM PUBLIC, {APPLIER}")
    assert "permission denied for procedure close_month" in told(sites)
    [line] = provisioning.check(sites.installations())
    assert f'GRANT EXECUTE ON PROCEDURE "public"."close_month" TO "{APPLIER}"' in line
    sites.provision()
    assert (sites.run().operations, sites.are_equal()) == (11, True)


def test_a_call_that_fails_is_shown_and_a_person_lets_it_pass(sites: Replicated) -> None:
    """S2-22: skipped, or with quarantine without the operations that fail; and it is on record either way."""
    sites.capetown.run("ALTER TABLE movement ADD CONSTRAINT gains CHECK (amount > 0)")
    both = f"DO $$BEGIN UPDATE account SET owner = 'x' WHERE id = 1; PERFORM {CALL.removeprefix('SELECT ')}; END$$"
    sites.london.run(both, "UPDATE account SET owner = 'y' WHERE id = 2", both)
    for how, renamed in ((Aside.QUARANTINE, 1), (Aside.SKIP, 0)):
        sites.capetown.run("UPDATE account SET owner = 'z'")
        with pytest.raises(EntryRefused) as caught:
            sites.run()
        number = stopped_at(caught.value)
        found = shown(sites.job(), dialect, number)
        assert [(each.table, each.operation) for each in found] == [
            ("public.account", "update"),
            ("public.close_month", "call"),
        ]
        assert found[1].row == {"arguments": ["2026-11-30", "2.50"]}
        aside = SetAside(number=number, how=how, reason="poor", by="ada")
        if how is Aside.QUARANTINE:
            with pytest.raises(EntryRefused):
                sites.run(set_aside=aside)
        else:
            sites.run(set_aside=aside)
        assert sites.capetown.value("SELECT count(*) FROM account WHERE owner = 'x'") == renamed
    told = sites.capetown.rows(
        "SELECT tables, operations -> -1 ->> 'operation' FROM concord.skipped ORDER BY number"
    )
    assert told == [(["public.close_month"], "call"), (["public.account", "public.close_month"], "call")]


def test_no_login_writes_a_mark_but_through_the_call(sites: Replicated) -> None:
    """A forged mark would make the subscriber do what the publisher did not, or hide rows from it."""
    london = sites.london
    let_an_application_call(london)
    london.run(f"CREATE SCHEMA evil AUTHORIZATION {APPLICATION}")
    line = "PL/pgSQL function concord.run_call(text,text,text[]) line 6 at assignment"
    cut = " concord.run_call(text,text,text[])\n"
    begin = "concord.mark_call('public.close_month', '{2026-11-30,1}')"
    forged = f"EXECUTE E'SELECT 1 AS \"\\n{line}\" FROM {begin.replace(chr(39), chr(39) * 2)} x'"
    for statement in (
        "INSERT INTO concord.call (schema_name, name, types, arguments) VALUES ('public', 'close_month', '[]', '[]')",
        "DELETE FROM concord.call",
        f"SELECT {begin}",
        "SELECT concord.end_call('(0,1)')",
        f"DO $$BEGIN PERFORM {begin}; END$$",
        f"DO $$BEGIN {forged}; END$$",
        f'CREATE FUNCTION evil."{line}"() RETURNS record LANGUAGE plpgsql AS $$BEGIN RETURN {begin}; END$$;'
        f' SELECT evil."{line}"()',
        f'CREATE FUNCTION evil."{cut}"() RETURNS record LANGUAGE plpgsql AS $$BEGIN RETURN {begin}; END$$;'
        f' SELECT evil."{cut}"()',
        "CREATE FUNCTION evil.run_call(text, text, text[]) RETURNS record LANGUAGE plpgsql AS"
        f" $$BEGIN RETURN {begin}; END$$;"
        " SELECT evil.run_call('', '', '{}')",
    ):
        with pytest.raises(
            psycopg.errors.InsufficientPrivilege, match=r"only concord\.call|permission denied"
        ):
            london.as_application(statement)
    london.run("REVOKE EXECUTE ON PROCEDURE close_month FROM PUBLIC")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="procedure close_month"):
        london.as_application(CALL)
    assert sites.run().entries == 0


def test_a_search_path_of_the_callers_hides_nothing_behind_a_call(sites: Replicated) -> None:
    """No name in `concord.call` is left to it: types and functions of the caller's do not run between the marks."""
    london = sites.london
    let_an_application_call(london)
    london.run(f"CREATE SCHEMA evil AUTHORIZATION {APPLICATION}")
    london.as_application(
        "CREATE FUNCTION evil.hide() RETURNS boolean LANGUAGE plpgsql AS"
        " $$BEGIN UPDATE public.account SET owner = 'hidden'; RETURN true; END$$",
        "CREATE DOMAIN evil.text AS pg_catalog.text CHECK (evil.hide())",
        "CREATE DOMAIN evil.date AS pg_catalog.date CHECK (evil.hide())",
        "CREATE DOMAIN evil.numeric AS pg_catalog.numeric CHECK (evil.hide())",
        "CREATE FUNCTION evil.format(pg_catalog.text, VARIADIC pg_catalog.text[]) RETURNS pg_catalog.text"
        " LANGUAGE sql AS $$SELECT 'SELECT evil.hide()'$$",
    )
    london.as_application("SET search_path = evil, pg_catalog, public", CALL)
    assert london.value("SELECT count(*) FROM account WHERE owner = 'hidden'") == 0
    assert sites.run().operations == 1
    assert sites.are_equal()


def test_procedures_that_cannot_travel_are_refused_before_anything_is_written(sites: Replicated) -> None:
    """S4-132, at both sites, each with what is wrong; and an applier without the right, with the statement."""
    london, capetown = sites.sites
    london.run("DROP PROCEDURE close_month", CLOSE_MONTH.replace("fee numeric", "OUT fee numeric"))
    capetown.run("DROP PROCEDURE close_month", CLOSE_MONTH.replace("fee numeric", "VARIADIC fee numeric[]"))
    for site in sites.sites:
        site.run("CREATE PROCEDURE any_one(anyelement) LANGUAGE sql AS ''")
    assert sites.settings is not None
    names = ("public.close_month", "public.missing", "public.any_one")
    sites.settings["procedures"] = tuple(map(parse_table_name, names))
    with pytest.raises(ProvisioningRefused) as caught:
        sites.provision()
    assert caught.value.problems == tuple(
        f"{site}: the procedure public.{line}"
        for site in ("london", "capetown")
        for line in (
            "close_month has other parameters than IN, and a call brings nothing back",
            "missing does not exist; create it, or correct its name",
            "any_one has a parameter that takes any type; name one",
        )
    )
