"""A table with a column of each type, and rows of every value."""

from typing import Any

from tests.given.site import Site
from tests.given.values_of_types import NEVER_NULL, OWN_TYPES, VALUES

EVERY = {**VALUES, **NEVER_NULL}

COLUMNS = {type_name: f"v{number}" for number, type_name in enumerate(EVERY)}

LONGEST = max(map(len, EVERY.values()))

SAMPLE = (
    *OWN_TYPES,
    f"CREATE TABLE sample (id int PRIMARY KEY, {', '.join(f'{name} {kind}' for kind, name in COLUMNS.items())})",
)


def _value(kind: str, number: int) -> str:
    values = EVERY[kind]
    return (
        f"({values[number % len(values)]})::{kind}" if number < len(values) or kind in NEVER_NULL else "NULL"
    )


def insert_samples(site: Site, first_id: int, *, shifted: int = 0) -> None:
    """One row per value, then one of nothing but NULL wherever it is allowed."""
    for number in range(LONGEST + 1):
        values = [_value(kind, (number + shifted) % (LONGEST + 1)) for kind in COLUMNS]
        site.run(f"INSERT INTO sample VALUES ({first_id + number}, {', '.join(values)})")


def by_type(site: Site) -> dict[str, list[tuple[Any, ...]]]:
    return {
        kind: site.rows(f"SELECT id, {_exact(kind, name)} FROM sample ORDER BY id")
        for kind, name in COLUMNS.items()
    }


def _exact(kind: str, column: str) -> str:
    """The text that the type's output function writes, and the bytes it sends unless they name types of this site
    alone."""
    text = f"{column} IS NULL, format('%s', {column})"
    own = (
        any(f" {kind.removesuffix('[]')} AS" in statement for statement in OWN_TYPES)
        or kind == "span_multirange"
        or "vec" in kind
    )
    return text if own else f"{text}, record_send(ROW({column}))"
