"""The questions of an initialization to the databases of a pair: every table in key ranges, in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from concord.databases.contract.ends import Progress
from concord.databases.contract.reading import Reading
from concord.databases.contract.rows import Shape, Staged
from concord.jobs.initialization import How, RowError, TableInitialization
from concord.messages.errors import LinkFailed
from concord.messages.pace import Meter, Tell
from concord.rules.initialization_rule import Way

#: A key as the exact texts of its columns, in the order in which ranges are cut.
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys after `lower` up to and with `upper`; no bound where it is None. Or just `keys`."""

    lower: Key | None = None
    upper: Key | None = None
    keys: tuple[Key, ...] | None = None


@dataclass(frozen=True, slots=True)
class Progressed:
    """One table's initialization: what it is, where it started, how far it is."""

    table: str
    how: How
    named: str  #: the site whose rows hold where versions do not decide
    stale: str | None  #: the site that is brought back
    unsent_since: str | None  #: position at the stale site: what arrived later, the other has not seen
    source_position: str | None = None  #: where the links go on: taken before the first chunk
    target_position: str | None = None
    bound: Key | None = None
    phase: str = "begun"
    total: int = 0  #: rows, as estimated when it began
    looked_at: int = 0
    written: dict[str, int] | None = None
    conflicts: int = 0
    errors: tuple[RowError, ...] = ()
    definition: str | None = None  #: which tables, columns and rows it is about
    seconds: float = 0.0  #: since it began


@dataclass
class Written:
    """Rows written, how many of them by a decision that the log holds, and the rows that were refused."""

    rows: int = 0
    conflicts: int = 0
    errors: list[RowError] = field(default_factory=list)


class ListenersCame(Exception):
    """Rows were staged to be written without versions, and now somebody must hear of them: stage them again."""


class Passage(Protocol):
    """One way through a table: read at one site, written at the other."""

    @property
    def name(self) -> str:
        """The site that is written."""

    @property
    def readers(self) -> int:
        """How many connections may read at the source at the same time."""

    @property
    def source_shape(self) -> Shape: ...

    @property
    def target_shape(self) -> Shape: ...

    @property
    def key_types(self) -> dict[str, str]:
        """The target's key columns as they are called on the way → their types: several texts may mean one key."""

    def way(self, state: Progressed) -> Way:
        """The facts of this direction that the rule needs."""

    def target_is_empty(self, within: KeyRange) -> bool: ...

    def content(self, within: KeyRange) -> tuple[int, str]:
        """Rows and tombstones of a range at the source, and a hash over them and their versions."""

    def incoming(self, state: Progressed, ranges: Sequence[KeyRange]) -> Reading:
        """Every row and tombstone of the ranges at the source."""

    def present(self, state: Progressed, ranges: Sequence[KeyRange]) -> Reading:
        """The same at the target."""

    def stage(self, ordinal: int) -> Staged:
        """A place at the target."""

    def staging_login(self) -> str: ...

    def explained(self, ranges: Sequence[KeyRange], error: LinkFailed) -> LinkFailed:
        """The error of rows that could not be staged; it names those that the target's encoding cannot hold."""

    def drop(self, staged: Any) -> None:
        """The rows are written, or will be read again."""

    def refuse_altered(self) -> None:
        """Raises StructureChanged when one of the two tables is another one than when the initialization began."""

    def write(
        self,
        staged: Any,
        ranges: Sequence[KeyRange],
        *,
        announced: bool,
        errors: int,
        progress: Progress,
        meter: Meter | None = None,
    ) -> Written:
        """Each range in one transaction. Raises ListenersCame, ConstraintViolated, LeaseLost, WriteContended."""


class TablePassages(Protocol):
    """Both ways through one table, and how far it is."""

    @property
    def state(self) -> Progressed: ...

    @property
    def ways(self) -> tuple[Passage, Passage]:
        """That of the site whose rows hold first."""

    @property
    def comparable(self) -> bool:
        """May whole ranges be compared by hash?"""

    @property
    def goes_straight(self) -> bool:
        """May rows go into the table as they are?"""

    def next_ranges(self, lower: Key | None, count: int) -> list[KeyRange]:
        """The next chunks in the order of the key; the last one has no end."""

    def refused_at(self, site: str) -> KeyRange | None:
        """The rows that a site refused, to be tried once more; forgets that it did."""

    def note(self, written: Sequence[tuple[str, Written]]) -> None:
        """Add what was written."""

    def advance(self, ranges: Sequence[KeyRange], rows: int, written: Sequence[tuple[str, Written]]) -> None:
        """The ranges are done; both sites hold them."""


class Load(AbstractContextManager["Load"], Protocol):
    """Fills an empty table straight from the other site's."""

    def declined(self) -> Iterator[KeyRange]:
        """Load all ranges in turn, but give those to the caller that the target does not take so, each in its turn.

        Raises ListenersCame when all that are left must go another way, StructureChanged, LeaseLost, SiteUnavailable.
        """


class Initialization(AbstractContextManager["Initialization"], Protocol):
    """One initialization of a pair, its ends open. Every method raises ConcordError alone."""

    def settle_equal(self, tell: Tell) -> Sequence[TableInitialization] | None:
        """Start both links where every table is equal already; None where rows have to move, nothing written."""

    def begin(self, progress: Progress, tell: Tell) -> Sequence[Progressed]:
        """Look at both sites, refuse what is not safe, and write down what every table needs.

        An initialization that was killed goes on.
        """

    def about(self, table: str) -> AbstractContextManager[None]:
        """While one table is initialized: whatever fails is a ConcordError that names it."""

    def open_table(self, state: Progressed, progress: Progress) -> TablePassages:
        """Both ways through one table, its positions taken before the first chunk is read."""

    def without_indexes(self, table: Any, progress: Progress) -> AbstractContextManager[None]:
        """While an empty table is loaded, where that is asked for and the installer may."""

    def load(self, table: Any, progress: Progress, meter: Meter) -> Load:
        """The load of a table that goes straight."""

    def finish(self, states: Iterable[Progressed], progress: Progress) -> Sequence[TableInitialization]:
        """Verify what no chunk could, and let both links start.

        Raises ConstraintViolated with the rows that were refused; then their tables are not initialized.
        """

    def clean_up(self) -> None:
        """Drop the rest of staging at both sites."""
