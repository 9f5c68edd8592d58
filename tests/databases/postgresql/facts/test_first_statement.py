"""A session's first statement runs under whatever settings it has: behind a pooler they are the database owner's. So no
name in the statement is looked up by search_path, or his functions would run as Concord's login."""

from collections.abc import Callable

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.session import FIRST
from tests.conftest import Database

#: Of each function and operator of PostgreSQL's that the statement might name: one of his, which fails.
_HIS_FUNCTIONS = """
SELECT format('CREATE FUNCTION his.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$BEGIN RAISE EXCEPTION ''his''; END$f$',
         proname, pg_get_function_identity_arguments(oid), pg_get_function_result(oid))
  FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a') AND NOT proretset
   AND strpos({first}, proname) > 0
   AND NOT EXISTS (SELECT FROM unnest(proargtypes || prorettype) a JOIN pg_type t ON t.oid = a WHERE t.typtype = 'p')"""
_HIS_OPERATORS = """
SELECT format('CREATE OPERATOR his.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = his.equal_%s)', oprname,
         oprleft::regtype, oprright::regtype, oprleft::regtype), oprleft::regtype
  FROM pg_operator WHERE oprname = '=' AND oprleft = oprright AND oprleft = ANY ('{name,oid,text}'::regtype[])"""


def test_nothing_in_it_is_found_by_the_sessions_search_path(database: Callable[[], Database]) -> None:
    made = database()
    with psycopg.connect(made.uri, autocommit=True) as session:
        session.execute("CREATE SCHEMA his")
        for (create,) in session.execute(_HIS_FUNCTIONS.format(first=literal(FIRST)).encode()).fetchall():
            session.execute(create)
        for create, kind in session.execute(_HIS_OPERATORS).fetchall():
            fails = "LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'his'; END$$"
            session.execute(
                f"CREATE FUNCTION his.equal_{kind}({kind}, {kind}) RETURNS boolean {fails}".encode()
            )
            session.execute(create)
        for kind in ("text", "name", "bool", "int4", "oid"):
            session.execute(f"CREATE DOMAIN his.{kind} AS pg_catalog.{kind} CHECK (false)".encode())
        session.execute("CREATE SCHEMA concord")
        session.execute("SET search_path = his, pg_catalog")
        (answer,) = session.execute(FIRST.encode()).fetchall()
        assert answer[-1] == session.info.backend_pid
