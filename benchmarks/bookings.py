"""The measured table: what its rows look like, and what users change in them, as SQL."""

from dataclasses import dataclass

from concord.tables.replication_set import ReplicatedTable, TableName

TABLE = ReplicatedTable(table=TableName(schema_name="public", name="bookings"))

COLUMNS = (
    *("id", "flight", "seat", "passengers", "miles", "reference", "remarks"),
    *("price", "changed", "paid", "extras"),
)

#: Query of the count and the content of all rows; equal where all rows are.
CONTENT = "SELECT count(*), sum(hashtextextended(b::text, 0)) FROM public.bookings b"

#: Edits that nobody measures: the first run of a program reads it and its libraries from the disk.
WARM_UP = 10

#: A prime above any table's size: multiples of it, modulo the size, visit every row once, scattered.
_STRIDE = 2_654_435_761

_CREATE = """
CREATE TABLE public.bookings (
  id bigint NOT NULL, flight integer, seat integer, passengers integer, miles integer, reference text, remarks text,
  price numeric(12,2), changed timestamptz, paid boolean, extras jsonb)"""

_INDEXES = (
    "ALTER TABLE public.bookings ADD PRIMARY KEY (id)",
    "CREATE INDEX bookings_flight ON public.bookings (flight)",
)


def _row(number: str) -> str:
    """Some 200 bytes that depend on nothing but the row's number, so that two servers make the same rows."""
    return f"""
{number}, ({number} * 7919 % 336776)::int, ({number} % 400)::int, ({number} % 9 + 1)::int, ({number} % 20000)::int,
md5({number}::text), 'window seat, quiet, ' || md5(({number} * 31)::text), ({number} % 900000)::numeric / 100,
'2026-01-01 00:00+00'::timestamptz + {number} * interval '1 second', {number} % 3 = 0,
jsonb_build_object('meal', {number} % 12, 'bags', {number} % 4, 'tier', 'gold')"""


def filling(rows: int) -> str:
    """Query of the first so many rows."""
    return between("1", str(rows))


def between(first: str, last: str) -> str:
    """Query of the rows from one key to another, as the table is made with them."""
    return f"SELECT {_row('g')} FROM generate_series({first}::bigint, {last}::bigint) g"


def creation(rows: int) -> tuple[str, ...]:
    """Statements that make the table with this many rows; each runs outside a transaction."""
    return (
        _CREATE,
        f"INSERT INTO public.bookings {filling(rows)}",
        *_INDEXES,
        "VACUUM (ANALYZE) public.bookings",
    )


@dataclass(frozen=True)
class Edits:
    """Eight updates, one insert and one delete of ten, scattered over a table of `rows` rows, or a part.

    `before` is how many edits of earlier sets to pass over: no row is edited twice.
    """

    rows: int
    count: int
    before: int = 0
    first: int = 1  #: the first key of the part
    part: int = 0  #: how many rows it has that the table was made with; 0 for all

    @property
    def inserts(self) -> int:
        return max(1, self.count // 10)

    @property
    def deletes(self) -> int:
        return self.inserts

    @property
    def updates(self) -> int:
        return self.count - self.inserts - self.deletes

    @property
    def touched(self) -> int:
        """Edits of rows that the table was made with."""
        return self.count - self.inserts

    @property
    def keys(self) -> str:
        """Query of (id, kind); kind is `update`, `insert` or `delete`."""
        last = self.before + self.touched - 1
        return f"""
SELECT {self.first} + i * {_STRIDE} % {self.part or self.rows} AS id,
       CASE WHEN i >= {self.before + self.updates} THEN 'delete' ELSE 'update' END AS kind
  FROM generate_series({self.before}::bigint, {last}) i
UNION ALL
SELECT {self.rows + self.before} + i, 'insert' FROM generate_series(1::bigint, {self.inserts}) i"""

    @property
    def statements(self) -> tuple[str, ...]:
        """The edits of a site's users, and beside it the list `edited` of the rows, by which they do it."""
        return (
            "DROP TABLE IF EXISTS public.edited",
            f"CREATE TABLE public.edited AS {self.keys}",
            "ALTER TABLE public.edited ADD PRIMARY KEY (id)",
            "ANALYZE public.edited",
            """
UPDATE public.bookings b SET miles = b.miles + 500, price = b.price + 1.50, paid = NOT b.paid, changed = now(),
       remarks = 'changed, ' || md5(b.remarks), extras = b.extras || '{"upgraded": true}'
  FROM public.edited e WHERE e.id = b.id AND e.kind = 'update'""",
            "DELETE FROM public.bookings b USING public.edited e WHERE e.id = b.id AND e.kind = 'delete'",
            f"INSERT INTO public.bookings SELECT {_row('e.id')} FROM public.edited e WHERE e.kind = 'insert'",
        )

    @property
    def digest(self) -> str:
        """Query of the count and the content of the edited rows that exist; equal wherever they have arrived."""
        return (
            "SELECT count(*), coalesce(sum(hashtextextended(b::text, 0)), 0)"
            f" FROM public.bookings b JOIN ({self.keys}) e USING (id)"
        )
