"""Books that each belong to one of two sites, whose users change no others."""

from concord.tables.replication_set import NotOwned, ReplicatedTable
from concord.tables.row_filter_text import parse_row_filter
from concord.values.identifier import parse_table_name

BOOKS = (
    "CREATE TABLE book (id int PRIMARY KEY, region int, title text, seen int)",
    "INSERT INTO book SELECT n, CASE WHEN n < 5 THEN 1 ELSE 2 END, 'book ' || n FROM generate_series(1, 9) n",
)
OWNERS = {"london": parse_row_filter("region = 1"), "capetown": parse_row_filter("region = 2")}


def owned_books(**changed: object) -> ReplicatedTable:
    """London owns those of region 1, Cape Town those of region 2; changes of others' are refused."""
    made = ReplicatedTable(table=parse_table_name("public.book"), owners=OWNERS, not_owned=NotOwned.REFUSE)
    return made.model_copy(update=changed)
