"""How the rows of one table travel: which columns, under which aliases, in which types.

Columns travel as c0, c1, … in the order of their names, so that no odd identifier meets Spark. A shape is in the
site's own columns; `manipulation` says what they are in canonical form. Where no site has one, both ends agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from concord.databases.contract.quoting import literal
from concord.databases.contract.rows import VERSION_TYPES
from concord.databases.postgresql.capture import before_image
from concord.databases.postgresql.capture.marks import SiteMarks
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts import row_image
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.rows import row_filter
from concord.databases.postgresql.rows.canonical import canonical_texts, structure_of
from concord.rules.policy import Policy
from concord.tables.manipulation import NOTHING, Manipulation
from concord.tables.privacy import at_site
from concord.tables.replication_set import ReplicatedTable
from concord.tables.row_filter import RowFilter
from concord.tables.structure import Structure
from concord.values.text_form import TextForm, form_of

#: Every statement's names of a shadow row (present) and a verdict: there the key stands beside Concord's columns.
BESIDE_OUR_COLUMNS = ("p", "v", "n")


@dataclass(frozen=True, slots=True)
class Ownership:
    """Which rows of a table with owners a site should change; None where it owns none."""

    mine: RowFilter | None


@dataclass(frozen=True, slots=True)
class Shape:
    """One table at one site, as a link sees it."""

    shadow: Shadow
    columns: tuple[Column, ...]  #: the site's own that travel, by name
    policy: Policy
    site: str
    manipulation: Manipulation = NOTHING
    where: RowFilter | None = None  #: the rows that are shared, by canonical columns; None is all
    ownership: Ownership | None = None  #: where rows have owners
    private: frozenset[str] = frozenset()  #: the site's own columns of which no message tells a value

    @property
    def name(self) -> str:
        return self.shadow.name

    @property
    def table(self) -> Table:
        return self.shadow.table

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.name in self.shadow.key)

    @property
    def rest(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.name not in self.shadow.key)

    @property
    def updated(self) -> tuple[Column, ...]:
        """The columns that may change while the key stays the same."""
        return tuple(c for c in self.columns if c.name not in self.shadow.key or c.type.has_several_forms)

    @property
    def generates_key(self) -> bool:
        """The site numbers new rows itself: by an identity column, or by a sequence as a column's default."""
        return any(column.identity or "nextval(" in (column.default or "") for column in self.key)

    @property
    def structure(self) -> Structure:
        return structure_of(self.site, self.shadow, self.manipulation)

    @property
    def key_is_private(self) -> bool:
        return not self.private.isdisjoint(self.shadow.key)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def key_names(self) -> tuple[str, ...]:
        return self.shadow.key

    @property
    def spark_types(self) -> tuple[str, ...]:
        return tuple(column.type.spark for column in self.columns)

    @property
    def text_forms(self) -> tuple[TextForm | None, ...]:
        return tuple(form_of(column.type.sql) for column in self.columns)

    @property
    def marks(self) -> SiteMarks | None:
        """The application's marks on the row, where no trigger watches the table."""
        return self.shadow.marks

    @property
    def by_log(self) -> bool:
        return self.shadow.by_log

    @property
    def registers(self) -> bool:
        """Are edits changes only once they are registered? Triggers have each told in its own transaction."""
        return not self.shadow.has_triggers

    @property
    def is_relayed(self) -> bool:
        return any(column.type.relayed for column in self.columns)

    @property
    def relayed(self) -> Shape:
        """The same where its rows go from server to server: what may, travels as what it is."""
        return self._travelling(relayed=True)

    @property
    def through_arrow(self) -> Shape:
        """The same where they do not: what Arrow has not, travels as text."""
        return self._travelling(relayed=False)

    def _travelling(self, *, relayed: bool) -> Shape:
        columns = [replace(each, type=replace(each.type, relayed=relayed)) for each in self.columns]
        return replace(self, columns=tuple(columns))

    def readable_with(self, other: Shape) -> Shape:
        """The same, read so that equal rows read alike: a mark as exactly as both sites can hold it (F18)."""
        if self.marks is None or other.marks is None:
            return self
        marks = self.marks.telling(other.marks.type.digits)
        shadow = replace(self.shadow, marks=marks)
        return replace(self, shadow=shadow, columns=marks.typed(self.columns))

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(self.alias(column) for column in self.columns)

    def alias(self, column: Column) -> str:
        return f"c{self.columns.index(column)}"

    @property
    def key_aliases(self) -> tuple[str, ...]:
        return tuple(self.alias(column) for column in self.key)

    @property
    def spark_schema(self) -> str:
        """DDL of the rows as they travel: the columns, then the version."""
        columns = [f"{self.alias(column)} {column.type.spark}" for column in self.columns]
        return ", ".join(columns + [f"{name} {kind}" for name, kind in VERSION_TYPES.items()])

    @property
    def base_types(self) -> Mapping[str, str]:
        """The before-image beside the version, where the table keeps one."""
        return before_image.TYPES if self.shadow.keeps_base else {}

    def candidate_schema(self, more: Iterable[Column]) -> str:
        """DDL of a candidate: the key, the columns that it brings beside it, then the version."""
        brought = [*self.key, *more]
        columns = [f"{self.alias(column)} {column.type.spark}" for column in brought]
        return ", ".join(columns + [f"{name} {kind}" for name, kind in VERSION_TYPES.items()])

    def key_in(self, row: str, column: Column) -> str:
        """A key column of the row that a statement calls `row`."""
        return f"{row}.{self.shadow.key_column(column.name) if row in BESIDE_OUR_COLUMNS else column.sql}"

    def same_key(self, left: str, right: str) -> str:
        """The join condition on the key between two row aliases."""
        return " AND ".join(
            f"{self.key_in(left, column)} = {self.key_in(right, column)}" for column in self.key
        )

    def keys_of(self, row: str) -> str:
        return ", ".join(self.key_in(row, column) for column in self.key)

    def canonical_key(self, row: str) -> list[str]:
        """The key as every site knows it, as exact texts in the order of their canonical names (F26)."""
        texts = {column.name: column.type.exact(self.key_in(row, column)) for column in self.key}
        return [text for _, text in sorted(canonical_texts(self.manipulation, texts).items())]

    def canonical_row(self, row: str) -> list[str]:
        """The whole row likewise: what two sites that keep a table differently can compare."""
        texts = {column.name: column.type.exact(f"{row}.{column.sql}") for column in self.columns}
        return [text for _, text in sorted(canonical_texts(self.manipulation, texts).items())]

    @property
    def key_list(self) -> str:
        """The key as a shadow table names it."""
        return ", ".join(self.shadow.key_column(column.name) for column in self.key)

    def differs(self, columns: Sequence[Column]) -> str:
        """Condition: the base row `t` and the staged row `s` are not the same image in these columns.

        Compared by image, not by value, so that 1.0 and 1.00 stay as the user wrote them (F69). Columns come first
        where that is the same and cheap, a number or a time: most rows differ in one of them.
        """
        cheap = [column for column in columns if column.type.has_one_image]
        rest = [column for column in columns if not column.type.has_one_image]
        conditions = [f"t.{c.sql} IS DISTINCT FROM {c.type.incoming(f's.{c.sql}')}" for c in cheap]
        if rest:
            ours = ", ".join(f"t.{column.sql}" for column in rest)
            theirs = ", ".join(column.type.incoming(f"s.{column.sql}") for column in rest)
            conditions.append(f"record_image_ne(ROW({ours}), ROW({theirs}))")
        return f"({' OR '.join(conditions)})" if conditions else "false"

    @property
    def unique_columns(self) -> tuple[Column, ...]:
        """Columns in which two rows can get into each other's way; all of them where the catalogue names none."""
        names = {name for unique in self.table.unique_keys for name in unique}
        return tuple(each for each in self.updated if each.name in names) or self.updated

    def image(self, row: str) -> str:
        """The whole row as a JSON object of exact texts; NULL stays null, every type casts back (F69, F75)."""
        return row_image.image(self.columns, row, staged=row == "s")

    def in_scope(self, row: str) -> str:
        """Condition: the base row that a statement calls `row` is shared. Never NULL."""
        return row_filter.condition(self.where, self.canonical_column, row) if self.where else "true"

    def left_elsewhere(self, row: str) -> str:
        """Condition on a shadow row: it left the filter of another link, and has no base row here."""
        own = literal(self.where.fingerprint if self.where else "")
        return f"coalesce({row}.out_of_scope <> {own}, false)"

    def owned(self, row: str) -> str:
        """Condition: the base row is the site's to change. Never NULL."""
        if self.ownership is None:
            return "true"
        mine = self.ownership.mine
        return row_filter.condition(mine, self.canonical_column, row) if mine else "false"

    @property
    def seen(self) -> Mapping[str, Column]:
        """The canonical columns that must be seen to decide under lock, and the site's own that hold them."""
        return {column.name: column for column in self.columns} if self.policy.merges else self.asked

    @property
    def asked(self) -> Mapping[str, Column]:
        """The same of a decision in Spark."""
        return {column.name: column for column in self.rest} if self.policy.asks else self.chosen

    @property
    def chosen(self) -> Mapping[str, Column]:
        """The same of the resolvers that choose between two rows."""
        found = {name: self.canonical_column(name) for name in self.policy.columns}
        return {name: column for name, column in found.items() if column is not None}

    @property
    def comparable_aliases(self) -> tuple[str, ...] | None:
        """The aliases by which Spark tells rows of one key apart; None where a key is written in several ways."""
        if any(column.type.has_several_forms for column in self.key):
            return None
        return tuple(self.alias(column) for column in self.rest)

    @property
    def asked_aliases(self) -> Mapping[str, str]:
        return {name: self.alias(column) for name, column in self.asked.items()}

    @property
    def forms(self) -> Mapping[str, TextForm]:
        """How the columns read as text, where that can be judged."""
        forms = zip(self.names, self.text_forms, strict=True)
        return {name: form for name, form in forms if form is not None}

    @property
    def staged_texts(self) -> tuple[str, ...]:
        """JSON texts beside a decision: the before-image, and the new row that somebody else's function made."""
        return (*self.base_types, *(["merged"] if self.policy.asks else []))

    def canonical_column(self, name: str) -> Column | None:
        return row_filter.canonical_column(self.shadow, self.manipulation, name)


def shape_of(wanted: ReplicatedTable, site: str, table: Table) -> Shape:
    """The shape of one table at one site: its columns that are replicated and not generated, by name."""
    shadow = Shadow.of(wanted, site, table)
    columns = sorted(shadow.columns, key=lambda column: column.name)
    return Shape(
        shadow,
        tuple(columns),
        wanted.policy,
        site,
        wanted.manipulation_at(site),
        wanted.where,
        Ownership(wanted.owners.get(site)) if wanted.owners else None,
        frozenset(at_site(wanted.private, wanted.manipulation_at(site))),
    )
