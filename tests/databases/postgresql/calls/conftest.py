"""One provisioned replication of calls for a whole module."""

from collections.abc import Iterator

import pytest

from concord.values.identifier import parse_table_name
from embedded.postgres import Server
from tests.given.fixtures import two_empty_sites
from tests.given.replicated_sites import begin_replicated
from tests.given.replication_steps import ACCOUNT, SteppedReplication
from tests.given.site import APPLICATION

#: Each writes a row; at Cape Town, one of its own.
PROCEDURES = """
CREATE PROCEDURE opens(id int, owner text) LANGUAGE sql AS
  $$ INSERT INTO public.account (id, owner)
     VALUES (opens.id, opens.owner || coalesce(current_setting('here.mark', true), '')) $$;
CREATE PROCEDURE on_day(day date, price float8, raw bytea) LANGUAGE sql AS
  $$ INSERT INTO public.account (id, owner) VALUES (1, concat(day, '/', price, '/', raw)) $$;
CREATE PROCEDURE nests() LANGUAGE plpgsql AS $$ BEGIN PERFORM concord.call('public.opens', '7', 'inner'); END $$;
CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;
CREATE PROCEDURE fails() LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO public.account (id) VALUES (5); RAISE EXCEPTION 'no funds'; END $$;
CREATE PROCEDURE "Odd name"(a text) LANGUAGE sql AS $$ INSERT INTO public.account (id, owner) VALUES (2, a) $$;
CREATE PROCEDURE alone(id int) LANGUAGE sql AS $$ INSERT INTO public.account (id) VALUES (alone.id) $$;
"""
CARRIED = (
    "opens",
    "on_day",
    "nests",
    "commits",
    "fails",
    '"Odd name"',
    "missing",
    "overloaded",
    "gives",
    "plain",
    "takes_any",
)
#: Made after provisioning, which refuses them.
UNFIT = (
    "CREATE PROCEDURE overloaded(a int) LANGUAGE sql AS ''",
    "CREATE PROCEDURE overloaded(a text) LANGUAGE sql AS ''",
    "CREATE PROCEDURE gives(OUT a int) LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION plain() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE PROCEDURE takes_any(a anyelement) LANGUAGE sql AS ''",
)
FIT_AT_FIRST = tuple(
    f"CREATE PROCEDURE {name}() LANGUAGE sql AS ''"
    for name in ("missing", "overloaded", "gives", "plain", "takes_any")
)


@pytest.fixture(scope="module")
def stepped(server_with_logins: Server) -> Iterator[SteppedReplication]:
    with two_empty_sites(server_with_logins) as both:
        procedures = tuple(parse_table_name(f"public.{name}") for name in CARRIED)
        made = begin_replicated(
            *both, (ACCOUNT, PROCEDURES, *FIT_AT_FIRST), "public.account", procedures=procedures
        )
        made.initialize()
        dropped = [
            f"DROP PROCEDURE {name}()" for name in ("missing", "overloaded", "gives", "plain", "takes_any")
        ]
        made.london.run(*dropped, *UNFIT)
        made.london.run(
            f"GRANT USAGE ON SCHEMA concord TO {APPLICATION}", f"GRANT ALL ON account TO {APPLICATION}"
        )
        stepped = SteppedReplication(made)
        yield stepped
        stepped.close()


@pytest.fixture
def replication(stepped: SteppedReplication) -> SteppedReplication:
    stepped.clear()
    return stepped
