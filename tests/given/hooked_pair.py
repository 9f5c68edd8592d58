"""Two sites with books, of which a function of somebody else's sees every row before it is written."""

from collections.abc import Sequence
from dataclasses import replace

from concord.rules.hook import Added, Hook
from concord.rules.policy import Policy
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from tests.given.site import Rows, Site, provision_site
from tests.given.two_sites import Pair

BOOKS = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, price numeric)",
    "INSERT INTO book SELECT n, 'old', 10 FROM generate_series(1, 5) n",
)
AUDIT = (
    "CREATE TABLE audit (n int GENERATED ALWAYS AS IDENTITY, book int, operation text, old numeric, new numeric,"
    " at timestamptz DEFAULT now())"
)
COLUMNS = ("book", "operation", "old", "new")
WRITTEN = "SELECT book, operation, old, new FROM audit ORDER BY n"


def hook(name: str, *columns: str) -> Hook:
    """The function, with the columns of the audit that it may give."""
    adds = (Added(table=parse_table_name("public.audit"), columns=columns),) if columns else ()
    return Hook(call=f"tests.given.hook_functions:{name}", adds=adds)


def hooked_tables(
    tables: Sequence[ReplicatedTable], hooks: dict[str, Hook], policy: Policy | None = None
) -> tuple[ReplicatedTable, ...]:
    """The same tables, `book` with these hooks."""
    changed = {"hooks": hooks, **({} if policy is None else {"policy": policy})}
    return tuple(each.model_copy(update=changed) if each.name == "public.book" else each for each in tables)


def hooked(pair: Pair, policy: Policy | None = None, **hooks: Hook) -> Pair:
    """The pair with these hooks, by site; each site has an audit, which nothing carries."""
    tables = hooked_tables(pair.tables, hooks, policy)
    for site in pair.sites:
        site.run(AUDIT)
        provision_site(site, tables)
    return replace(pair, tables=tables)


def audit(site: Site) -> Rows:
    return [(book, what, *map(_number, prices)) for book, what, *prices in site.rows(WRITTEN)]


def _number(price: object) -> int | None:
    return None if price is None else int(float(str(price)))
