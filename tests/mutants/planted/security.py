"""Errors that let a user of a database, or another account of a machine, have what is not theirs."""

from tests.mutants.mutant import Mutant

SQUATTED = "tests/databases/postgresql/provision/test_squatted_objects.py"

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
)
