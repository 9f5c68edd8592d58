"""The rules of prose: short sentences, short paragraphs, an actor at the beginning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.prose.sentences import sentences, words
from tests.prose.texts import Block

WORDS_OF_A_SENTENCE = 25
WORDS_OF_A_PARAGRAPH = 80
#: These name nobody: who acts stands further on, or nowhere.
_NO_ACTOR = re.compile(r"""["“(*_]*(What|Who|Somebody)\b""")


@dataclass(frozen=True)
class Finding:
    """A place in a file, and what is wrong there."""

    line: int
    said: str


def broken(blocks: Iterable[Block]) -> Iterator[Finding]:
    """Every rule that a block breaks. A heading may be a question, and its sentence is its own affair."""
    for block in blocks:
        if block.kind == "heading":
            continue
        yield from _paragraph(block)
        for below, sentence in sentences(block.text):
            yield from _sentence(block.line + below, sentence)


def _paragraph(block: Block) -> Iterator[Finding]:
    count = words(block.text)
    if block.kind == "paragraph" and count > WORDS_OF_A_PARAGRAPH:
        yield Finding(block.line, f'a paragraph of {count} words: "{_shortened(block.text)}"')


def _sentence(line: int, sentence: str) -> Iterator[Finding]:
    if (count := words(sentence)) > WORDS_OF_A_SENTENCE:
        yield Finding(line, f'{count} words: "{_shortened(sentence)}"')
    if begins := _NO_ACTOR.match(sentence):
        yield Finding(line, f'a sentence begins with "{begins[1]}": "{_shortened(sentence)}"')


def _shortened(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= 100 else f"{shown[:99]}…"
