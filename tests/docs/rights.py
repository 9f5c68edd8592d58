"""The rights of reader and applier as docs/security.md shows them: `python -m tests.docs.rights` writes its table.

They come from the list that tests/databases/postgresql/facts/test_privileges.py holds a provisioned site to.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tests.databases.postgresql.granted_rights import GRANTED
from tests.given.site import APPLIER, READER

PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"
_TABLE = re.compile(r"(\| of \| reader \| applier \|\n)(?:\|[^\n]*\n)+")
#: The meaning of that test's tables.
_REPLICATED = {
    "ops.parent": "a replicated table",
    'concord."ops.parent"': "its shadow table",
    "schema ops": "its schema",
}


def rewritten(text: str) -> str:
    """The page with the rights as they are."""
    return _TABLE.sub(lambda found: found[1] + "|---|---|---|\n" + "".join(_rows()), text)


def _rows() -> list[str]:
    rights: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for (login, granted), privileges in GRANTED.items():
        name, column = _named(granted.removeprefix("table "))
        if login in (READER, APPLIER) and name is not None:
            of_columns = f" of {column}" if column else ""
            before = rights[name].get(login)
            rights[name][login] = ", ".join(
                filter(None, (before, f"{', '.join(privileges.split())}{of_columns}"))
            )
    return [
        f"| {name} | {of.get(READER, '')} | {of.get(APPLIER, '')} |\n" for name, of in sorted(rights.items())
    ]


def _named(granted: str) -> tuple[str | None, str | None]:
    """Its name in the page, and the column that is meant; one table of the test stands for all."""
    if granted in _REPLICATED:
        return _REPLICATED[granted], None
    if "ops" in granted:
        return None, None
    if granted.startswith("function"):
        return f"`{granted}`", None
    name, _, column = granted.partition("(")
    return f"`{name}`", f"`{column.rstrip(')')}`" if column else None


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
