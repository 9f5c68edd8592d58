"""New rows out of two: what both sites did to a row, in one row, wherever that can be said (S4-053, S4-073).

A resolver that merges gives values to columns; it does so alike whichever of the two links asks. The next resolver
of the chain settles the columns that it leaves open: another one that merges, or one that chooses a row. Values are
the database's own exact texts, by canonical column; None is NULL.

Three-way rules need the row that both versions come from. It is known when one side kept it as its before-image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from itertools import chain
from typing import NamedTuple, TypeAlias

from concord.rules.resolver import Contender, Resolver, Row, passed
from concord.values.text_form import TextForm
from concord.versions.conflict import Decision, Winner
from concord.versions.row_version import RowVersion, Vector, next_stamp, unite

#: Derivation of a merged version: an edit has 0.
DERIVED = 1
#: Of a version that a hook has made, and of all that come of it but users' edits; a repair of it counts on. No other
#: hook changes such a row: two of them would answer each other without end (S3-13).
BY_HOOK = 1 << 16

#: A custom function's mark that it judges what both sites did, not what they left.
ADDS_UP = "adds_up"
#: And its wish to see the version that both come from (S4-152).
COMMON = "common"

#: Digits enough for every sum and every half of what a database holds.
_EXACT = Context(prec=300_000, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
_READ = Context(prec=300_000, traps=[])  #: a text that is none, or has too many digits, is no number

NO_COMMON_VERSION = "the common version is not known"
NO_ROW = "one side deleted the row"


class Pair(NamedTuple):
    """The two rows of a conflict, and the one that both come from where it is known."""

    source: Row
    target: Row
    common: Row | None


class Settled(NamedTuple):
    """The columns that a resolver gives a value to; and why, or why it gives none."""

    values: Row
    reason: str


def meet(one: Vector, other: Vector) -> dict[str, tuple[int, int]]:
    """The greatest vector that both include: what two versions have in common."""
    common = {origin: min(one[origin], other[origin]) for origin in one.keys() & other.keys()}
    return {origin: dot for origin, dot in common.items() if dot > (0, 0)}


def common_row(one: Contender, other: Contender) -> Row | None:
    """The row that both versions come from, if one of the sides kept it.

    Its vector is exactly what both have in common. Or every site had agreed on it (rule 10): all that was made since
    comes from it, but for inserts. Both may have seen something later.
    """
    shared = meet(one.version.vector, other.version.vector)
    sides = [(side.base, by.version) for side, by in ((one, other), (other, one)) if side.base]
    known = (base.row for base, _ in sides if dict(base.vector) == shared)
    agreed = ((base, by) for base, by in sides if base.agreed and not by.born)
    return next(chain(known, (base.row for base, _ in agreed if meet(shared, base.vector) == shared)), None)


def merged_version(
    one: RowVersion, other: RowVersion, here: str, now_us: int, stamp_floor: int
) -> RowVersion:
    """A version of the deciding site that includes both: later than all they know, and than the stamp floor.

    The site that writes it stamps it under lock, as it would a user's edit. An edit that has not seen it can not be
    taken for one that has.
    """
    derived = BY_HOOK if max(one.derived, other.derived) >= BY_HOOK else DERIVED
    return _made_of(one, other, derived, here, now_us, stamp_floor)


def hooked_version(
    one: RowVersion, other: RowVersion, here: str, now_us: int, stamp_floor: int
) -> RowVersion:
    """The same of a row that a hook of that site has changed before it was written over the other one (S3-13)."""
    return _made_of(one, other, BY_HOOK, here, now_us, stamp_floor)


def _made_of(
    one: RowVersion, other: RowVersion, derived: int, here: str, now_us: int, stamp_floor: int
) -> RowVersion:
    vector = unite(one.vector, other.vector)
    changed_at = next_stamp(vector, now_us, stamp_floor)
    vector[here] = (changed_at, derived)
    return RowVersion(here, changed_at, derived, vector, deleted=False, born=one.born or other.born)


@dataclass(frozen=True, slots=True)
class Average:
    """Half of the sum, rounded to the column's scale, half to even."""

    column: str
    form: TextForm | None = None  #: of the column; None takes any number

    @property
    def name(self) -> str:
        return f"average({self.column})"

    def settle(self, pair: Pair) -> Settled:
        ours, theirs = _number(pair.source, self.column), _number(pair.target, self.column)
        if ours is None or theirs is None:
            return Settled({}, f"no value of {self.column}")
        half = _EXACT.multiply(_EXACT.add(ours, theirs), Decimal("0.5"))
        if (text := _as_value(half, self.form)) is None:
            return Settled({}, f"the average of {self.column} is out of range")
        return Settled({self.column: text}, f"the average of {self.column}")


@dataclass(frozen=True, slots=True)
class Additive:
    """Current + (new - old): what both sites added to the common version, or took from it (S4-073)."""

    columns: tuple[str, ...]
    forms: Mapping[str, TextForm]

    @property
    def name(self) -> str:
        return f"additive({', '.join(self.columns)})"

    def settle(self, pair: Pair) -> Settled:
        if pair.common is None:
            return Settled({}, NO_COMMON_VERSION)
        sums = {column: self._sum(column, pair, pair.common) for column in self.columns}
        values = {column: text for column, text in sums.items() if text is not None}
        open_ = [column for column, text in sums.items() if text is None]
        without = f"; no sum of {', '.join(open_)}" if open_ else ""
        return Settled(values, f"both changes of {', '.join(values) or 'nothing'}{without}")

    def adds_up(self, source: Contender, target: Contender) -> bool:
        """Of two rows that are alike: did both sites add to a number, as far as anybody knows?"""
        ours, theirs = source.live, target.live
        if ours is None or theirs is None:
            return False
        common = common_row(source, target)
        return any(self._added(column, ours, common) for column in self.columns)

    def _added(self, column: str, row: Row, common: Row | None) -> bool:
        new = _number(row, column)
        old = new if common is None else _number(common, column)
        return new is not None and old is not None and (common is None or new != old)

    def _sum(self, column: str, pair: Pair, common: Row) -> str | None:
        ours, theirs, old = (_number(row, column) for row in (pair.source, pair.target, common))
        if ours is None or theirs is None or old is None:
            return None
        return _as_value(_EXACT.subtract(_EXACT.add(ours, theirs), old), self.forms.get(column))


@dataclass(frozen=True, slots=True)
class MergeColumns:
    """Column by column: what only one site changed since the common version is taken from there."""

    name: str = "merge_columns"

    def settle(self, pair: Pair) -> Settled:
        if pair.common is None:
            return Settled({}, NO_COMMON_VERSION)
        old, values, both = pair.common, {}, []
        for column in sorted(pair.source.keys() & pair.target.keys() & old.keys()):
            ours, theirs = pair.source[column], pair.target[column]
            if theirs in (old[column], ours):
                values[column] = ours
            elif ours == old[column]:
                values[column] = theirs
            else:
                both.append(column)
        contested = f"; both changed {', '.join(both)}" if both else ""
        return Settled(values, f"each column from the site that changed it{contested}")


@dataclass(frozen=True, slots=True)
class Custom:
    """A function of somebody else's. It is asked over batches, and never while rows are locked."""

    entry_point: str  #: `package.module:function`
    adding: bool = False  #: asked about rows that are alike as well
    three_way: bool = False  #: shown the version that both come from, where that is known

    @classmethod
    def of(cls, argument: str) -> Custom:
        """As the configuration and the ledger write it: `package.module:function`, and its options behind it."""
        entry_point, *options = argument.split(", ")
        return cls(entry_point, ADDS_UP in options, COMMON in options)

    @property
    def name(self) -> str:
        options = {ADDS_UP: self.adding, COMMON: self.three_way}
        chosen = (option for option, is_chosen in options.items() if is_chosen)
        return f"custom({', '.join([self.entry_point, *chosen])})"

    def adds_up(self, source: Contender, target: Contender) -> bool:
        """Of two rows that are alike: may the function add up what both sites did? It alone knows."""
        return self.adding and source.live is not None and target.live is not None


Merger: TypeAlias = Average | Additive | MergeColumns
Link: TypeAlias = Resolver | Merger | Custom  # of a chain


def decide(chain: Sequence[Link], source: Contender, target: Contender) -> Decision:
    """Columns are settled by the resolvers that merge, the rest of the row by the first that chooses.

    Without one that merges: the first opinion that names a winner. The reason says of every resolver before it why
    it was undecided, and of every one that merges what it did.
    """
    merging = _Merging(source, target)
    for resolver in chain:
        if isinstance(resolver, Custom):
            return Decision(Winner.AGAIN, resolver.name, "asked outside of the transaction")
        if isinstance(resolver, Average | Additive | MergeColumns):
            if (made := merging.ask(resolver)) is not None:
                return made
            continue
        winner, reason = resolver.opinion(source, target)
        if winner is not None:
            return merging.over(winner, resolver.name, reason)
        merging.reasons.append(passed(resolver.name, reason))
    raise AssertionError("every chain ends in latest_timestamp")


@dataclass(slots=True)
class _Merging:
    """The values that the resolvers of a chain have settled so far."""

    source: Contender
    target: Contender
    settled: dict[str, str | None] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def ask(self, merger: Merger) -> Decision | None:
        """The decision, where nothing in which the rows differ is left open."""
        ours, theirs = self.source.live, self.target.live
        if ours is None or theirs is None:
            self.reasons.append(passed(merger.name, NO_ROW))
            return None
        values, reason = merger.settle(Pair(ours, theirs, common_row(self.source, self.target)))
        self.reasons.append(passed(merger.name, reason))
        if values.keys() - self.settled.keys():
            self.names.append(merger.name)
        self.settled = {**values, **self.settled}
        if any(ours[column] != theirs[column] for column in ours.keys() - self.settled.keys()):
            return None
        return self._made({**theirs, **self.settled}, ours, theirs)

    def over(self, winner: Winner, resolver: str, reason: str) -> Decision:
        """The settled columns in the row of the winner."""
        self.reasons.append(reason if not self.names else passed(resolver, reason))
        ours, theirs = self.source.live, self.target.live
        if (
            self.settled
            and winner in (Winner.SOURCE, Winner.TARGET)
            and ours is not None
            and theirs is not None
        ):
            self.names.append(resolver)
            rows = {Winner.SOURCE: ours, Winner.TARGET: theirs}
            new = {**rows[winner], **self.settled}
            if new != rows[winner] and (made := self._made(new, ours, theirs)) is not None:
                return made
        return Decision(winner, resolver, "; ".join(self.reasons))

    def _made(self, new: Row, ours: Row, theirs: Row) -> Decision | None:
        """A row that is one side's already needs no new version; two that are alike need no merge."""
        if new == ours == theirs:
            return None
        winner = Winner.SOURCE if new == ours else Winner.TARGET if new == theirs else Winner.MERGED
        row = new if winner is Winner.MERGED else None
        return Decision(winner, ", ".join(self.names), "; ".join(self.reasons), row)


def _number(row: Row, column: str) -> Decimal | None:
    """The value as a number; None for NULL, NaN, infinity, and what is none."""
    number = _READ.create_decimal(row.get(column) or "NaN")
    return number if number.is_finite() else None


def _as_value(number: Decimal, form: TextForm | None) -> str | None:
    """The number as the column writes it; None where the column cannot hold it."""
    if form is not None and form.type != "numeric":
        number = number.quantize(Decimal(1).scaleb(-(form.scale or 0)), context=_EXACT)
    text = f"{abs(number) if number == 0 else number:f}"  # no type writes a negative zero
    return text if form is None or form.fits(text) else None
