"""Every login of Concord's has the rights it needs, each of them needed, and none besides (S0-43)."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.facts import privileges
from concord.databases.postgresql.facts.privileges import Grant, Kind
from concord.databases.postgresql.sites import grants, state
from concord.databases.postgresql.sites.grants import Logins
from concord.messages.errors import ConnectionRefused, NotProvisioned, PrivilegeMissing, ProvisioningRefused
from tests.databases.postgresql.granted_rights import GRANTED, RIGHTS, TABLES
from tests.given.bare_sites import installation
from tests.given.fixtures import MakePair
from tests.given.site import APPLICATION, APPLIER, READER, Site
from tests.given.strangers import initialized
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark


def edit(sites: Pair, number: int = 0) -> None:
    """Something of every kind for the forward link to do, a conflict and a deleted parent included."""
    key = 100 + number
    sites.london.run(
        f"INSERT INTO ops.parent VALUES ({key}, 'sad')",
        f"INSERT INTO ops.child VALUES ({key}, {key})",
        "UPDATE ops.parent SET mood = CASE mood WHEN 'sad' THEN 'glad' ELSE 'sad' END::ops.mood WHERE id IN (2, 3)",
        f"DELETE FROM ops.parent WHERE id = {key - 1} AND id NOT IN (SELECT parent FROM ops.child)",
        f"DELETE FROM ops.child WHERE id = {key - 1}",
    )
    sites.capetown.run(
        "UPDATE ops.parent SET mood = CASE WHEN mood IS NULL THEN 'sad' END::ops.mood WHERE id = 3"
    )


def test_the_logins_have_exactly_the_printed_grants(pair: MakePair) -> None:
    sites = pair(*TABLES)
    found = {(role, what): rights for role, what, rights in sites.capetown.rows(RIGHTS)}
    assert found == GRANTED
    owned = f"SELECT count(*) FROM pg_class WHERE relowner IN ('{READER}'::regrole, '{APPLIER}'::regrole)"
    assert sites.capetown.value(owned) == 0
    attributes = (
        "SELECT count(*) FROM pg_roles WHERE (rolsuper OR rolcreatedb OR rolcreaterole OR rolbypassrls)"
    )
    assert (
        sites.capetown.value(f"{attributes} AND rolname IN ('{READER}', '{APPLIER}', '{APPLICATION}')") == 0
    )


#: The rights that a careful owner takes from everybody; those that the reader and the applier need they have by
#: themselves.
HARDENED = (
    "REVOKE ALL ON SCHEMA public FROM PUBLIC",
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA concord FROM PUBLIC",
    "REVOKE ALL ON TYPE ops.mood FROM PUBLIC",
)


def harden(sites: Pair) -> None:
    for site in sites.sites:
        site.run(*HARDENED, f'REVOKE ALL ON DATABASE "{site.database}" FROM PUBLIC')


def test_they_are_enough_where_the_public_has_none(pair: MakePair) -> None:
    sites = pair(*TABLES)
    harden(sites)
    edit(sites)
    sites.settle()
    assert sites.equal
    assert sites.conflicts()


OPERATIONS = {f"table concord.{name}" for name in ("entry", "kept_operations", "last_entry", "operation")}

#: Rights that these links do not need, other tasks do: initializing, looking, removing tombstones, purging, snapshots.
NOT_FOR_LINKS = {
    (APPLIER, "table concord.link_state", "INSERT"),
    # A link reads its histories as it takes its epoch, as the applier; plans, `status` and cleanups as the reader.
    (READER, "table concord.link_state", "SELECT"),
    (READER, "table concord.synchronization", "SELECT"),
    (READER, "table concord.conflict", "SELECT"),
    (READER, "table concord.initialization", "SELECT"),
    *((login, "table concord.snapshot", "SELECT") for login in (READER, APPLIER)),
    *((login, "table concord.overturn", "SELECT") for login in (READER, APPLIER)),
    *((login, "table concord.late_index", "SELECT") for login in (READER, APPLIER)),
    (APPLIER, "table concord.overturn", "INSERT"),
    # Replications need these (tests/transactional/test_provisioned.py).
    (READER, "table concord.compensation", "SELECT"),
    *((APPLIER, "table concord.compensation", right) for right in ("DELETE", "INSERT", "SELECT")),
    *((login, "table concord.captured_by", "SELECT") for login in (READER, APPLIER)),
    *(
        (login, f"table concord.{name}", right)
        for name in ("consumed", "recorded_copy")
        for login, rights in ((READER, ["SELECT"]), (APPLIER, ["DELETE", "INSERT", "SELECT"]))
        for right in rights
    ),
    (READER, "table concord.replay", "SELECT"),
    (READER, "table concord.skipped", "SELECT"),
    *((APPLIER, "table concord.skipped", right) for right in ("INSERT", "SELECT")),
    (APPLIER, "table concord.skipped(mended_at)", "UPDATE"),
    *((APPLIER, "table concord.replay", right) for right in ("INSERT", "SELECT", "UPDATE")),
    # Those whose publisher's triggers capture (tests/transactional/test_operations.py).
    *(
        (login, what, right)
        for (login, what), rights in GRANTED.items()
        if what.partition("(")[0] in OPERATIONS
        for right in rights.split()
    ),
    (APPLIER, "function concord.purge_conflicts(timestamp with time zone,integer)", "EXECUTE"),
    # Waiting rows are looked at by `status`, and deleted where some wait.
    (READER, "table concord.waiting", "SELECT"),
    (APPLIER, "table concord.waiting", "DELETE"),
    *((APPLIER, "table concord.initialization", right) for right in ("DELETE", "INSERT", "SELECT", "UPDATE")),
    # Links use these where the application keeps the marks.
    *(
        (APPLIER, f"table concord.replicated_table({column})", "UPDATE")
        for column in ("registered", "writers")
    ),
    # Links use these where the log tells of changes.
    *((READER, f"table concord.{name}", "SELECT") for name in ("applied", "log_capture")),
    *((APPLIER, "table concord.applied", right) for right in ("DELETE", "SELECT")),
    (APPLIER, "table concord.log_capture", "UPDATE"),
    (APPLIER, "table concord.replicated_table(history_lost)", "UPDATE"),
    # Cleanups say which rows' versions were forgotten.
    (APPLIER, "table concord.replicated_table(forgotten)", "UPDATE"),
    (APPLIER, "table concord.site(stamp_floor)", "UPDATE"),
    (APPLIER, 'table concord."ops.parent"', "DELETE"),
    (APPLIER, 'table concord."ops.child"', "DELETE"),
}
EACH = [(role, what, right) for (role, what), rights in GRANTED.items() for right in rights.split()]


def change(site: Site, verb: str, role: str, what: str, right: str) -> None:
    """GRANT or REVOKE one right."""
    kind, _, name = what.partition(" ")
    direction = "TO" if verb == "GRANT" else "FROM"
    on = f'DATABASE "{site.database}"' if kind == "database" else f"{kind} {name}"
    if kind == "table" and "(" in name:
        table, _, column = name.rstrip(")").partition("(")
        right, on = f"{right} ({column})", f"table {table}"
    site.run(f"{verb} {right} ON {on} {direction} {role}")


@contextmanager
def without(sites: Pair, role: str, what: str, right: str) -> Iterator[None]:
    for site in sites.sites:
        change(site, "REVOKE", role, what, right)
    try:
        yield
    finally:
        for site in sites.sites:
            change(site, "GRANT", role, what, right)


def outcome(sites: Pair) -> str:
    """A forward link's words when it is refused, and nothing of it is written; empty when it works."""
    before = [site.rows("TABLE ops.parent") + site.rows("TABLE ops.child") for site in sites.sites]
    conflicts = len(sites.conflicts())
    try:
        sites.run()
    except PrivilegeMissing as missing:
        assert [
            site.rows("TABLE ops.parent") + site.rows("TABLE ops.child") for site in sites.sites
        ] == before
        assert len(sites.conflicts()) == conflicts
        return missing.message
    return ""


def named(what: str) -> str:
    """How PostgreSQL names the object in its refusal."""
    return what.rpartition(" ")[2].rpartition(".")[2].partition("(")[0].strip('"')


@pytest.mark.timeout(600)
def test_each_of_them_is_needed_by_some_statement_and_the_database_says_which(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links that do not ask beforehand meet the database's own refusal."""
    sites = pair(*TABLES)
    harden(sites)
    monkeypatch.setattr(state, "refuse_missing", lambda site, lacked: None)
    needed = [right for right in EACH if right not in NOT_FOR_LINKS]
    assert len(needed) + len(NOT_FOR_LINKS) == len(EACH)
    for number, right in enumerate(needed):
        edit(sites, number)
        with without(sites, *right):
            message = outcome(sites)
        assert named(right[1]) in message.lower(), (right, message)
        assert "provision" in message, (right, message)
    with ExitStack() as taken:
        for right in NOT_FOR_LINKS:
            taken.enter_context(without(sites, *right))
        assert outcome(sites) == ""
    sites.settle()
    assert sites.equal


def granting(site: Site, role: str, what: str, right: str) -> str:
    """The statement that a message is to name."""
    kind, _, name = what.partition(" ")
    name, _, column = name.partition("(") if kind == "table" else (name.partition("(")[0], "", "")
    parts = [part.strip('"') for part in ([site.database] if kind == "database" else name.split(".", 1))]
    asked = f'{right} ("{column.rstrip(")")}")' if column else right
    quoted = ".".join(f'"{part}"' for part in parts)
    return f'GRANT {asked} ON {kind.upper()} {quoted} TO "{role}"'


def check(sites: Pair) -> list[str]:
    return provisioning.check([installation(site, sites.tables) for site in sites.sites])


def assert_no_link_starts_without(sites: Pair, *rights: tuple[str, str, str]) -> None:
    before = [site.stored for site in sites.sites]
    with ExitStack() as taken:
        for right in rights:
            taken.enter_context(without(sites, *right))
        for changed in ({}, {"plan_only": True}):
            with pytest.raises(PrivilegeMissing) as raised:
                sites.run(**changed)
            for right in rights:
                assert any(granting(site, *right) in raised.value.message for site in sites.sites), right
                assert right[2:] == ("CONNECT",) or "nothing was written" in raised.value.message
    assert [site.stored for site in sites.sites] == before, "not even an epoch"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_without_any_one_of_them_no_link_starts(pair: MakePair) -> None:
    sites = pair(*TABLES)
    harden(sites)
    edit(sites)
    for right in EACH:
        assert_no_link_starts_without(sites, right)
    sites.settle()
    assert sites.equal


def test_a_link_that_lacks_many_of_them_names_each_and_does_not_start(pair: MakePair) -> None:
    sites = pair(*TABLES)
    harden(sites)
    edit(sites)
    for missing in rounds():
        logins = [right for right in missing if right[2] == "CONNECT"]
        assert_no_link_starts_without(sites, *(right for right in missing if right not in logins))
        for right in logins:
            assert_no_link_starts_without(sites, right)
    sites.settle()
    assert sites.equal


def rounds() -> list[list[tuple[str, str, str]]]:
    """Each right in one round, and no round has two of the same login on the same object."""
    taken: Counter[tuple[str, str]] = Counter()
    found: defaultdict[int, list[tuple[str, str, str]]] = defaultdict(list)
    for role, what, right in EACH:
        on = role, what.partition("(")[0]
        found[taken[on]].append((role, what, right))
        taken[on] += 1
    return list(found.values())


def test_the_check_names_the_grant_of_each_right_and_the_grants_mend_it(pair: MakePair) -> None:
    sites = pair(*TABLES)
    harden(sites)
    for missing in rounds():
        with ExitStack() as taken:
            for right in missing:
                taken.enter_context(without(sites, *right))
            lines = check(sites)
            expected = [granting(site, *right) for site in sites.sites for right in missing]
            assert sorted(line.partition("; ")[2] for line in lines) == sorted(expected)
            for site in sites.sites:
                site.run(*(granting(site, *right) for right in missing))
            assert check(sites) == []


def test_every_grant_that_is_missing_is_named_at_once(pair: MakePair) -> None:
    sites = pair(*TABLES)
    sites.capetown.run(f"REVOKE ALL ON ops.parent, concord.conflict, concord.site FROM {READER}, {APPLIER}")
    for direction in ("forward", "reverse"):
        with pytest.raises(PrivilegeMissing) as raised:
            sites.run(direction)
        *lines, then = raised.value.message.splitlines()
        assert then == "Run `provision`, or these statements; nothing was written"
        assert lines == check(sites)
        assert len(lines) == 8
    provisioning.provision([installation(site, sites.tables) for site in sites.sites])
    sites.settle()
    assert sites.equal


ABSENT = {
    "DROP SCHEMA concord_staging CASCADE": (
        f"there is no schema concord_staging, on which {APPLIER} needs USAGE, CREATE; run `provision`"
    ),
    "DROP FUNCTION concord.purge_conflicts": (
        f"there is no function concord.purge_conflicts, on which {APPLIER} needs EXECUTE; run `provision`"
    ),
    "DROP TABLE concord.overturn CASCADE": (
        f"there is no table concord.overturn, on which {APPLIER} needs SELECT; run `provision`"
    ),
}


@pytest.mark.parametrize("statement", ABSENT)
def test_what_is_not_there_is_missing_until_provision_makes_it(pair: MakePair, statement: str) -> None:
    sites = pair(*TABLES)
    edit(sites)
    sites.capetown.run(statement)
    for direction in ("forward", "reverse"):
        with pytest.raises(PrivilegeMissing) as raised:
            sites.run(direction)
        assert f"capetown: {ABSENT[statement]}" in raised.value.message
        assert raised.value.message.endswith("\nRun `provision`; nothing was written")
    assert f"capetown: {ABSENT[statement]}" in check(sites)

    provisioning.provision([installation(site, sites.tables) for site in sites.sites])

    assert check(sites) == []
    sites.settle()
    assert sites.equal


OTHERS = {
    'FUNCTION concord."update ops.parent"()': "postgres",
    "FUNCTION concord.purge_conflicts(timestamptz, integer)": "postgres",
    'TABLE concord."ops.child"': "postgres",
    "SCHEMA concord": "postgres",
}


@pytest.mark.parametrize("what", OTHERS)
def test_no_link_runs_where_capture_got_another_owner_until_provision_hands_it_back(
    pair: MakePair, what: str
) -> None:
    # Capture works with its owner's rights, in the sessions of users
    sites = pair(*TABLES)
    edit(sites)
    sites.capetown.run(f"ALTER {what} OWNER TO {OTHERS[what]}")
    before = [site.stored for site in sites.sites]
    refuse_both(sites, OTHERS[what])
    assert [site.stored for site in sites.sites] == before

    provisioning.provision([installation(site, sites.tables) for site in sites.sites])

    sites.settle()  # nothing was missed: no table is to be initialized again
    assert sites.equal


def refuse_both(sites: Pair, owner: str) -> None:
    for direction in ("forward", "reverse"):
        with pytest.raises(NotProvisioned) as raised:
            sites.run(direction)
        assert f"{owner} owns something of Concord's" in raised.value.message


def test_no_link_runs_where_capture_got_a_user_as_its_owner_and_provision_refuses(pair: MakePair) -> None:
    """Nobody knows who has altered it since."""
    sites = pair(*TABLES)
    function = 'FUNCTION concord."update ops.parent"()'
    (name,) = sites.capetown.rows(
        "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'concord'"
    )[0]
    sites.capetown.run(f"ALTER {function} OWNER TO {APPLICATION}")
    refuse_both(sites, APPLICATION)
    with pytest.raises(ProvisioningRefused, match=f"belongs to {APPLICATION}"):
        provisioning.provision([installation(site, sites.tables) for site in sites.sites])
    sites.capetown.run(f"ALTER {function} OWNER TO {name}")
    sites.settle()
    assert sites.equal


def test_a_role_that_is_not_there_lacks_everything(pair: MakePair) -> None:
    sites = pair(*TABLES)
    everything = [
        *(grants.of_site(sites.london.database, Logins("nobody", "nobody"))),
        Grant("nobody", ("SELECT",), Kind.TABLE, ("ops", "parent"), ("mood", "mode")),
        Grant(READER, ("SELECT",), Kind.TABLE, ("ops", "parent"), ("mood", "mode")),
        Grant(READER, ("USAGE",), Kind.TYPE, ("ops", "mode")),
        Grant(READER, ("USAGE",), Kind.SEQUENCE, ("ops", "mode")),
        Grant(READER, ("CONNECT",), Kind.DATABASE, ("mode",)),
    ]
    said = [each.lacked for each in privileges.missing(sites.london.connection, everything).values()]
    assert len(said) == len(everything)
    assert all(line.startswith("there is no role nobody, which needs ") for line in said[:-4])
    assert said[-4:] == [
        f"there is no table ops.parent (mode), on which {READER} needs SELECT (mode); run `provision`",
        f"there is no type ops.mode, on which {READER} needs USAGE; run `provision`",
        f"there is no sequence ops.mode, on which {READER} needs USAGE; run `provision`",
        f"there is no database mode, on which {READER} needs CONNECT; run `provision`",
    ]


def test_one_login_may_be_both(pair: MakePair) -> None:
    sites = pair(*TABLES)
    both = [replace(installation(site, sites.tables), reader=APPLIER) for site in sites.sites]
    sites.capetown.run(f"REVOKE UPDATE ON ops.child FROM {APPLIER}")
    for site in sites.sites:  # what an applier need not see, a reader does
        site.run(f"GRANT SELECT ON concord.operation TO {APPLIER}")
    assert provisioning.check(both) == [
        f"capetown: the login {APPLIER} lacks UPDATE on table ops.child;"
        f' GRANT UPDATE ON TABLE "ops"."child" TO "{APPLIER}"'
    ]


def test_initializing_asks_for_the_grants_before_it_writes_anything(pair: MakePair) -> None:
    sites = pair(*TABLES)
    sites.capetown.run(
        f"REVOKE DELETE ON ops.child FROM {APPLIER}",
        "UPDATE concord.site SET identity = 'a backup'",
        "UPDATE ops.parent SET mood = 'sad'",
    )
    before = [site.stored for site in sites.sites]
    with pytest.raises(PrivilegeMissing, match=r'GRANT DELETE ON TABLE "ops"\."child" TO'):
        initialized(sites, accept_restored=True, named="london")
    assert [site.stored for site in sites.sites] == before


def refused(site: Site, user: str, statement: str) -> bool:
    try:
        site._as(user, statement)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_the_applier_cannot_write_outside_its_tables(pair: MakePair) -> None:
    sites = pair(*TABLES)
    london = sites.london
    london.run("CREATE TABLE ops.private (id int PRIMARY KEY)", "CREATE TABLE public.other (id int)")
    for statement in (
        "INSERT INTO ops.private VALUES (1)",
        "DELETE FROM public.other",
        "TRUNCATE ops.parent",
        "ALTER TABLE ops.parent DISABLE TRIGGER ALL",
        "ALTER TABLE ops.parent ADD note text",
        "CREATE TABLE ops.mine (id int)",
        "CREATE TABLE concord.mine (id int)",
        "DROP TABLE concord.conflict",
        "UPDATE concord.site SET name = 'other'",
        "UPDATE concord.conflict SET reason = 'rewritten'",
        "DELETE FROM concord.conflict",
        "TRUNCATE concord.conflict",
        "DELETE FROM concord.overturn",
        "UPDATE concord.site SET incarnation = incarnation + 1",
        "UPDATE concord.site SET identity = 'another'",
        "UPDATE concord.site SET conflicts_kept = '0'",
        "DELETE FROM concord.site",
        "CREATE OR REPLACE FUNCTION concord.purge_conflicts(before timestamptz, most integer) RETURNS bigint"
        " LANGUAGE sql AS 'SELECT 0::bigint'",
        "UPDATE concord.overturn SET person = 'another'",
        "SELECT concord.keyed_hash('a guess')",
        "DELETE FROM concord.link_state",
        "DELETE FROM concord.replicated_table",
        "UPDATE concord.replicated_table SET triggers = '{}'",
        "CREATE OR REPLACE FUNCTION concord.refuse_truncate() RETURNS trigger LANGUAGE sql AS 'SELECT 1'",
        "SET session_authorization = 'postgres'",
        "COPY ops.parent TO PROGRAM 'true'",
        "SELECT pg_read_file('PG_VERSION')",
    ):
        assert refused(london, APPLIER, statement), statement


def test_the_applier_cannot_take_a_loser_out_of_the_ledger_before_its_time(pair: MakePair) -> None:
    # Whatever moment, time zone or search path the applier chooses
    sites = pair(*TABLES)
    edit(sites)
    sites.settle()
    where = next(site for site in sites.sites if site.conflicts())
    kept = where.conflicts()
    where.run(
        "INSERT INTO concord.overturn VALUES ('an id', 'Ada', '{}', false)",
        *(
            "INSERT INTO concord.conflict SELECT (jsonb_populate_record(c, jsonb_build_object('id', 'of day ' || n,"
            f" 'decided_at', now() - interval '{hours} hours'))).* FROM concord.conflict c, generate_series({n}, {n}) n"
            " LIMIT 1"
            for n, hours in enumerate((30 * 24 - 1, 30 * 24 + 1))
        ),
    )
    for moment in (
        "'infinity'",
        "now()",
        "now() + interval '1000 years'",
        "NULL",
        "now() - interval '1 hour'",
    ):
        with where.log_in(APPLIER) as applier:
            for statement in (
                "SET TimeZone = 'Pacific/Kiritimati'",
                "SET search_path = pg_temp, public, pg_catalog",
                "SET session_replication_role = replica",
                "CREATE TEMPORARY TABLE site AS SELECT interval '0' AS conflicts_kept",
                f"SELECT concord.purge_conflicts({moment}, 1000000)",
            ):
                applier.execute(statement.encode())
    assert {row["id"] for row in where.conflicts()} == {row["id"] for row in kept} | {"of day 0"}
    assert where.value("SELECT count(*) FROM concord.overturn") == 1
    assert refused(where, READER, "SELECT concord.purge_conflicts(now(), 1)")
    assert refused(where, APPLICATION, "SELECT concord.purge_conflicts(now(), 1)")


def test_only_the_installer_gives_a_restored_site_its_new_life_and_without_him_nothing_is_written(
    pair: MakePair,
) -> None:
    sites = pair(*TABLES)
    sites.settle()
    sites.capetown.run("UPDATE concord.site SET identity = 'before the restore'")
    before = [site.stored for site in sites.sites]
    with pytest.raises(ConnectionRefused, match="capetown: only its installer may take a restored database"):
        initialized(sites, accept_restored=True, installers={})
    assert [site.stored for site in sites.sites] == before
    nobody = {"capetown": sites.capetown.credentials("nobody")}
    with pytest.raises(ConnectionRefused, match="nobody@"):
        initialized(sites, accept_restored=True, installers=nobody)
    assert [site.stored for site in sites.sites] == before

    initialized(sites, accept_restored=True)

    assert sites.capetown.value("SELECT incarnation FROM concord.site") == 2
    edit(sites)
    sites.settle()
    assert sites.equal


def test_the_reader_writes_nothing_at_all(pair: MakePair) -> None:
    sites = pair(*TABLES)
    tables = ("ops.parent", "ops.child", 'concord."ops.parent"', "concord.conflict", "concord.site")
    for statement in (
        *(f"DELETE FROM {table}" for table in tables),
        *(f"INSERT INTO {table} DEFAULT VALUES" for table in tables),
        "UPDATE ops.parent SET mood = 'sad'",
        "UPDATE concord.site SET heartbeat = 0",
        "UPDATE concord.synchronization SET epoch = 0",
        "CREATE TABLE concord_staging.mine (id int)",
        "SET session_replication_role = replica",
    ):
        assert refused(sites.london, READER, statement), statement


def test_an_application_has_no_right_on_anything_of_concord(pair: MakePair) -> None:
    sites = pair(*TABLES)
    found = sites.london.rows(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v', 'S') AND"
        " relnamespace::regnamespace::text ~ '^concord'"
    )
    assert len(found) > 6
    for (relation,) in found:
        assert refused(sites.london, APPLICATION, f"SELECT * FROM {relation}"), relation
        assert refused(sites.london, APPLICATION, f"DELETE FROM {relation}"), relation
    for statement in (
        "SELECT concord.vector_unite('{}', '{}')",
        "CREATE TABLE concord_staging.mine (id int)",
        "SET session_replication_role = replica",
        "CREATE TRIGGER mine AFTER INSERT ON concord.conflict EXECUTE FUNCTION concord.refuse_truncate()",
    ):
        assert refused(sites.london, APPLICATION, statement), statement


SHADOWING = (
    "CREATE FUNCTION public.stolen() RETURNS void LANGUAGE plpgsql AS"
    " $$BEGIN INSERT INTO public.loot VALUES (session_user, current_user); END$$",
    "CREATE TABLE public.loot (session name, who name)",
    "GRANT INSERT ON public.loot TO PUBLIC",
    *(
        f"CREATE FUNCTION public.{name}({arguments}) RETURNS {returns} LANGUAGE plpgsql AS"
        f" $$BEGIN PERFORM public.stolen(); RETURN NULL; END$$"
        for name, arguments, returns in (
            ("clock_timestamp", "", "timestamptz"),
            ("jsonb_build_object", "text, jsonb", "jsonb"),
            ("jsonb_build_array", "bigint, int", "jsonb"),
            ("pg_current_xact_id", "", "xid8"),
            ("jsonb_each", "jsonb", "record"),
            ("vector_unite", "jsonb, jsonb", "jsonb"),
            ("same", "int, int", "boolean"),
            ("joined", "jsonb, jsonb", "jsonb"),
        )
    ),
    "CREATE OPERATOR public.= (LEFTARG = int, RIGHTARG = int, FUNCTION = public.same)",
    "CREATE OPERATOR public.|| (LEFTARG = jsonb, RIGHTARG = jsonb, FUNCTION = public.joined)",
    "CREATE TABLE public.site (name text)",
)


def test_what_an_application_puts_before_the_search_path_never_runs_with_the_triggers_rights(
    pair: MakePair,
) -> None:
    # The capture functions are SECURITY DEFINER
    sites = pair(*TABLES)
    sites.london.run(*SHADOWING)
    sites.london.as_application(
        "SET search_path = public, pg_temp, pg_catalog",
        "CREATE TEMPORARY TABLE site (name text, origin text, stamp_floor bigint)",
        "CREATE TEMPORARY TABLE jsonb_each (key text, value jsonb)",
        "INSERT INTO ops.parent VALUES (20, 'glad')",
        "UPDATE ops.parent SET id = 21 WHERE id OPERATOR(pg_catalog.=) 20",
        "DELETE FROM ops.child WHERE id OPERATOR(pg_catalog.=) 1",
    )

    assert sites.london.rows("TABLE public.loot") == []
    assert sites.london.rows('SELECT id, origin, deleted FROM concord."ops.parent" ORDER BY id') == [
        (20, "london#1", True),
        (21, "london#1", False),
    ]
    sites.settle()
    assert sites.equal
