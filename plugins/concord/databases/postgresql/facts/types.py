"""Which column types travel, and how: natively through Arrow, or as the database's own exact text. Where rows go from
one server to another and through no Arrow (`relay`), more of them are left as they are.

Text is exact for every type listed here, because each connection pins its settings (F20). A type that is not listed is
refused by name when a table is provisioned (F84).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from concord.values.text_form import form_of

#: type → (Spark type, staging type). Values equal after the round trip, infinity and NaN included.
NATIVE: dict[str, tuple[str, str]] = {
    "int2": ("smallint", "int2"),
    "int4": ("int", "int4"),
    "int8": ("bigint", "int8"),
    "float4": ("float", "float4"),
    "float8": ("double", "float8"),
    "bool": ("boolean", "bool"),
    "text": ("string", "text"),
    "varchar": ("string", "text"),
    "bytea": ("binary", "bytea"),
}

#: Types that servers of all versions write and read alike (binary), whatever a column adds to the type: none can
#: refuse a value. Not so intervals: since PostgreSQL 17 some are infinite, and an older server takes those for
#: others.
BINARY = frozenset(
    [
        "numeric",
        "date",
        "time",
        "timetz",
        "timestamp",
        "timestamptz",
        "json",
        "jsonb",
        "uuid",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
    ]
)

#: Of extensions, whose texts are exact.
_OF_EXTENSIONS = frozenset(
    [
        # of cube and pgvector: the shortest texts of their floats
        "cube",
        "vector",
        "halfvec",
        "sparsevec",
        # of PostGIS: the bytes that it sends, in hex
        "geometry",
        "geography",
        # of isn: a wrong check digit is marked by `!`, which is read as well
        "ean13",
        "isbn",
        "isbn13",
        "ismn",
        "ismn13",
        "issn13",
        "upc",
    ]
)


#: All that goes through its text form and comes back the same, and is not native.
AS_TEXT = (
    BINARY
    | _OF_EXTENSIONS
    | frozenset(
        [
            "bpchar",
            "char",
            "name",
            "interval",
            "bit",
            "varbit",
            "xml",
            "tsvector",
            "tsquery",
            "point",
            "line",
            "lseg",
            "box",
            "path",
            "polygon",
            "circle",
            "citext",
            "hstore",
            "ltree",
            "jsonpath",
            "pg_lsn",
            "xid8",
            "pg_snapshot",
            "txid_snapshot",
        ]
    )
)

#: Of these a text means another value at another site: it names an object, a place or a transaction of its database, is
#: written as the server's locale says, or leaves out what is behind an ISSN.
NOT_EXACT = frozenset(["money", "oid", "xid", "cid", "tid", "aclitem", "issn"])

#: Their operators live outside pg_catalog, where no connection of ours looks.
_OWN_OPERATORS = _OF_EXTENSIONS | frozenset(["citext", "hstore", "ltree"])

#: Cannot be a key: equal values have several forms, or are compared by an approximation (F42).
UNFIT_FOR_KEY = _OWN_OPERATORS | frozenset(
    [
        "float4",
        "float8",
        "json",
        "jsonb",
        "xml",
        "point",
        "line",
        "lseg",
        "box",
        "path",
        "polygon",
        "circle",
        "tsvector",
        "tsquery",
        "jsonpath",
        "interval",
        "pg_snapshot",
        "txid_snapshot",
    ]
)
#: Equal values of these may be written in several ways (F42).
SEVERAL_FORMS = frozenset(["numeric", "bpchar"])

#: Equal values of these are the same bytes. Not so floats (0 and -0), and texts of some collations.
ONE_IMAGE = frozenset(["int2", "int4", "int8", "bool", "uuid", "date", "timestamp", "timestamptz"])

#: Compared alike at every site (`values.sortable`): no collation orders them, and none is an approximation.
SORTABLE = frozenset(["int2", "int4", "int8", "numeric", "date", "timestamp", "timestamptz"])

#: The catalogue's names of the types that a mapping may name.
_CATALOGUE_NAMES = {
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "boolean": "bool",
    "character varying": "varchar",
}


def descriptor_of(spelled: str) -> str:
    """The descriptor of a type that a mapping names, such as `character varying(5)` or `numeric(12,2)`."""
    name, _, sizes = spelled.partition("(")
    modifier = -1
    if sizes:
        first, _, second = sizes.rstrip(")").partition(",")
        modifier = (int(first) << 16 | int(second) if second else int(first)) + 4
    return f"{_CATALOGUE_NAMES.get(name, name)}:{modifier}"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One column's type: its SQL spelling at this site, and what it is made of, comparable between sites."""

    sql: str  #: as the catalogue formats it, for casts
    descriptor: str  #: the same text at two sites means the same values
    kind: str  #: pg_type.typtype of the outermost type, 'a' for an array
    root: str  #: name of the type at the bottom of domains, arrays and ranges
    #: Stands in pg_catalog, where no user can give it a cast. It is the same type wherever it stands.
    built_in: bool = field(default=True, compare=False)
    #: Goes from server to server, and may travel as what it is (`relay`). It is the same type however it travels.
    relayed: bool = field(default=False, compare=False)

    @property
    def common(self) -> str:
        """The same at two sites when, and only when, values of one fit into the other."""
        return self.descriptor

    @property
    def travels_natively(self) -> bool:
        return self.kind == "b" and self.root in NATIVE

    @property
    def supported(self) -> bool:
        return self.root in NATIVE or self.root in AS_TEXT or self.root.startswith("enum:")

    @property
    def problem(self) -> str:
        """The reason why it is not supported, to be read after its name."""
        own = self.root in NOT_EXACT or self.root.startswith(("reg", "composite:", "pseudo:"))
        if self.built_in or own:
            return "which does not round-trip exactly"
        return (
            "which Concord does not know, so that nothing says that its text is exact; leave the column out"
        )

    @property
    def fit_for_key(self) -> bool:
        one_form = self.kind not in ("r", "m") or self.root not in SEVERAL_FORMS  # [1.0,2) and [1.00,2)
        of_rows = self.supported and self.kind != "a" and self.root not in UNFIT_FOR_KEY
        return of_rows and one_form and self.is_comparable

    @property
    def is_comparable(self) -> bool:
        """Does an operator in pg_catalog compare two of its values?"""
        if self.kind == "d":
            # PostgreSQL has none for domains over enums: it takes one of a type that a cast of theirs leads to.
            return not self.root.startswith("enum:") and self.root not in _OWN_OPERATORS
        return self.kind != "b" or self.built_in

    @property
    def sortable(self) -> bool:
        return self.kind in ("b", "d") and self.root in SORTABLE

    @property
    def mappable(self) -> bool:
        """Its values can be mapped: a text either is one of them, exactly so, or is refused."""
        return self.kind == "e" or (self.kind == "b" and form_of(self.sql) is not None)

    @property
    def has_several_forms(self) -> bool:
        """1.0 and 1.00 are one value: a key like that is compared by value, yet carried as it was written."""
        return self.root in SEVERAL_FORMS

    @property
    def has_one_image(self) -> bool:
        """Values that are equal are the same bytes."""
        return self.kind == "b" and self.root in ONE_IMAGE

    @property
    def spark(self) -> str:
        return NATIVE[self.root][0] if self.travels_natively else "string"

    @property
    def staging(self) -> str:
        if self.travels_in_binary:
            return self.root
        return NATIVE[self.root][1] if self.travels_natively else "text"

    @property
    def is_staged(self) -> bool:
        """A staged value is a value of the type, which no row of the table can be refused for."""
        return self.kind == "b" and self.descriptor == f"{self.staging}:-1"

    @property
    def travels_in_binary(self) -> bool:
        """A relayed value is a value of the type at both sites."""
        return self.relayed and self.kind == "b" and self.root in BINARY

    @property
    def is_alike_in_binary(self) -> bool:
        """Another server reads the text that one server writes of a column into a column of the same type."""
        return self.kind == "b" and (self.root in NATIVE or self.root in BINARY)

    def outgoing(self, expression: str) -> str:
        """SQL that turns a column into what travels."""
        as_it_is = self.travels_in_binary or (self.travels_natively and self.root != "varchar")
        return expression if as_it_is else self.exact(expression)

    def incoming(self, expression: str) -> str:
        """SQL that turns what travelled back into the column's type."""
        return expression if self.staging == self.sql else f"{expression}::{self.sql}"

    def staged(self, expression: str) -> str:
        """The value that travelled, as text, as `exact` says of the column it came from."""
        return self.exact(expression)

    def exact(self, expression: str) -> str:
        """The value as the database writes it; casting bpchar to text would cut its trailing blanks (F80).

        A cast of any type but PostgreSQL's own is its owner's to define: that function would run as whoever asks.
        """
        if not self.built_in or (self.kind in ("b", "d") and self.root == "bpchar"):
            return written(expression)
        return f"{expression}::text"


def written(expression: str) -> str:
    """The text of a value, made by the output function of its type and by no cast. NULL stays NULL.

    A composite value with a NULL in it is neither NULL nor `NOT NULL`, and yet a value.
    """
    return f"CASE WHEN {expression} IS DISTINCT FROM NULL THEN pg_catalog.format('%s', {expression}) END"
