"""The text that people read, block by block: of a page in Markdown, or of the docstrings of a module."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("commonmark").enable("table")
#: A program wrote this part of a page, and writes it again.
_GENERATED = re.compile(r"<!-- (\w+): begin -->.*?<!-- \1: end -->", re.DOTALL)
#: A span of code is one word, whatever stands in it.
_CODE = "`code`"


@dataclass(frozen=True)
class Block:
    """A paragraph, an item of a list, a cell of a table or a heading: its first line, from 1, and its text."""

    kind: str
    line: int
    text: str


def of_page(markdown: str, first_line: int = 1) -> Iterator[Block]:
    """The blocks of a text in Markdown. Code and generated parts are none; a heading is one of kind `heading`."""
    tokens = _MARKDOWN.parse(_GENERATED.sub(_blank, markdown))
    for before, token in pairwise(tokens):
        if token.type == "inline" and token.map:
            yield Block(_kind(before), first_line + token.map[0], _words(token))


def of_module(source: str) -> Iterator[Block]:
    """The blocks of every docstring of a Python module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is None:
                continue
            (statement, *_) = node.body
            assert isinstance(statement, ast.Expr)
            assert isinstance(statement.value, ast.Constant)
            yield from of_page(inspect.cleandoc(str(statement.value.value)), statement.lineno)


def _kind(before: Token) -> str:
    return {"heading_open": "heading", "th_open": "heading", "td_open": "cell"}.get(before.type, "paragraph")


def _words(inline: Token) -> str:
    """The text as it is shown. A line of the source stays a line."""
    shown = {"softbreak": "\n", "hardbreak": "\n", "code_inline": _CODE}
    return "".join(shown.get(token.type, token.content) for token in inline.children or [])


def _blank(part: re.Match[str]) -> str:
    """Nothing, in as many lines."""
    return "\n" * part[0].count("\n")
