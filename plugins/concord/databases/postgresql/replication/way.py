"""The way of one table's rows from the publisher's columns to the subscriber's, as far as they fit (S0-06)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from concord.databases.postgresql.entries.mapped_lines import TableMapping
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.types import ColumnType
from concord.databases.postgresql.log.published import PublishedTable
from concord.databases.postgresql.replication import history_table
from concord.jobs.kept_history import KeptHistory
from concord.tables import replication_set
from concord.tables.manipulation import AnyOperation, Manipulation
from concord.tables.privacy import at_site
from concord.tables.row_mapping import Columns, RowMapping, changed_names
from concord.values.text_form import TextForm, form_of


@dataclass(frozen=True)
class Way:
    """One table at both sites."""

    wanted: replication_set.ReplicatedTable
    source: PublishedTable
    table: Table
    publisher: str
    subscriber: str
    history: KeptHistory | None = None  #: the subscriber keeps every version of a row

    @property
    def here(self) -> Manipulation:
        """The publisher's way of keeping it."""
        return self.wanted.manipulation_at(self.publisher)

    @property
    def there(self) -> Manipulation:
        """The subscriber's."""
        return self.wanted.manipulation_at(self.subscriber)

    def names(self, own: Sequence[str]) -> tuple[str, ...]:
        """The subscriber's columns that hold these of the publisher's."""
        return self.there.own_names(self.here.canonical_names(own))

    @property
    def sent(self) -> tuple[str, ...]:
        """The publisher's columns, in the order in which the log brings them."""
        return tuple(column.name for column in self.source.columns)

    @property
    def kept(self) -> tuple[str, ...]:
        """The subscriber's columns that they become, and those with one value in every row."""
        return (*self.names(self.sent), *self.there.constants)

    @cached_property
    def changed(self) -> frozenset[str]:
        """Those of the subscriber's columns that hold other values than the publisher's."""
        return changed_names(self.here, self.there)

    def table_at(self, place: int) -> ReplicatedTable:
        """As it is staged and replayed."""
        return ReplicatedTable(
            self.source.name,
            place,
            self.table,
            tuple(map(self.table.column, self.kept)),
            self.names(self.source.key),
            self.names(self.source.before),
            history=self.history,
            mapping=self._mapping if self.changed else None,
        )

    @property
    def _mapping(self) -> TableMapping:
        truths = {column.name for column in self.source.columns if column.type.root == "bool"}
        return TableMapping(
            self._from_to(self.sent, self.kept),
            self._from_to(self.source.before, self.names(self.source.before)),
            frozenset(truths),
        )

    def _from_to(self, sent: Sequence[str], kept: Sequence[str]) -> RowMapping:
        """Of these columns alone."""
        here, there = _of_own(self.here.operations, sent), _of_own(self.there.operations, kept)
        private = at_site(self.wanted.private, self.here)
        forms = (_forms(self.source.table, sent), _forms(self.table, kept))
        return RowMapping(
            Columns(self.publisher, sent, here, forms[0], self.source.key, private),
            Columns(self.subscriber, kept, there, forms[1], self.names(self.source.key)),
        )

    def problems(self) -> Iterator[str]:
        """Why rows of the publisher's table do not fit into the subscriber's, each one line."""
        if unmade := [*self._unmade(), *self._clashes()]:
            yield from unmade
            return
        yield from self._cut_keys()
        yield from self._other_columns()
        key = self.names(self.source.key)
        if self.history is not None:
            yield from history_table.problems(self.table, key, self.history)
        elif set(key) not in [{*self.table.primary_key}, *({*each} for each in self.table.unique_keys)]:
            yield f"{self.table.name} has no unique index on its replication key ({', '.join(key)})"
        for name in key:
            if name in self.changed and form_of(self.table.column(name).type.sql) is None:
                yield f"{self.table.name}.{name} is a mapped key, of a type whose texts cannot be judged"

    @cached_property
    def _types(self) -> dict[str, ColumnType | None]:
        """Of the subscriber's columns that are sent: the publisher's, where the value stays as it is."""
        sent = {self.names((column.name,)): column.type for column in self.source.columns}
        same = {
            names[0]: kind for names, kind in sent.items() if len(names) == 1 and names[0] not in self.changed
        }
        return {name: same.get(name) for name in self.kept}

    def _unmade(self) -> Iterator[str]:
        """Operations that have not all that they take, and columns that are made twice."""
        canonical, table = self.here.canonical_names(self.sent), self.table.name
        for each in self.there.operations:
            for name in each.canonical:
                if name not in canonical:
                    yield f"{table} has a mapping of {name} ({each}), and the publisher sends no such column"
        for names in (canonical, self.kept):
            for name in sorted({name for name in names if names.count(name) > 1}):
                yield f"{table} would get the column {name} twice; list the columns that are replicated, or rename one"

    def _clashes(self) -> Iterator[str]:
        """A column of the publisher's has the name of one that a history has of its own."""
        own = () if self.history is None else self.history.own
        if clash := sorted(set(own) & set(self.kept)):
            yield (
                f"the publisher's table has a column {clash[0]}, which a history has of its own; rename it by a mapping"
                " of this site, or the history's `version`"
            )

    def _cut_keys(self) -> Iterator[str]:
        """Half of a combined column identifies no row (S0-23)."""
        key, canonical = {*self.source.key}, {*self.here.canonical_names(self.source.key)}
        taken = [
            *((each, {*each.own}, key) for each in self.here.operations),
            *((each, {*each.canonical}, canonical) for each in self.there.operations),
        ]
        for each, columns, of_key in taken:
            if columns & of_key and not columns <= of_key:
                yield f"{self.table.name} has key columns that are mapped with others ({each}); keep the key to itself"

    def _other_columns(self) -> Iterator[str]:
        """Columns that are missing, that nothing fills, or that are of another type."""
        own = () if self.history is None else self.history.own
        columns = {column.name: column for column in self.table.sent if column.name not in own}
        for name in sorted(self._types.keys() | columns.keys()):
            sent, column = self._types.get(name), columns.get(name)
            if column is None:
                yield f"{self.table.name} lacks the column {name} of {self.publisher}; {self._added(sent)}"
            elif name not in self.kept:
                if column.must_be_given:
                    yield (
                        f"{self.table.name}.{name} has no default, and {self.publisher} has no such column; give it one"
                    )
            elif sent is not None and sent.descriptor != column.type.descriptor:
                types = f"({column.type.descriptor}, {sent.descriptor})"
                yield f"{self.table.name}.{name} is of another type than at {self.publisher} {types}"

    def _added(self, sent: ColumnType | None) -> str:
        """The advice about a column that is missing."""
        if self.history is None:
            return "add it"
        return "add it to the history" if sent is None else f"add it to the history as {sent.sql}"


def _of_own(operations: Sequence[AnyOperation], names: Sequence[str]) -> Manipulation:
    """Those that make nothing but these columns of a site."""
    return Manipulation(operations=tuple(each for each in operations if set(each.own) <= set(names)))


def _forms(table: Table, names: Sequence[str]) -> dict[str, TextForm | None]:
    return {name: form_of(table.column(name).type.sql) for name in names}
