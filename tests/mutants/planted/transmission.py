"""Errors in the steps of a transmission.

No test can find a plan that weighs its rows: it stages none, so nothing is held.
"""

from tests.mutants.mutant import Mutant

TRANSMISSION = (
    Mutant(
        "every run is weighed",
        "concord.transmission.brake:_at_most",
        "Effect(deletes=removals,",
        "Effect(deletes=staged.rows,",
        "tests/link/brakes/test_brakes.py -k only_deletes",
    ),
    Mutant(
        "a source altered during the read is trusted",
        "concord.transmission.carry:Carry.run",
        "self.outcome.stop(link.source.altered_since(read))",
        "del read",
        "tests/link/tables/test_schema_changes.py -k rewritten_while",
    ),
    Mutant(
        "rows relayed between servers travel as text",
        "concord.transmission.carry:Carry._route",
        "create_staging(opened.target_shapes[name].relayed, ordinal)",
        "create_staging(opened.target_shapes[name], ordinal)",
        "tests/link/spark/test_carried_by_the_driver.py -k staged_as_what_they_are",
    ),
    Mutant(
        "the driver calls no function",
        "concord.transmission.carry:Carry._may_ask",
        "place.shape.policy.asks and bool(",
        "False and bool(",
        "tests/link/conflicts/test_asked.py -k shown_no_more",
    ),
    Mutant(
        "rows relayed between servers escape the brakes",
        "concord.transmission.carry:Carry._route",
        "may_be_held(self.link.job, name, rows)",
        "False",
        "tests/link/brakes/test_brakes.py -k mass_delete",
    ),
    Mutant(
        "clocks may be any time apart",
        "concord.transmission.opening:_check_clocks",
        "if abs(apart) > allowed:",
        "if False:",
        "tests/link/waiting/test_future_stamps.py -k too_far_apart",
    ),
    Mutant(
        "a clock that is behind is not detected",
        "concord.transmission.opening:_check_clocks",
        "if abs(apart) > allowed:",
        "if apart > allowed:",
        "tests/link/waiting/test_future_stamps.py -k too_far_apart",
    ),
    Mutant(
        "a heartbeat that went back is not detected",
        "concord.transmission.opening:_not_older",
        "    if site.heartbeat < newest:\n        raise",
        "    if False:\n        raise",
        "tests/link/initialization/test_coming_back.py -k restored_from_a_copy",
    ),
    Mutant(
        "a run that overtakes another is taken for a restored backup",
        "concord.transmission.opening:_not_older",
        "site = end.site()",
        "pass",
        "tests/transmission/test_opening.py -k has_grown_since",
    ),
    Mutant(
        "a comparison of some tables compares all",
        "concord.transmission.opening:open_link",
        "tables = chosen(job.tables, job.chosen)",
        "tables = job.tables",
        "tests/link/comparison/test_compare.py -k one_table_alone",
    ),
    Mutant(
        "a table is carried between sites that were never compared",
        "concord.transmission.opening:open_link",
        "_check_initialized(job, [table.name for table in tables], at_source, at_target)",
        "pass",
        "tests/link/comparison/test_compare.py -k without_a_common_history",
    ),
    Mutant(
        "a refused row counts as applied",
        "concord.transmission.outcome:LinkOutcome._report",
        "merged = settled",
        'refused = {"applied": written.applied + written.quarantined, "quarantined": 0}\n'
        "        written = written.model_copy(update=refused)\n"
        "        merged = settled",
        "tests/link/waiting/test_quarantine.py -k image_and_reason",
    ),
    Mutant(
        "every edit with a candidate is left to Spark",
        "concord.transmission.route:goes_straight",
        "candidates > MOST_UNDER_LOCK",
        "candidates > 0",
        "tests/link/spark/test_carried_by_the_driver.py -k judged_at_the_target",
    ),
    Mutant(
        "a function that needs the common version is called where it is unknown",
        "concord.transmission.route:goes_straight",
        "(candidates > MOST_UNDER_LOCK and not shows_common)",
        "(candidates > MOST_UNDER_LOCK)",
        "tests/link/conflicts/test_common_version.py -k added_to_the_row",
    ),
    Mutant(
        "a table whose parent is stopped is carried",
        "concord.transmission.stopped:with_children",
        "if parent in found and child not in found",
        "if False",
        "tests/link/tables/test_schema_changes.py -k stops_its_table",
    ),
    Mutant(
        "the driver carries as many rows as Spark should",
        "concord.transmission.straight:needs_spark",
        "rows >= spark_from",
        "rows > spark_from",
        "tests/link/spark/test_carried_by_the_driver.py -k from_so_many_rows_on",
    ),
    Mutant(
        "after a failure the driver starts further parts",
        "concord.transmission.straight:stage_by_the_driver",
        "if failed.is_set():",
        "if False:",
        "tests/link/spark/test_carried_by_the_driver.py -k no_other_part_is_begun",
    ),
    Mutant(
        "the driver opens as many sessions as it has threads",
        "concord.transmission.straight:stage_by_the_driver",
        "others = min(readers, len(parts), THREADS) - 1",
        "others = min(len(parts), THREADS) - 1",
        "tests/transmission/test_carriers.py -k as_many_threads",
    ),
    Mutant(
        "a failure of the driver's own task is reported without its message",
        "concord.transmission.straight:stage_by_the_driver",
        'raise TaskFailed("".join(format_exception(error, limit=0))) from error',
        "raise",
        "tests/link/spark/test_carried_by_the_driver.py -k told_as_it_is_of_spark",
    ),
    Mutant(
        "rows lost in transit are not noticed",
        "concord.transmission.transmit:_carried",
        "outcome.check_complete()",
        "pass",
        "tests/link/positions/test_acquisition.py -k nobody_has_read",
    ),
    Mutant(
        "losing deletes are weighed before the target evaluates them",
        "concord.transmission.transmit:_weighed",
        "if not unjudged:\n            raise",
        "raise",
        "tests/link/brakes/test_brakes.py -k deletes_are_weighed_alone",
    ),
    Mutant(
        "a held run advances the position",
        "concord.transmission.transmit:_carried",
        "return outcome",
        "remember(link, outcome)\n    return outcome",
        "tests/link/brakes/test_brakes.py -k 'mass_delete and forward'",
    ),
)
