"""Sentences of a text, and their words."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: An end, the quotes and brackets that close with it, and a space before a word that can begin a sentence.
_END = re.compile(r"""[.!?…]["'”\u2019)\]*_]*\s+(?=["'“\u2018(\[*_`]*[A-Z0-9`])""")
#: A full stop after these ends no sentence.
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|cf|vs|approx|etc|No|St|Dr|Mr|Mrs)|\b[A-Z])\.\s+$")
_WORD = re.compile(r"\w")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence, and how many lines below the text's first line it begins. A colon or a semicolon ends none."""
    begin = 0
    for end in [*_END.finditer(text), None]:
        if end and _ABBREVIATED.search(text[begin : end.end()]):
            continue
        until = end.end() if end else len(text)
        if sentence := " ".join(text[begin:until].split()):
            yield text.count("\n", 0, begin), sentence
        begin = until


def words(sentence: str) -> int:
    """How many words it has: all that stands between spaces and has a letter or a digit."""
    return sum(bool(_WORD.search(part)) for part in sentence.split())
