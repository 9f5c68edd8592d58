"""Errors in the ways out of a conflict of both sites' users, and in what a direction that stops leaves to the other."""

from tests.mutants.mutant import Mutant

_ONE_STOPS = "tests/orchestration/both_ways/test_one_direction_stops.py"
_CONTESTED = "tests/transactional/ways_out/test_contested_rows.py"
_BY_HAND = "tests/transactional/ways_out/test_by_hand.py"
_RANDOM = "tests/transactional/ways_out/test_random_ways_out.py"

WAYS_OUT = (
    Mutant(
        "a direction that stops keeps the way back from running in Airflow",
        "concord.orchestration.dags.replicate:_tasks",
        "trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS",
        "trigger_rule=TriggerRule.ALL_SUCCESS",
        f"{_ONE_STOPS} -k goes_on_behind",
    ),
    Mutant(
        "the lease is given back while the way back still runs",
        "concord.orchestration.dags.replicate:_tasks",
        "chain([*links, done], release())",
        "chain(done, release())",
        f"{_ONE_STOPS} -k lease_is_given_back",
    ),
    Mutant(
        "a direction that stops ends the other before the end of its log",
        "concord.transactional.both_ways:replicate_both_ways",
        "how = (progress, tell, asked_to_end)",
        "how = (progress, tell, lambda: one_has_ended.is_set() or asked_to_end())",
        "tests/transactional/staying/test_both_at_once.py -k where_its_log_ends",
    ),
    Mutant(
        "a log that is lost leaves the other site's log unconfirmed",
        "concord.orchestration.tasks.replication_run:_why_kept",
        "    except ConcordError as error:\n        return error.message",
        "    except ZeroDivisionError as error:\n        return str(error)",
        f"{_ONE_STOPS} -k between_runs",
    ),
    Mutant(
        "a row that no user of the site changed is logged as a loser",
        "concord.databases.postgresql.replay.decision:Decision._log",
        "{differs['w']} AND {differs['o']}",
        "{differs['w']}",
        f"{_BY_HAND} -k comes_along",
    ),
    Mutant(
        "a decision is about all rows of an entry",
        "concord.transactional.decide:decide",
        "there.subscriber.keys(wanted.number, of_entry(there, wanted.number, find))",
        "(of_entry(there, wanted.number, find), there.subscriber.keys(wanted.number))[1]",
        f"{_CONTESTED} -k another_winner",
    ),
    Mutant(
        "a decision leaves orphans",
        "concord.databases.postgresql.replay.decision:Decision.give_way",
        "self._refuse_orphans(reference, choice)",
        "pass",
        f"{_BY_HAND} -k decided_for_either_site",
    ),
    Mutant(
        "a user's change is lost without a person's decision",
        "concord.transactional.decide:_written",
        "raise _Lost",
        "pass",
        _RANDOM,
    ),
    Mutant(
        "an orphan is no contested row",
        "concord.databases.postgresql.replay.contested:operations",
        'found |= {seq for (seq,) in rows(connection, f"SELECT s.seq {orphaned}")}',
        "pass",
        f"{_BY_HAND} -k put_back",
    ),
    Mutant(
        "a transaction without the operations that fail leaves orphans",
        "concord.databases.postgresql.replay.refused_entry:one_by_one",
        "if replication.both_ways and not is_try else []",
        "if is_try else []",
        f"{_BY_HAND} -k in_part",
    ),
)
