"""Tables of which an index, a constraint, a generated column or a domain fails in Concord's sessions."""

from tests.given.site import APPLIER

#: A function that finds another one by search_path, which a user's session has and Concord's have not.
FUNCTIONS = (
    "CREATE FUNCTION norm(v text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN lower(v); END$$",
    "CREATE FUNCTION inner_sql(v text) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT norm(v) || 'x'$$",
    "CREATE FUNCTION inner_pl(v text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN norm(v) || 'x'; END$$",
    f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {APPLIER}",
)
BOOK = "CREATE TABLE book (id int PRIMARY KEY, title text)"
TABLES = {
    "index": f"{BOOK}; CREATE INDEX ON book (inner_{{kind}}(title))",
    "unique": f"{BOOK}; CREATE UNIQUE INDEX ON book (inner_{{kind}}(title))",
    "check": "CREATE TABLE book (id int PRIMARY KEY, title text CHECK (inner_{kind}(title) <> ''))",
    "generated": "CREATE TABLE book (id int PRIMARY KEY, title text,"
    " made text GENERATED ALWAYS AS (inner_{kind}(title)) STORED)",
    "domain": "CREATE DOMAIN words AS text CHECK (inner_{kind}(VALUE) <> '');"
    " CREATE TABLE book (id int PRIMARY KEY, title words)",
}
#: From PostgreSQL 17 on, CREATE INDEX itself has no such search_path: the function loses it afterwards.
INDEX_OF_SQL = (
    "ALTER FUNCTION inner_sql SET search_path = public",
    "CREATE INDEX ON book (inner_sql(title))",
    "ALTER FUNCTION inner_sql RESET search_path",
)
OTHERS = ("CREATE TABLE shop (id int PRIMARY KEY, name text)", "INSERT INTO shop VALUES (1, 'one')")
