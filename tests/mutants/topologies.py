"""Errors to plant in what three sites and more need: versions on their way, sites that are away, that come and go."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

COMING_AND_GOING = "tests/link/topologies/test_coming_and_going.py"
UNREACHABLE = "tests/orchestration/tasks/test_unreachable_site.py"

TOPOLOGIES = (
    Mutant(
        "what came from one site is not sent on to others",
        f"{POSTGRESQL}/rows/acquire.py",
        'received_from IS DISTINCT FROM {literal(site)}"',
        'received_from IS NULL"',
        f"{COMING_AND_GOING} -k added_while",
    ),
    Mutant(
        "a conflict that a third site has settled is decided again",
        f"{POSTGRESQL}/write/guard.py",
        """WHEN {_BACKWARD} AND NOT {_FORWARD} THEN CASE WHEN {includes} THEN 'superseded' ELSE 'unite' END
     WHEN {_conflicts_alike(shape, terms)} THEN {_whose_stays(shape)}
     WHEN {_DECIDED} AND NOT {_BACKWARD} AND""",
        "WHEN {_conflicts_alike(shape, terms)} THEN {_whose_stays(shape)} WHEN {_DECIDED} AND",
        "tests/link/topologies/test_topologies.py -k settled_meanwhile",
    ),
    Mutant(
        "a conflict stands in the log once for each link",
        f"{POSTGRESQL}/write/conflict_log.py",
        "SELECT {identity}, {literal(synchronization)},",
        "SELECT {identity} || {literal(link)}, {literal(synchronization)},",
        "tests/link/topologies/test_topologies.py -k 'one_id and ring'",
    ),
    Mutant(
        "a version in the log is named by the link's source",
        f"{POSTGRESQL}/write/conflict_log.py",
        """incoming_site = "split_part(v.s_origin, '#', 1)\"""",
        "incoming_site = literal(judged.source)",
        "tests/link/topologies/test_topologies.py -k 'both_images and hub'",
    ),
    Mutant(
        "a site that does not answer is waited for by nobody",
        f"{POSTGRESQL}/upkeep/cleanup.py",
        "        if link.peer in silent:\n",
        "        if False:\n",
        f"{COMING_AND_GOING} -k 'until_a_person_forces_it'",
    ),
    Mutant(
        "a site that was heard of lately can be forced out",
        f"{POSTGRESQL}/upkeep/outgoing_link.py",
        "return self.silent_since is None or self.silent_since < silent_before",
        "return True",
        f"{COMING_AND_GOING} -k heard_of_lately",
    ),
    Mutant(
        "a site that answers can be forced out",
        f"{POSTGRESQL}/upkeep/outgoing_link.py",
        "if self.peer in reached:",
        "if not reached:",
        f"{COMING_AND_GOING} -k every_site_that_answers",
    ),
    Mutant(
        "a site that was forced out resumes",
        f"{POSTGRESQL}/upkeep/agreement.py",
        "        link_state.force_below_floor(each.connection, name)\n",
        "        pass\n",
        f"{COMING_AND_GOING} -k absent_one_is_refused",
    ),
    Mutant(
        "cleanups go on waiting for a site that was forced out",
        f"{POSTGRESQL}/upkeep/outgoing_link.py",
        "            return self.forced\n",
        "            return False\n",
        f"{COMING_AND_GOING} -k go_on_after_a_forced",
    ),
    Mutant(
        "a dry run forces",
        f"{POSTGRESQL}/upkeep/cleanup.py",
        "        if self.asked.dry_run:\n            return",
        "        if False:\n            return",
        f"{COMING_AND_GOING} -k dry_run",
    ),
    Mutant(
        "a link that has left the configuration is waited for by nobody",
        f"{POSTGRESQL}/upkeep/outgoing_link.py",
        "every = sorted((remembered | dict(configured)).items())",
        "every = sorted((dict(configured)).items())",
        f"{COMING_AND_GOING} -k left_the_configuration",
    ),
    Mutant(
        "a site forgets the epochs of a link and not where it stood",
        f"{POSTGRESQL}/upkeep/forgetting.py",
        '                run(connection, f"DELETE FROM concord.link_state WHERE link IN ({listed})")\n',
        "",
        f"{COMING_AND_GOING} -k left_the_configuration",
    ),
    Mutant(
        "a site that is configured is forgotten",
        "plugins/concord/orchestration/tasks/forgetting.py",
        "    if used:\n",
        "    if False:\n",
        f"{UNREACHABLE} -k only_when_it_has_left",
    ),
    Mutant(
        "one site that does not answer stops the cleanup of all",
        f"{POSTGRESQL}/upkeep/cleanup.py",
        "        except ConcordError as error:\n            silent[name] = error.message\n",
        "        except ZeroDivisionError as error:\n            silent[name] = str(error)\n",
        f"{COMING_AND_GOING} -k absent_one_is_refused",
    ),
    Mutant(
        "one site that does not answer keeps the others from being made ready",
        "plugins/concord/databases/provisioning.py",
        "    if problems := [*_problems(survey), *more]:\n",
        "    if problems := [*_problems(survey), *more, *survey.failures]:\n",
        f"{UNREACHABLE} -k makes_the_others_ready",
    ),
    Mutant(
        "a table is carried between sites that were never compared",
        "plugins/concord/transmission/opening.py",
        "    _check_initialized(job, [table.name for table in tables], at_source, at_target)\n",
        "",
        "tests/link/comparison/test_compare.py -k without_a_common_history",
    ),
)
