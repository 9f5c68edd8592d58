"""Whatever is edited, and in whatever order the links run: what is in scope agrees, what is not is left alone.

Two sites edit twenty keys at random, in scope, out of it, and across its border. Afterwards the rows in scope are
the same at both. A row outside that no link may have had a reason to replace is as its site wrote it. Every row
that was written at one site, and stands nowhere any more, was replaced by its own site or is in the conflict log.
"""

from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concord.databases.postgresql.initialize.common_history import declare_equal
from tests.given.filtered_pair import BOOK, agree, filtered
from tests.given.fixtures import MakePair
from tests.given.site import Site
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

SITES = ("london", "capetown")
KEYS = 20

#: The author of each row: a trigger notes each title that a site's users wrote, and the title replaced under their
#: eyes.
NOTED = """
CREATE SCHEMA noted;
CREATE TABLE noted.edit (number bigserial PRIMARY KEY, id int, region int, title text, replaced text);
CREATE FUNCTION noted.keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  INSERT INTO noted.edit (id, region, title, replaced)
  VALUES (coalesce(NEW.id, OLD.id), NEW.region, NEW.title, OLD.title);
  RETURN NULL;
END $$;
CREATE TRIGGER keep AFTER INSERT OR UPDATE OR DELETE ON public.book FOR EACH ROW EXECUTE FUNCTION noted.keep();
"""

edits = st.tuples(
    st.sampled_from(SITES),
    st.sampled_from(["write", "write", "write", "delete"]),
    st.integers(1, KEYS),
    st.sampled_from([1, 1, 2, None]),
)
#: Edits, and now and then a link.
scripts = st.lists(
    st.one_of(edits, edits, edits, st.sampled_from(["forward", "reverse"])), min_size=5, max_size=40
)


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    made = filtered(pair(*BOOK))
    for site in made.sites:
        site.run(NOTED)
    declare_equal(made.job())
    return made


def play(sites: Pair, script: list[tuple[str, str, int, int | None] | str], example: int) -> None:
    for number, step in enumerate(script):
        if isinstance(step, str):
            sites.run(step)
            continue
        name, what, key, region = step
        site: Site = getattr(sites, name)
        if what == "delete":
            site.run(f"DELETE FROM book WHERE id = {key}")
            continue
        title = f"{example}/{number} {name}"
        site.run(
            f"INSERT INTO book VALUES ({key}, {'NULL' if region is None else region}, '{title}')"
            " ON CONFLICT (id) DO UPDATE SET region = excluded.region, title = excluded.title"
        )


def noted(sites: Pair) -> dict[str, list[tuple[int, int | None, str | None, str | None]]]:
    query = "SELECT id, region, title, replaced FROM noted.edit ORDER BY number"
    return {site.name: [(a, b, c, d) for a, b, c, d in site.rows(query)] for site in sites.sites}


def nothing_is_lost(sites: Pair) -> None:
    """Every title that users wrote stands somewhere, was replaced or deleted by a user who saw it, or is logged."""
    standing = {title for site in sites.sites for (title,) in site.rows("SELECT title FROM book")}
    logged = {each["loser_row"]["title"] for each in sites.conflicts() if each["loser_row"]}
    replaced = {edit[3] for edits in noted(sites).values() for edit in edits}
    for edits in noted(sites).values():
        for _, _, title, _ in edits:
            assert title is None or title in standing | logged | replaced, title


def rows_outside_are_their_sites_own(sites: Pair) -> None:
    """A row outside is what its site's users last wrote under its key."""
    for site in sites.sites:
        last: dict[int, tuple[int | None, str | None]] = defaultdict(lambda: (None, None))
        last |= {key: (region, title) for key, region, title, _ in noted(sites)[site.name]}
        for key, region, title in site.rows(
            "SELECT id, region, title FROM book WHERE region IS DISTINCT FROM 1"
        ):
            assert last[key] == (region, title)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(scripts=st.lists(scripts, min_size=1, max_size=2), first=st.sampled_from(["forward", "reverse"]))
def test_what_is_in_scope_agrees_and_nothing_is_lost_without_a_trace(
    sites: Pair, scripts: list[list[tuple[str, str, int, int | None] | str]], first: str
) -> None:
    for script in scripts:
        (example,) = sites.london.rows("SELECT count(*) FROM noted.edit")[0]
        play(sites, script, example)
        sites.settle(first=first)
        sites.settle()
        agree(sites)
        nothing_is_lost(sites)
        rows_outside_are_their_sites_own(sites)
