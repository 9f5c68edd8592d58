"""Errors that leave out edits in silence where a site's log did not bring a table for a while."""

from tests.mutants.mutant import Mutant

LOGGED = "tests/link/logged/test_interruptions.py"
CONSUMED = "tests/transactional/consumed/test_interrupted.py"

INTERRUPTED_CAPTURE = (
    Mutant(
        "a publication that brought other operations for a while is repaired in place, and never missed",
        "concord.databases.postgresql.log.publication:is_whole",
        " AND {WHOLE}",
        "",
        f"{LOGGED} -k 'older_format'",
    ),
    Mutant(
        "a slot is read on although its publication was gone",
        "concord.databases.postgresql.provision.site_log:SiteLog.begin",
        "gone = self._read != [] and self._interrupted == self._read",
        "gone = False",
        f"{LOGGED} -k 'stops_until and publication and is and made and anew'",
    ),
    Mutant(
        "a log is read that no publication makes any more",
        "concord.databases.postgresql.rows.logged_edits:_registered",
        "if lost and not tables:",
        "if False:",
        f"{LOGGED} -k 'stops_until and publication and dropped and the'",
    ),
    Mutant(
        "a check says nothing of an interruption that somebody repaired",
        "concord.databases.postgresql.sites.log_problems:deviations",
        '(_WAS_UNPUBLISHED if shadow.name in gaps else "")',
        '""',
        f"{LOGGED} -k 'stops_until and hand'",
    ),
    Mutant(
        "a consumer reads on although a table was not captured",
        "concord.transactional.consume:_refuse_gaps",
        "if tables:",
        "if False:",
        f"{CONSUMED} -k 'while and log'",
    ),
    Mutant(
        "a consumer that begins anew is held to what it knew before",
        "concord.databases.postgresql.replication.consumed_since:begin",
        'f"DELETE FROM concord.consumed WHERE consumer = {literal(consumer)}",',
        '"SELECT 1",',
        f"{CONSUMED} -k 'while and log'",
    ),
)
