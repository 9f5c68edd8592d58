"""Errors that give a session other settings than Concord's, take a type that is not exact, or name a wrong remedy."""

from tests.mutants.mutant import Mutant

POOLER = "tests/databases/postgresql/facts/test_pooler.py"
TYPES = "tests/databases/postgresql/facts/test_extension_types.py"
LOGINS = "tests/databases/postgresql/facts/test_login_errors.py"

SESSIONS = (
    Mutant(
        "the first statement pins nothing",
        "concord.databases.postgresql.facts.session:first",
        "{pinned(settings)}, (",
        "SELECT (",
        f"{POOLER} -k 'pinned and link'",
    ),
    Mutant(
        "the session of a log's reader pins nothing",
        "concord.databases.postgresql.log.frames:log_connection",
        "begin_session(connection, opened, session.first({**session.PINNED, **settings}))",
        "pass",
        f"{POOLER} -k 'pinned and log'",
    ),
    Mutant(
        "a log's reader loses what it asks beside what is pinned",
        "concord.databases.postgresql.log.frames:log_connection",
        "{**session.PINNED, **settings}",
        "session.PINNED",
        f"{POOLER} -k 'pinned and log'",
    ),
    Mutant(
        "settings are pinned for one transaction",
        "concord.databases.postgresql.facts.session:pinned",
        "{literal(value)}, false)",
        "{literal(value)}, true)",
        f"{POOLER} -k 'pinned and link'",
    ),
    Mutant(
        "nobody looks behind a pooler",
        "concord.databases.postgresql.facts.session:refuse_unfit",
        "if process != info.backend_pid:",
        "if False:",
        f"{POOLER} -k 'shares and link'",
    ),
    Mutant(
        "every connection is looked behind",
        "concord.databases.postgresql.facts.session:refuse_unfit",
        "if process != info.backend_pid:",
        "if True:",
        f"{POOLER} -k direct",
    ),
    Mutant(
        "two sessions at once may have one process",
        "concord.databases.postgresql.facts.pooler:_look",
        "if held == before or _process(session) != before:",
        "if False:",
        f"{POOLER} -k 'shares and link'",
    ),
    Mutant(
        "a type is taken whose text leaves something out",
        "concord.databases.postgresql.facts.types:_OF_EXTENSIONS",
        '"issn13",',
        '"issn13", "issn",',
        f"{TYPES} -k issn",
    ),
    Mutant(
        "a server that has no room is to be started",
        "concord.databases.postgresql.facts.login_errors:could_not_connect",
        "if words in said:\n            return SiteUnavailable(",
        "if False:\n            return SiteUnavailable(",
        f"{LOGINS} -k lets_it_in",
    ),
)
