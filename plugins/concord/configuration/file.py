"""Which YAML is accepted: plain values only, each key once, every key's line remembered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as File

import yaml

from concord.configuration.finding import Finding, Path
from concord.messages.errors import ConcordError

_MOST_BYTES = 1_000_000
_DEEPEST = 12
_LONGEST_SCALAR = 1_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: The words that YAML 1.1 takes for booleans although people write them as words: no is Norway.
_NORWAY = re.compile(r"(?i:y|n|yes|no|on|off)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_SCALAR = "longer than 1,000 characters or not Unicode text; write one short line"
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)")
_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Document:
    """The file as plain values (dict, tuple, str, int, float, bool, None), and its mistakes as YAML."""

    value: object = None
    lines: dict[Path, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    #: Where a value could not be taken over: what validation says about it is a consequence.
    unusable: set[Path] = field(default_factory=set)
    #: False where nothing below makes sense to check.
    readable: bool = True


class _Unreadable(ConcordError):
    """Nothing more can be read from the file."""

    def __init__(self, text: str, line: int = 1) -> None:
        self.finding = Finding((), text, line)
        super().__init__(text)


def read(file: File) -> Document:
    """Read the file strictly. Never raises for what the file holds: mistakes are findings."""
    document = Document()
    try:
        text = _text(file, document.findings)
        value = _Composer(text, document).document()
    except _Unreadable as error:
        findings = [*document.findings, error.finding]
        return Document(lines=document.lines, findings=findings, readable=False)
    return Document(value, document.lines, document.findings, document.unusable)


def _text(file: File, findings: list[Finding]) -> str:
    content = _content(file)
    if content.startswith(_BYTE_ORDER_MARK):
        findings.append(
            Finding((), "the file begins with a byte order mark; save it as UTF-8 without one", 1)
        )
    try:
        return content.removeprefix(_BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _Unreadable("not UTF-8; save the file as UTF-8", line) from None


def _content(file: File) -> bytes:
    if not file.exists():
        raise _Unreadable(f"there is no file {file}; create it, or name another one in CONCORD_CONFIG")
    if not file.is_file():
        raise _Unreadable(f"{file} is not a file; name one in CONCORD_CONFIG")
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _Unreadable(f"{file} cannot be read ({error.strerror}); check its owner and mode") from None
    if len(content) > _MOST_BYTES:
        raise _Unreadable("larger than 1 MB; a configuration holds names and settings, no data")
    return content


class _Composer:
    """Turns YAML events into plain values; a value that is refused becomes None and unusable."""

    def __init__(self, text: str, document: Document) -> None:
        self._events = _events(text)
        self._document = document

    def document(self) -> object:
        """The one document of the file. Raises _Unreadable."""
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise _Unreadable("the file is empty; begin with sites")
        value = self._value(next(self._events), ())
        next(self._events)
        if not isinstance(another := next(self._events), yaml.StreamEndEvent):
            raise _Unreadable("a second YAML document; remove the line ---", _line(another))
        return value

    def _value(self, event: yaml.Event, path: Path) -> object:
        self._refuse_decoration(event, path)
        _check_depth(len(path), event)
        match event:
            case yaml.MappingStartEvent():
                return self._mapping(path)
            case yaml.SequenceStartEvent():
                return self._sequence(path)
            case yaml.ScalarEvent():
                return self._scalar(event, path)
            case _:
                return None

    def _refuse_decoration(self, event: yaml.Event, path: Path) -> None:
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._refuse(event, path, "YAML anchors and aliases are refused; write the value out")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            self._refuse(event, path, "YAML tags such as !!python/object are refused; write a plain value")

    def _mapping(self, path: Path) -> dict[str, object]:
        result: dict[str, object] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, path)
            if key is None or self._repeated(event, (*path, key)):
                self._skip(next(self._events), len(path))
                continue
            self._document.lines[*path, key] = _line(event)
            result[key] = self._value(next(self._events), (*path, key))
        return result

    def _key(self, event: yaml.Event, path: Path) -> str | None:
        """The key as text, whatever else YAML takes it for; None if it is not even a scalar."""
        if not isinstance(event, yaml.ScalarEvent):
            self._skip(event, len(path))
            self._note(event, path, "a key must be plain text; write name: value")
            return None
        key = str(event.value)
        if len(key) > _LONGEST_SCALAR or _SURROGATE.search(key):
            self._note(event, path, _NO_SCALAR)
            return None
        if event.anchor is not None or event.tag is not None:
            self._note(event, path, "a key takes no YAML tag or anchor; write the key alone")
        if event.style is None and _NORWAY.fullmatch(key):
            self._note(event, (*path, key), _quote(key))
        return key

    def _repeated(self, event: yaml.Event, path: Path) -> bool:
        first = self._document.lines.get(path)
        if first is not None:
            self._note(event, path, f"duplicate key, first on line {first}; keep one of the two")
        return first is not None

    def _skip(self, event: yaml.Event, depth: int) -> None:
        """Read past a value whose key is already refused."""
        opened = 0
        while True:
            opened += isinstance(event, yaml.CollectionStartEvent) - isinstance(
                event, yaml.CollectionEndEvent
            )
            _check_depth(depth + opened, event)
            if opened == 0:
                return
            event = next(self._events)

    def _sequence(self, path: Path) -> tuple[object, ...]:
        result: list[object] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item = (*path, len(result))
            self._document.lines[item] = _line(event)
            result.append(self._value(event, item))
        return tuple(result)

    def _scalar(self, event: yaml.ScalarEvent, path: Path) -> object:
        text = str(event.value)
        if len(text) > _LONGEST_SCALAR or _SURROGATE.search(text):
            self._refuse(event, path, _NO_SCALAR)
        elif event.style is not None:
            return text
        elif _NORWAY.fullmatch(text):
            self._refuse(event, path, _quote(text))
        else:
            return _plain(text)
        return None

    def _refuse(self, event: yaml.Event, path: Path, text: str) -> None:
        self._note(event, path, text)
        self._document.unusable.add(path)

    def _note(self, event: yaml.Event, path: Path, text: str) -> None:
        self._document.findings.append(Finding(path, text, _line(event)))


def _check_depth(depth: int, event: yaml.Event) -> None:
    if depth > _DEEPEST:
        raise _Unreadable("nested too deeply; a configuration has at most six levels", _line(event))


def _quote(word: str) -> str:
    return f'{word} without quotes is a boolean to YAML; write "{word}" for the word, or true or false'


def _plain(text: str) -> object:
    """The value that an unquoted scalar means. Octal, sexagesimal and 1e3 stay text: they are never what was
    meant."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _events(text: str) -> Iterator[yaml.Event]:
    """The parser's events. Raises _Unreadable where the syntax breaks; the text itself is never repeated."""
    try:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _Unreadable(_syntax(error.problem or ""), line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _Unreadable("a control character; remove it", line) from None
    except (ValueError, OverflowError):
        raise _Unreadable("an escape or directive that YAML cannot read; write plain text") from None


def _syntax(problem: str) -> str:
    if "'\\t'" in problem:
        return "a tab; YAML is indented with spaces only"
    quoted_from_the_file = r"""(['"])(?!<)(?!\1).{2,}?\1"""
    return f"not YAML: {re.sub(quoted_from_the_file, '...', problem)}; check quotes and indentation here"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
