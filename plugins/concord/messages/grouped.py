"""Lines that report the same of several tables, as one line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from concord.messages.how_many import how_many

#: Names in one line; of more, two are named and the others are counted.
MOST_NAMED = 3


def listed(names: Sequence[str]) -> str:
    """Names in prose: `a`, `a and b`, `a, b and c`, `a, b and 12 others`."""
    first, last = list(names[:-1]), names[-1]
    if len(names) > MOST_NAMED:
        first, last = list(names[: MOST_NAMED - 1]), how_many(len(names) - MOST_NAMED + 1, "other")
    return f"{', '.join(first)} and {last}" if first else last


def grouped(lines: Iterable[str], names: Collection[str]) -> list[str]:
    """Each line once, in the order given. Lines that differ in the table alone become one.

    A line begins with one of these `names`, or with a site, a colon and a name. Any other line stays as it is.
    """
    known, found = frozenset(names), dict[tuple[str, str], dict[str, str]]()
    for line in lines:
        site, name, reason = _parts(line, known)
        found.setdefault((site, reason), {})[name] = line
    return [
        next(iter(by_name.values())) if len(by_name) == 1 else f"{site}{listed(list(by_name))}: {reason}"
        for (site, reason), by_name in found.items()
    ]


def _parts(line: str, names: frozenset[str]) -> tuple[str, str, str]:
    """The site with its colon, the name, and what is reported of it; without a name all of it is the reason."""
    head, colon, rest = line.partition(": ")
    for site, text in (("", line), (f"{head}{colon}", rest)):
        if name := max((each for each in _beginnings(text) if each in names), key=len, default=""):
            return site, name, text[len(name) :].lstrip(": ")
    return "", "", line


def _beginnings(text: str) -> Iterator[str]:
    return (text[:place] for place, sign in enumerate(text) if sign in " :")
