"""Errors that let a user of a database, or another account of a machine, have what is not theirs."""

from tests.mutants.mutant import Mutant

SQUATTED = "tests/databases/postgresql/provision/test_squatted_objects.py"
HOSTILE = "tests/databases/postgresql/write/test_hostile_versions.py"

SECURITY = (
    Mutant(
        "a session reads a schema of somebody else's",
        "concord.databases.postgresql.facts.ownership:SQUATTER",
        "AND NOT (o.rolsuper",
        "AND false AND NOT (o.rolsuper",
        f"{SQUATTED} -k before_anything",
    ),
    Mutant(
        "an object of somebody else's in Concord's schema is taken for Concord's",
        "concord.databases.postgresql.facts.ownership:strangers",
        'WHERE NOT {is_concords("o", name, installer)}',
        "WHERE false",
        f"{SQUATTED} -k concords_schema",
    ),
    Mutant(
        "only tables of somebody else's are found",
        "concord.databases.postgresql.facts.ownership:strangers",
        "WHERE d.refclassid = 'pg_namespace'::regclass",
        "WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_namespace'::regclass",
        f"{SQUATTED} -k concords_schema",
    ),
    Mutant(
        "a role that is called like Concord's is trusted, whoever may act as it",
        "concord.databases.postgresql.facts.ownership:strangers",
        'WHERE a.roleid = o.oid AND NOT {is_concords("r", installer)}',
        "WHERE false",
        f"{SQUATTED} -k called_like",
    ),
    Mutant(
        "the site is read before its strangers are refused",
        "concord.databases.postgresql.provision.surveyed_site:_look_at",
        "owner.refuse_strangers(connection, state.facts, state.owner)",
        "pass",
        f"{SQUATTED} -k concords_schema",
    ),
    Mutant(
        "a printed script hands over what it finds",
        "concord.databases.postgresql.sites.owner:handed_over",
        "ownership.refused_schemas(name, installer), ",
        "",
        f"{SQUATTED} -k 'schema and printed'",
    ),
    Mutant(
        "a view of somebody else's is replaced",
        "concord.databases.postgresql.sites.mark_problems:_view_problems",
        "(NOT {ownership.is_concords('o')}",
        "(false",
        f"{SQUATTED} -k 'view and neither'",
    ),
    Mutant(
        "a printed script replaces a view that it finds",
        "concord.databases.postgresql.capture.marks:view_statements",
        "ownership.refused_view(name),",
        "",
        f"{SQUATTED} -k 'view and printed'",
    ),
    Mutant(
        "a publication of somebody else's is altered",
        "concord.databases.postgresql.replication.provision:Replications.refusals",
        "ownership.publishers(published)",
        "ownership.publishers([])",
        f"{SQUATTED} -k 'publication and neither'",
    ),
    Mutant(
        "a printed script alters a publication that it finds",
        "concord.databases.postgresql.log.publication:statements",
        "ownership.refused_publication(name),",
        "",
        f"{SQUATTED} -k 'publication and printed'",
    ),
    Mutant(
        "a publication of somebody else's is dropped",
        "concord.databases.postgresql.facts.ownership:publication_dropped",
        'AND {is_concords("o")}',
        "",
        f"{SQUATTED} -k concord_leaves",
    ),
    Mutant(
        "every account of the machine may read the repository",
        "concord.repository.opening:_sqlite",
        "_keep_private(file)",
        "pass",
        "tests/repository/test_opening.py -k sqlite_repository",
    ),
    Mutant(
        "a vector that has seen the future is taken over",
        "concord.databases.postgresql.write.suspicious:Suspicion.verdicts",
        " OR {self._no_version}",
        "",
        f"{HOSTILE} -k from_the_future",
    ),
    Mutant(
        "a vector of texts is taken over",
        "concord.databases.postgresql.facts.row_version:_NO_ENTRY",
        ' || @[0].type() != "number"',
        "",
        f"{HOSTILE} -k whatever_a_version",
    ),
    Mutant(
        "a derivation without bound is taken over",
        "concord.databases.postgresql.write.suspicious:Suspicion._no_version",
        "OR s.concord_derived NOT BETWEEN 0 AND {MOST_DERIVED}",
        "",
        f"{HOSTILE} -k whatever_a_version",
    ),
    Mutant(
        "an origin that is none is taken over",
        "concord.databases.postgresql.write.suspicious:Suspicion._no_version",
        "({origin} OR {numbers}",
        "({numbers}",
        f"{HOSTILE} -k whatever_a_version",
    ),
    Mutant(
        "a stamp after which none can come stops users",
        "concord.databases.postgresql.provision.control:_VECTOR_FUNCTIONS",
        "greatest(least((e.value ->> 0)::numeric, {LATEST}), 0)",
        "(e.value ->> 0)::numeric",
        f"{HOSTILE} -k earlier_concord",
    ),
    Mutant(
        "a version without a vector stops users",
        "concord.databases.postgresql.capture.stamp:_LATER",
        "greatest(excluded.changed_at, concord.vector_newest(s.vector) + 1)",
        "concord.vector_newest(s.vector) + 1",
        f"{HOSTILE} -k earlier_concord",
    ),
    Mutant(
        "a version that is none is not stamped anew",
        "concord.databases.postgresql.upkeep.restamped_table:RestampedTable._batches",
        "{row_version.beyond('p.vector', str(self.clock.latest))}",
        "concord.vector_newest(p.vector) > {self.clock.latest}",
        "tests/link/waiting/test_future_stamps.py -k poisoned",
    ),
    Mutant(
        "a session that is none ends in a traceback",
        "concord.versions.position:session_from_json",
        "if all(isinstance(position, str) for position in differing.values()):",
        "if True:",
        "tests/versions/test_position.py -k anything",
    ),
)
