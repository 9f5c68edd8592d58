"""The marks that a text cites, such as `F29`, `T07`, `S1-40` or `rule 4`."""

import re
from collections.abc import Iterator

#: What is no part of a longer word, number, path or time of day.
MARK = r"(?<![\w#/.…-]){}(?![\w-]|:\d)"
#: F401 and T201 are ruff's, and no marks.
KIND = r"((?:F|T)(?=\d\d\b)|S[0-4]-)"
ONE = re.compile(MARK.format(KIND + r"(\d{2,3})"))
SEVERAL = re.compile(MARK.format(KIND + r"(\d{2,3})\s+to\s+\1(\d{2,3})"))
RULES = re.compile(r"\brules?\s+(\d+(?:(?:,\s+|\s+and\s+|\s+to\s+)\d+)*)", re.IGNORECASE)


def marks(text: str) -> Iterator[str]:
    """All that a text names, and all that its ranges name."""
    yield from (found[0] for found in ONE.finditer(text))
    for kind, first, last in SEVERAL.findall(text):
        yield from (f"{kind}{number:0{len(first)}}" for number in range(int(first), int(last) + 1))
    for found in RULES.findall(text):
        numbers = [int(number) for number in re.findall(r"\d+", found)]
        between = range(numbers[0], numbers[-1] + 1) if " to " in found else numbers
        yield from (f"rule {number}" for number in between)
