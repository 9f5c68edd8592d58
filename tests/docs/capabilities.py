"""`python -m tests.docs.capabilities`: what a database may lack, and which has it, into docs/compatibility.md."""

import re

from concord.databases.contract.capabilities import CAPABILITIES
from concord.databases.registry import DIALECTS, dialect
from tests.conftest import PROJECT

PAGE = PROJECT / "docs" / "compatibility.md"
_TABLE = re.compile(r"(?<=<!-- capabilities -->\n).*?(?=<!-- end -->)", re.DOTALL)


def table() -> str:
    """One row a capability, one column a database."""
    databases = [dialect(name) for name in DIALECTS]
    head = ["capability", *(each.name for each in databases), "without it"]
    lines = [head, ["---"] * len(head)]
    for each in CAPABILITIES:
        has = ("yes" if database.offers(each.member) else "no" for database in databases)
        lines.append([each.name, *has, each.instead])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page_now() -> str:
    """The page with the table as the code has it."""
    return _TABLE.sub(lambda _: table(), PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(page_now())
