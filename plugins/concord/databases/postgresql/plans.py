"""How the statements of the write step are planned."""

#: The plan must follow the staged rows by primary key (performance.md: a hash join reads the whole table).
BY_KEY = ("SET LOCAL enable_hashjoin = off", "SET LOCAL enable_mergejoin = off")
ANY_PLAN = ("SET LOCAL enable_hashjoin = on", "SET LOCAL enable_mergejoin = on")
