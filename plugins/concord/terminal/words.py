"""Refusals as a person at a terminal can act on them: a DAG's parameters become the options of `python -m concord`."""

from __future__ import annotations

import re
from collections.abc import Callable


def _options(tables: str) -> str:
    return " ".join(f"--table {each}" for each in tables.split(", "))


#: The errors' words for parameters and DAGs → the words typed instead. Errors are worded before anybody knows who
#: reads them: some cross from a Spark application as text.
_WORDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        r"\brun the replication's initialize__(\w+) with `replace` and `tables: \[([^\]]*)\]`",
        lambda found: (
            f"run `python -m concord replicate {found[1]} --initialize --replace {_options(found[2])}`"
        ),
    ),
    (
        r"\binitialize the replication again with `replace` and `tables: \[([^\]]*)\]`",
        lambda found: f"initialize the replication again with `--initialize --replace {_options(found[1])}`",
    ),
    (r"\brun the replication's initialize__(\w+)", r"run `python -m concord replicate \1 --initialize`"),
    (r"\binitialize with `replace`", "initialize with `--replace`"),
    (r"\brun (synchronize|initialize|compare)__(\w+)", r"run `python -m concord \1 \2`"),
    (r"\binitialize__…", "`python -m concord initialize`"),
    (r", or trigger synchronize__\w+ with approve: true", ""),
    (r"\bhow: (auto|equal|load|merge|reinitialize)\b", r"--how \1"),
    (r"\bhow: '", "--how '"),
    (r"\(from: ", "(--from "),
    (r"(^|, |; )from: ", r"\1--from "),
    (r"\bthe site that `from` names", "the site that --from names"),
    (r"\(tables: \[\.\.\.\]\)", "(--table)"),
    (r"\(tables: \[([^\]]*)\]\)", lambda found: f"({_options(found[1])})"),
    (r"^requested: ", "--requested: "),
    (r"\bparameter tables\b", "--table"),
    (r"\bparameter (\w+)\b", r"--\1"),
    (r"([Rr])un `provision`", r"\1un `python -m concord provision`"),
)


def spoken(message: str) -> str:
    """The same with the terminal's options."""
    for pattern, typed in _WORDS:
        message = re.sub(pattern, typed, message)
    return message


def in_a_cell(message: str) -> str:
    """The same on one line, for a table."""
    return spoken(message).replace("\n", " ")
