"""Types whose equality is defined outside of pg_catalog, as those of extensions are: made in SQL, since the embedded
server has no extension. They have the names, the casts and the operator classes of `citext`, `ltree` and `hstore`."""

SCHEMA = "ext"


def _own_type(name: str, normal: str) -> tuple[str, ...]:
    """A type that reads and writes texts. Two values are equal if `normal`, SQL of `$1`, is the same text."""
    kind = f"{SCHEMA}.{name}"
    one, other = (f'({normal.replace("$1", place)}) COLLATE "C"' for place in ("$1::text", "$2::text"))
    operators = {"<": "lt", "<=": "le", "=": "eq", ">=": "ge", ">": "gt"}
    described = {
        "=": f", COMMUTATOR = OPERATOR({SCHEMA}.=), RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES"
    }
    pure = "LANGUAGE {} IMMUTABLE STRICT PARALLEL SAFE AS"
    internal, in_sql = pure.format("internal"), pure.format("sql")
    strategies = ", ".join(f"OPERATOR {n} {SCHEMA}.{sign}" for n, sign in enumerate(operators, 1))
    return (
        f"CREATE TYPE {kind}",
        f"CREATE FUNCTION {kind}_in(cstring) RETURNS {kind} {internal} 'textin'",
        f"CREATE FUNCTION {kind}_out({kind}) RETURNS cstring {internal} 'textout'",
        f"CREATE FUNCTION {kind}_recv(internal) RETURNS {kind} {internal} 'textrecv'",
        f"CREATE FUNCTION {kind}_send({kind}) RETURNS bytea {internal} 'textsend'",
        f"CREATE TYPE {kind} (INPUT = {kind}_in, OUTPUT = {kind}_out, RECEIVE = {kind}_recv, SEND = {kind}_send,"
        " INTERNALLENGTH = VARIABLE, STORAGE = extended, COLLATABLE = true)",
        f"CREATE CAST ({kind} AS text) WITHOUT FUNCTION AS IMPLICIT",
        f"CREATE CAST (text AS {kind}) WITHOUT FUNCTION AS ASSIGNMENT",
        f"CREATE FUNCTION {kind}_cmp({kind}, {kind}) RETURNS int {in_sql} $$ SELECT bttextcmp({one}, {other}) $$",
        f"CREATE FUNCTION {kind}_hash({kind}) RETURNS int {in_sql} $$ SELECT hashtext({one}) $$",
        *(
            f"CREATE FUNCTION {kind}_{word}({kind}, {kind}) RETURNS boolean {in_sql} $$ SELECT {one} {sign} {other} $$"
            for sign, word in operators.items()
        ),
        *(
            f"CREATE OPERATOR {SCHEMA}.{sign} (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = {kind}_{word}"
            f"{described.get(sign, '')})"
            for sign, word in operators.items()
        ),
        f"CREATE OPERATOR CLASS {kind}_ops DEFAULT FOR TYPE {kind} USING btree AS {strategies},"
        f" FUNCTION 1 {kind}_cmp({kind}, {kind})",
        f"CREATE OPERATOR CLASS {kind}_ops DEFAULT FOR TYPE {kind} USING hash AS OPERATOR 1 {SCHEMA}.=,"
        f" FUNCTION 1 {kind}_hash({kind})",
    )


#: No session has the schema in its search_path.
OWN_EQUALITY = (
    f"CREATE SCHEMA {SCHEMA}",
    f"GRANT USAGE ON SCHEMA {SCHEMA} TO an_application",
    *_own_type("citext", "lower($1)"),
    *_own_type("ltree", "$1"),
    *_own_type("hstore", "replace($1, ' ', '')"),
)
