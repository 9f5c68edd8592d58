"""Errors to plant in what is measured of a link, and in who hears that its objective is missed."""

from __future__ import annotations

from tests.mutants.planted import Mutant

RULE = "plugins/concord/rules/objective.py"
TOLD = "plugins/concord/orchestration/tasks/objectives.py"
MAILS = "tests/orchestration/tasks/test_objectives.py"
SHOWN = "tests/orchestration/tasks/test_objectives_shown.py"

OBJECTIVES = (
    Mutant(
        "an objective that is missed is told of at each run",
        RULE,
        "if kept == (aim in missed) and (run_has_ended or not kept)",
        "if (not kept or aim in missed) and (run_has_ended or not kept)",
        "tests/rules/test_objective.py",
    ),
    Mutant(
        "an objective is kept again while no run ends",
        RULE,
        "if kept == (aim in missed) and (run_has_ended or not kept)",
        "if kept == (aim in missed)",
        "tests/rules/test_objective.py",
    ),
    Mutant(
        "few rows are judged by their rate",
        RULE,
        " and measured.rows >= rate:",
        ":",
        "tests/rules/test_objective.py",
    ),
    Mutant(
        "a link is late although nothing waits for it",
        RULE,
        "    if pending == 0:\n        return now\n",
        "",
        "tests/rules/test_objective.py",
    ),
    Mutant(
        "a change of a long transaction has waited since before the last run",
        RULE,
        "return max(known, default=None)",
        "return min(known, default=None)",
        "tests/rules/test_objective.py",
    ),
    Mutant(
        "a run of some tables measures the lag of the link",
        "plugins/concord/repository/transmissions.py",
        "(_measured(report) if whole else {})",
        "_measured(report)",
        "tests/repository/test_objectives.py",
    ),
    Mutant(
        "an objective that was kept again is missed for ever",
        "plugins/concord/repository/objectives.py",
        "MissedObjective.aim == aim)",
        "MissedObjective.aim == '')",
        "tests/repository/test_objectives.py",
    ),
    Mutant(
        "a transaction has waited for no time",
        "plugins/concord/transactional/account.py",
        "max(self.lag or 0.0, waited.total_seconds())",
        "0.0",
        "tests/transactional/test_standing.py -k waited_longest",
    ),
    Mutant(
        "a run without transactions is no sign that the lag is kept",
        "plugins/concord/transactional/account.py",
        "        self.lag = self.lag or 0.0\n",
        "",
        "tests/transactional/test_standing.py -k waited_longest",
    ),
    Mutant(
        "a message that could not be sent is taken for sent",
        TOLD,
        'if through is None or told(through, "an objective", facts, context):',
        'if through is None or told(through, "an objective", facts, context) or True:',
        f"{MAILS} -k cannot_be_sent",
    ),
    Mutant(
        "a link that failed is not looked at",
        TOLD,
        "        _look(engine, configuration, name, context, but=well)\n",
        "",
        f"{MAILS} -k does_not_answer",
    ),
    Mutant(
        "the lag of a run begins with the run",
        "plugins/concord/orchestration/tasks/link.py",
        "return lag.waiting_since(configuration, self.synchronization, self.direction, started)",
        'return pendulum.now("UTC")',
        f"{MAILS} -k oldest_change",
    ),
    Mutant(
        "status says nothing of a link that is late while no run ends",
        "plugins/concord/terminal/objectives.py",
        "for each in (self.last.lag, self.lag_now) if",
        "for each in (self.last.lag,) if",
        f"{SHOWN} -k what_was_measured",
    ),
    Mutant(
        "a deadline waits for a logical date",
        "plugins/concord/orchestration/dags/deadline.py",
        "DeadlineReference.DAGRUN_QUEUED_AT",
        "DeadlineReference.DAGRUN_LOGICAL_DATE",
        "tests/orchestration/dags/test_deadline.py -k only_a_dag",
    ),
)
