"""A pair whose table merges, and the functions that its custom resolvers name."""

import time
from dataclasses import replace

import pyarrow as pa

from concord.rules.policy import Policy
from tests.given import version_account
from tests.given.site import Rows, provision_site
from tests.given.two_sites import Pair

STOCK = (
    "CREATE TABLE stock (id int PRIMARY KEY, seats int, price numeric(8,2), title text, seen timestamptz, data bytea)",
    "INSERT INTO stock SELECT n, 100, 10.00, 'old', '2026-01-02 03:04:05.678901+00', '\\x00ff'"
    " FROM generate_series(1, 20) n",
    "CREATE TABLE plain (id int PRIMARY KEY, v text)",
    "INSERT INTO plain VALUES (1, 'old')",
)


def merging(pair: Pair, *resolvers: str) -> Pair:
    """The pair with these resolvers for `stock`; both sites are brought up to what they need."""
    policy = Policy(resolvers=resolvers)
    tables = tuple(
        table.model_copy(update={"policy": policy}) if table.name == "public.stock" else table
        for table in pair.tables
    )
    for site in pair.sites:
        provision_site(site, tables)
    return replace(pair, tables=tables)


def edit(pair: Pair, key: int, london: str, capetown: str) -> None:
    """Both sites edit one row; Cape Town later."""
    for site, change in zip(pair.sites, (london, capetown), strict=True):
        site.run(f"UPDATE stock SET {change} WHERE id = {key}")
        time.sleep(0.002)


def stock(pair: Pair, columns: str = "seats, price::text, title", where: str = "true") -> Rows:
    """The rows, the same at both sites."""
    assert pair.equal
    return pair.london.rows(f"SELECT id, {columns} FROM stock WHERE {where} ORDER BY id")


def losers(pair: Pair, key: int) -> dict[str, dict[str, str | None]]:
    """Of one row's conflict: who lost, with which row; checks what both entries have in common."""
    found = [each for each in pair.conflicts() if each["key"] == [str(key)]]
    for each in found:
        winner, loser = (
            version_account.version(each["winner_version"]),
            version_account.version(each["loser_version"]),
        )
        assert winner.includes(loser)
        assert not loser.includes(winner)
        assert (winner.derived, each["winner_site"]) == (1, winner.site)
    assert len({str(each["winner_row"]) for each in found}) == 1
    return {each["loser_site"]: each["loser_row"] for each in found}


def by_title(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """Does as the source's title says; `both` makes a new row."""
    sides = zip(conflicts.column("source").to_pylist(), conflicts.column("target").to_pylist(), strict=True)
    decisions, rows = [], []
    for ours, theirs in sides:
        both = ours["title"] == "both"
        decisions.append("row" if both else ours["title"])
        title = f"{ours['title']} and {theirs['title']}" if both else ""
        rows.append({**ours, "title": title, "price": "12.50"} if both else None)
    made = pa.array(rows, conflicts.column("source").type)
    return pa.RecordBatch.from_arrays([pa.array(decisions), made], ["decision", "row"])


def adds_seats(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """Each site has sold or got back some of the 100 seats of `STOCK`; where neither has, it has no opinion."""
    sides = zip(conflicts.column("source").to_pylist(), conflicts.column("target").to_pylist(), strict=True)
    rows = [{**ours, "seats": ours["seats"] + theirs["seats"] - 100} for ours, theirs in sides]
    decisions = ["undecided" if row["seats"] == 100 else "row" for row in rows]
    made = pa.array(rows, conflicts.column("source").type)
    return pa.RecordBatch.from_arrays([pa.array(decisions), made], ["decision", "row"])


def breaks(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    raise ArithmeticError(f"no idea of {conflicts.num_rows}\nsecond line")


def talks(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"decision": ["perhaps"] * conflicts.num_rows})


def is_short(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"decision": pa.array([], pa.string())})


def doubles(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    rows = [{**row, "ratio": row["ratio"] * 2} for row in conflicts.column("source").to_pylist()]
    return _rows(pa.array(rows, conflicts.column("source").type))


def moves_keys(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    rows = [{**row, "id": row["id"] + 1} for row in conflicts.column("source").to_pylist()]
    return _rows(pa.array(rows, conflicts.column("source").type))


def forgets_columns(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    return _rows(pa.array([{"id": row["id"]} for row in conflicts.column("source").to_pylist()]))


def _rows(rows: pa.StructArray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(["row"] * len(rows)), rows], ["decision", "row"])


def says_row_alone(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"decision": ["row"] * conflicts.num_rows})


def answers_otherwise(conflicts: pa.RecordBatch) -> object:
    return ["source"] * conflicts.num_rows


not_a_function = "text"
