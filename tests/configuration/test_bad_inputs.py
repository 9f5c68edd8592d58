"""Bad inputs that show in the file alone: one clear line each.

Left out here: 23 to 28 and 38 to 40, which only a database's catalogue shows; provisioning refuses them. 31 (a
resolver that is not deterministic) is refused as a whole: a resolver is a registered name, never code. 18 (a link
to itself, S4-175) is a notice, and 32 (equal priorities) no mistake: the site's name breaks the tie. So both are
tested to be accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import Problem
from tests.configuration.examples import VALID, spoiled

Problems = Callable[[str | bytes], tuple[Problem, ...]]

ONE_MORE_PAIR = """
  {name}:
    replication_set: flight_operations
    source: {source}
    target: {target}
"""


def with_pair(name: str, source: str, target: str) -> str:
    return VALID.rstrip() + ONE_MORE_PAIR.format(name=name, source=source, target=target)


FOUR_SITES = VALID.replace(
    "sites:\n", "sites:\n  paris: {connection: paris}\n  rome: {connection: rome}\n", 1
)

BAD_INPUTS = [
    # what it is, the text, line, key, a piece of the message, a piece of the hint
    pytest.param("", 1, "", "the file is empty", "begin with sites", id="1 empty file"),
    pytest.param("# nothing but a comment\n", 1, "", "the file is empty", "begin with", id="1 comments only"),
    pytest.param(
        spoiled("    readers: 2", "\treaders: 2"), 6, "", "a tab", "spaces only", id="2 tab as indentation"
    ),
    pytest.param(
        spoiled("    readers: 2", "    readers: 2\n    readers: 3"),
        7, "sites.capetown.readers", "duplicate key, first on line 6", "keep one", id="3 duplicate key",
    ),
    pytest.param(
        spoiled("    tables:", "    tabels:"),
        10, "replication_sets.flight_operations.tabels", "unknown key", "did you mean 'tables'?",
        id="4 misspelt key",
    ),
    pytest.param(
        spoiled("    source: london", "    souce: london"),
        19, "synchronizations.london_capetown.souce", "unknown key", "did you mean 'source'?",
        id="4 misspelt required key",
    ),
    pytest.param(
        spoiled("key: [carrier]", "key: &bomb [carrier]"),
        14, "replication_sets.flight_operations.tables[1].key", "anchors and aliases are refused",
        "write the value", id="5 anchor",
    ),
    pytest.param(
        spoiled("    readers: 2", "    readers: !!python/object/apply:os.system [id]"),
        6, "sites.capetown.readers", "YAML tags", "write a plain value", id="6 python object",
    ),
    pytest.param(
        VALID.encode() + b"# caf\xe9\n", 24, "", "not UTF-8", "save the file as UTF-8", id="7 Latin-1"
    ),
    pytest.param(VALID.encode("utf-16"), 1, "", "not UTF-8", "save the file as UTF-8", id="7 UTF-16"),
    pytest.param(b"\xef\xbb\xbf" + VALID.encode(), 1, "", "byte order mark", "without one", id="8 BOM"),
    pytest.param(VALID + "#" * 1_000_000, 1, "", "larger than 1 MB", "no data", id="9 huge file"),
    pytest.param(
        spoiled("  london: {connection: london}", "  no: {connection: london}").replace(
            "source: london", 'source: "no"'
        ),
        2, "sites.no", "no without quotes is a boolean", 'write "no" for the word', id="10 site named no",
    ),
    pytest.param(
        spoiled("    source: london", "    source: on"),
        19, "synchronizations.london_capetown.source", "on without quotes is a boolean", 'write "on"',
        id="10 on as a value",
    ),
    pytest.param(
        spoiled("readers: 2", "readers: 1e3"),
        6, "sites.capetown.readers", "a whole number expected", "such as 2", id="11 1e3 where int",
    ),
    pytest.param(
        spoiled("readers: 2", "readers: 010"),
        6, "sites.capetown.readers", "a whole number expected", "such as 2", id="11 octal where int",
    ),
    pytest.param(
        spoiled("readers: 2", "readers: 33"),
        6, "sites.capetown.readers", "too large", "32 or less", id="11 more readers than allowed",
    ),
    pytest.param(
        spoiled("14 days", "-14 days"),
        23, "synchronizations.london_capetown.tombstone_retention", "longer than zero", "14 days",
        id="12 negative interval",
    ),
    pytest.param(
        spoiled("14 days", "0s"),
        23, "synchronizations.london_capetown.tombstone_retention", "longer than zero", "14 days",
        id="13 interval of zero",
    ),
    pytest.param(
        spoiled("14 days", "14"),
        23, "synchronizations.london_capetown.tombstone_retention", "needs a unit", "14 days",
        id="14 interval without unit",
    ),
    pytest.param(
        spoiled("14 days", "20m"),
        23, "synchronizations.london_capetown.tombstone_retention", "minutes or months", "write min",
        id="14 ambiguous unit",
    ),
    pytest.param(
        spoiled("  london_capetown:", "  '':"),
        17, "synchronizations.''", "not a name", "1 to 63 lower-case letters", id="15 empty name",
    ),
    pytest.param(
        spoiled("  london_capetown:", f"  {'x' * 300}:"),
        17, f"synchronizations.'{'x' * 40}...'", "not a name", "1 to 63", id="15 name of 300 characters",
    ),
    pytest.param(
        spoiled("  london_capetown:", "  ../x:"),
        17, "synchronizations.'../x'", "not a name", "1 to 63", id="15 name with a path",
    ),
    pytest.param(
        spoiled("  london_capetown:", "  a'b:"),
        17, 'synchronizations."a\'b"', "not a name", "1 to 63", id="15 name with a quote",
    ),
    pytest.param(
        spoiled("  capetown:\n", "  london:\n").replace("target: capetown", "target: london2").replace(
            "  london: {", "  london2: {connection: london2}\n  london: {"
        ).replace("at: {capetown", "at: {london"),
        4, "sites.london", "duplicate key, first on line 3", "keep one", id="16 two sites of one name",
    ),
    pytest.param(
        spoiled("connection: capetown", "connection: London"),
        3, "sites.capetown", "the same connection as site 'london'", "a database of its own",
        id="17 two sites on one connection",
    ),
    pytest.param(
        spoiled("connection: capetown", "{connection: capetown, applier: london}").replace(
            "\n    {connection: capetown, applier: london}\n    max_clock_skew: 60 s\n    readers: 2",
            " {connection: capetown, applier: london}",
        ),
        3, "sites.capetown", "the same connection as site 'london'", "a database of its own",
        id="17 one role on the other's connection",
    ),
    pytest.param(
        spoiled("target: capetown", "target: cape_town"),
        20, "synchronizations.london_capetown.target", "unknown site 'cape_town'", "did you mean 'capetown'?",
        id="19 unknown site",
    ),
    pytest.param(
        spoiled("at: {capetown: ", "at: {paris: "),
        12, "replication_sets.flight_operations.tables[0].at.paris", "unknown site 'paris'",
        "known: capetown, london", id="19 unknown site in at",
    ),
    pytest.param(
        spoiled("replication_set: flight_operations", "replication_set: flight_operation"),
        18, "synchronizations.london_capetown.replication_set", "unknown replication set",
        "did you mean 'flight_operations'?", id="19 unknown replication set",
    ),
    pytest.param(
        with_pair("again", "london", "capetown"),
        24, "synchronizations.again", "the same two sites and table as 'london_capetown'", "remove one",
        id="20 pair twice",
    ),
    pytest.param(
        with_pair("back", "capetown", "london"),
        24, "synchronizations.back", "the same two sites and table as 'london_capetown'", "remove one",
        id="20 pair in both directions",
    ),
    pytest.param(
        FOUR_SITES.rstrip() + ONE_MORE_PAIR.format(name="paris_rome", source="paris", target="rome"),
        11, "replication_sets.flight_operations", "fall apart into capetown/london and paris/rome",
        "join them", id="21 disconnected topology",
    ),
    pytest.param(
        spoiled("public.airlines", "PUBLIC.Flights"),
        13, "replication_sets.flight_operations.tables[1].table", "listed twice, first as tables[0]",
        "keep one", id="22 table twice",
    ),
    pytest.param(
        spoiled("public.airlines", '"public.*"'),
        13, "replication_sets.flight_operations.tables[1].table", "patterns are not supported",
        "list every table", id="22 wildcard",
    ),
    pytest.param(
        spoiled("public.airlines", "ops.flights"),
        13, "replication_sets.flight_operations.tables[1].table",
        "at site 'capetown' this is the same table as tables[0]", "its own name",
        id="22 two tables meet at a site",
    ),
    pytest.param(
        spoiled("key: [carrier]", 'where: "id IN (SELECT 1); DROP TABLE x"'),
        14, "replication_sets.flight_operations.tables[1].where", "at character 8: a column or function",
        "compare with constants only", id="29 filter",
    ),
    pytest.param(
        spoiled("[latest_timestamp]", "[latest_timestmp]"),
        22, "synchronizations.london_capetown.resolvers[0]", "unknown resolver",
        "did you mean 'latest_timestamp'?", id="30 unknown resolver",
    ),
    pytest.param(
        spoiled("[latest_timestamp]", '["now()"]'),
        22, "synchronizations.london_capetown.resolvers[0]", "unknown resolver", "known: additive,",
        id="31 resolver that is not deterministic",
    ),
    pytest.param(
        spoiled("[latest_timestamp]", "[os.system]"),
        22, "synchronizations.london_capetown.resolvers[0]", "unknown resolver", "known: additive,",
        id="31 resolver that is code",
    ),
    pytest.param(
        spoiled('"*/5 * * * *"', '"0 0 1 * *"'),
        23, "synchronizations.london_capetown.tombstone_retention", "shorter than the longest pause",
        "at least that long", id="33 tombstones go before a run",
    ),
    pytest.param(
        spoiled("60 s", "0 s"),
        5, "sites.capetown.max_clock_skew", "longer than zero", "such as 90s", id="34 clock skew of zero",
    ),
    pytest.param(
        spoiled("readers: 2", "password: hunter2"),
        6, "sites.capetown.password", "secrets do not belong in this file", "only the connection's id",
        id="35 password",
    ),
    pytest.param(
        spoiled("connection: capetown", "connection: jdbc:postgresql://host/db?socketFactory=x"),
        4, "sites.capetown.connection", "looks like an address or a password", "only the connection's id",
        id="36 JDBC URL",
    ),
    pytest.param(
        spoiled("readers: 2", "sslmode: disable"),
        6, "sites.capetown.sslmode", "unknown key", "permit plain text by insecure: true", id="37 sslmode",
    ),
    *(
        pytest.param(
            spoiled("    resolvers: [latest_timestamp]", f"    objective: {{{wrong}}}"),
            22, f"synchronizations.london_capetown.objective{place}", message, hint, id=f"objective: {wrong}",
        )
        for wrong, place, message, hint in (
            ("through: mail", "", "wants nothing", "give lag, rows_per_second, or both"),
            ("lag: 5", ".lag", "a duration needs a unit", "such as 90s"),
            ("rows_per_second: 0", ".rows_per_second", "too small", "write 1 or more"),
            ("lagg: 5 min", ".lagg", "unknown key", "did you mean 'lag'?"),
            ("lag: 5 min, through: smtp://mail", ".through", "looks like an address", "the connection's id"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "message", "hint"), BAD_INPUTS)
def test_a_bad_input_gets_one_clear_line_with_its_place_and_its_remedy(
    *, problems: Problems, text: str | bytes, line: int, key: str, message: str, hint: str
) -> None:
    (problem,) = problems(text)
    assert (problem.file, problem.line, problem.key) == ("concord.yaml", line, key)
    assert message in problem.message
    assert hint in problem.hint
    assert "\n" not in str(problem)


def test_equal_priorities_are_accepted_because_the_name_breaks_the_tie(
    parse: Callable[[str | bytes], Configuration],
) -> None:  # 32
    text = VALID.replace("london: {connection: london}", "london: {connection: london, priority: 7}")
    configuration = parse(text.replace("readers: 2", "priority: 7"))
    assert {site.priority for site in configuration.sites.values()} == {7}


def test_every_problem_of_every_level_is_reported_at_once_in_the_order_of_the_file(
    problems: Problems,
) -> None:
    text = spoiled("readers: 2", "readers: no\n    pasword: x")  # YAML level
    text = text.replace("60 s", "sixty")  # a value
    text = text.replace("key: [carrier]", "key: []")  # an empty list
    text = text.replace("target: capetown", "target: capetwn")  # between the parts
    assert [(problem.line, problem.key.rsplit(".", 1)[-1]) for problem in problems(text)] == [
        (5, "max_clock_skew"),
        (6, "readers"),
        (7, "pasword"),
        (15, "key"),
        (21, "target"),
    ]


def test_a_problem_reads_as_file_line_key_message_and_advice(problems: Problems) -> None:
    assert [str(problem) for problem in problems(spoiled("    source: london", "    souce: london"))] == [
        "concord.yaml:19: synchronizations.london_capetown.souce: unknown key; did you mean 'source'?"
    ]
