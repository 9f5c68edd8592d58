"""Errors to plant in transactional replication: the log, its replay, and both ways.

One that no test can find: an entry that the subscriber has is staged with its end. The replay passes over it once more.
"""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

RUN = "plugins/concord/transactional"
ONE_WAY = "tests/transactional/test_one_way.py"
BOTH_WAYS = "tests/transactional/test_both_ways.py"
DECIDED = "tests/transactional/test_decided.py"
NAMED = "tests/transactional/publications/test_names.py"
THROTTLED = "tests/transactional/throttle/test_throttled.py"
WATCH = "tests/orchestration/dags/test_commit_trigger.py"
CALLS = "tests/transactional/calls/test_calls.py"
REFUSED_CALLS = "tests/transactional/calls/test_refused_calls.py"
QUEUED = "tests/transactional/test_queued.py"
CONTESTED = "tests/transactional/queued/test_contested_values.py"
HELD = "tests/transactional/queued/test_held_keys.py"
MANY_TABLES = "tests/transactional/publications/test_many_tables.py"
OVERLAP = "tests/transactional/overlap/test_overlap.py"
VALIDITY = "tests/transactional/test_validity.py"
TABLES = "tests/transactional/publications/test_tables.py"

REPLICATIONS = (
    Mutant(
        "what was replayed travels back",
        f"{POSTGRESQL}/entries/from_log.py",
        "self._replayed = bool(self._ours) and (new[0] or NULL)[4:] == self._ours",
        "self._replayed = False",
        f"{BOTH_WAYS} -k travels_back",
    ),
    Mutant(
        "a hub keeps to itself what came from a spoke",
        f"{POSTGRESQL}/entries/from_log.py",
        "self._replayed = bool(self._ours) and (new[0] or NULL)[4:] == self._ours",
        "self._replayed = bool(self._ours)",
        f"{BOTH_WAYS} -k hub",
    ),
    Mutant(
        "a row that the other site's users changed is overwritten",
        f"{POSTGRESQL}/replay/compared.py",
        'return f"{self.of.at_old_key} AND {self._alike(before)}"',
        "return self.of.at_old_key",
        f"{BOTH_WAYS} -k each_kind",
    ),
    Mutant(
        "a row that is gone, or is another, is taken for what an operation made",
        f"{POSTGRESQL}/replay/compared.py",
        "HAVING count(*) = 1 AND bool_and({is_made});",
        "HAVING count(*) = 1;",
        f"{BOTH_WAYS} -k each_kind",
    ),
    Mutant(
        "a delete passes over a row that was changed",
        f"{POSTGRESQL}/replay/compared.py",
        "f\" IF FOUND THEN {self.conflict('a row changed here as well')} END IF; {self.of.count('alike')}\"",
        "f\" {self.of.count('alike')}\"",
        f"{BOTH_WAYS} -k each_kind",
    ),
    Mutant(
        "a truncate takes rows that its user had not seen",
        f"{POSTGRESQL}/replay/compared.py",
        'ELSE {self.conflict("a truncate; delete the rows instead")}',
        "ELSE DELETE FROM {self.sql};",
        f"{BOTH_WAYS} -k truncate",
    ),
    Mutant(
        "what a person has decided about is replayed all the same",
        f"{POSTGRESQL}/replay/decided.py",
        "d.until >= entry AND {same}",
        "d.until < entry AND {same}",
        f"{DECIDED} -k stand_at_both",
    ),
    Mutant(
        "a decision holds for ever",
        f"{POSTGRESQL}/replay/decided.py",
        "d.until >= entry AND {same}",
        "{same}",
        f"{DECIDED} -k counted_and_forgotten",
    ),
    Mutant(
        "the loser's row is kept nowhere",
        f"{POSTGRESQL}/replay/decision.py",
        "lost = self._log(table, won, choice)",
        "lost = 1",
        f"{DECIDED} -k stand_at_both",
    ),
    Mutant(
        "the rows of a call travel beside it",
        f"{POSTGRESQL}/calls/marks.py",
        "return self._inside\n        if",
        "return False\n        if",
        f"{CALLS} -k both_sites_do_its_work",
    ),
    Mutant(
        "rows after a call are taken for its own",
        f"{POSTGRESQL}/calls/marks.py",
        "            self._inside = False\n            return True",
        "            return True",
        f"{CALLS} -k both_sites_do_its_work",
    ),
    Mutant(
        "a call that the replication does not carry hides its rows",
        f"{POSTGRESQL}/calls/marks.py",
        "self._inside = (schema, name) in self._carried",
        "self._inside = True",
        f"{CALLS} -k another_replication",
    ),
    Mutant(
        "a large transaction loses its call",
        f"{POSTGRESQL}/replay/large_entry.py",
        "return f\"IF EXISTS (SELECT FROM {table.staged} s WHERE {WITHIN}) THEN {by_loop('not by set')} END IF;\\n  \"",
        'return ""',
        f"{CALLS} -k large_transaction",
    ),
    Mutant(
        "a subscriber's procedure may end the entry's transaction",
        f"{POSTGRESQL}/replay/called.py",
        "EXCEPTION WHEN invalid_transaction_termination THEN",
        "EXCEPTION WHEN invalid_transaction_termination THEN NULL; WHEN assert_failure THEN",
        f"{REFUSED_CALLS} -k lacks_or_has_otherwise",
    ),
    Mutant(
        "whoever may use Concord's schema forges a call",
        f"{POSTGRESQL}/calls/call_objects.py",
        "  IF split_part(stack, chr(10), 2) !~",
        "  IF false AND split_part(stack, chr(10), 2) !~",
        f"{REFUSED_CALLS} -k no_login",
    ),
    Mutant(
        "a line of the stack is forged by a name",
        f"{POSTGRESQL}/calls/call_objects.py",
        r"""!~ '^[^"]*(^|[^a-z0-9_$."])concord""",
        r"""!~ '(^|[^a-z0-9_$.])concord""",
        f"{REFUSED_CALLS} -k no_login",
    ),
    Mutant(
        "the caller's search path holds between the marks",
        f"{POSTGRESQL}/calls/call_objects.py",
        "{_OWN} AS $$\nDECLARE\n  exact",
        "AS $$\nDECLARE\n  exact",
        f"{REFUSED_CALLS} -k search_path",
    ),
    Mutant(
        "the subscriber's triggers do not see a call",
        f"{POSTGRESQL}/replay/called.py",
        """("session_replication_role", "'origin'")""",
        """("session_replication_role", "'replica'")""",
        f"{CALLS} -k another_procedure",
    ),
    Mutant(
        "a log that has not grown is read again and again",
        f"{POSTGRESQL}/log/watch.py",
        "if is_read or end == self._idle_up_to:",
        "if is_read:",
        f"{WATCH} -k has_not_grown",
    ),
    Mutant(
        "each look at a transaction that waits starts a run",
        "plugins/concord/orchestration/dags/commit_trigger.py",
        "if commit is not None and commit != last:",
        "if commit is not None:",
        f"{WATCH} -k another",
    ),
    Mutant(
        "what was replayed from the other site starts a run",
        f"{POSTGRESQL}/log/first_waiting.py",
        'replayed = bool(ours) and (said.new[0] or b"")[4:] == ours.encode()',
        "replayed = False",
        f"{WATCH} -k both_sites",
    ),
    Mutant(
        "a run gives up where somebody looks at its log",
        f"{POSTGRESQL}/replication/publisher.py",
        "_TRIES = 5",
        "_TRIES = 1",
        f"{WATCH} -k whoever_only_looks",
    ),
    Mutant(
        "users' writes before the copy travel back",
        f"{RUN}/both_ways.py",
        "back.subscriber.begin_at(report.own_level)",
        "back.subscriber.begin_at(1)",
        f"{BOTH_WAYS} -k before_the_copy",
    ),
    Mutant(
        "the publisher hears of a level before it is on disk",
        f"{POSTGRESQL}/replay/procedure.py",
        "  PERFORM set_config('synchronous_commit', 'on', true);\n",
        "",
        "tests/transactional/test_kills.py -k crashes",
    ),
    Mutant(
        "a log that was confirmed beyond the level goes on",
        f"{POSTGRESQL}/log/slot.py",
        "if number(confirmed) > level:",
        "if False:",
        f"{ONE_WAY} -k restored",
    ),
    Mutant(
        "nothing is too far behind",
        "plugins/concord/jobs/max_delta.py",
        "if self.bytes is not None and behind > self.bytes:",
        "if False:",
        f"{VALIDITY} -k too_far_behind_is",
    ),
    Mutant(
        "the log is confirmed although a transaction waits in it",
        f"{RUN}/validity.py",
        "if oldest is None:",
        "if True:",
        f"{VALIDITY} -k no_entry_is_skipped",
    ),
    Mutant(
        "a run that hands over passes over what is left of the log",
        f"{RUN}/replicate.py",
        "return account.level_to >= end",
        "return True",
        "tests/transactional/test_hand_over.py",
    ),
    Mutant(
        "a row that both sites changed is not told from others",
        f"{POSTGRESQL}/queued/procedure.py",
        "            contested := true;",
        "            contested := false;",
        f"{QUEUED} -k callout_d",
    ),
    Mutant(
        "a compensation takes back a later edit as well",
        f"{POSTGRESQL}/queued/compensation.py",
        "IS NOT DISTINCT FROM {rows.dot_of(self.rejected)} THEN",
        "IS NOT DISTINCT FROM (origin_here, changed_here, derived_here) THEN",
        f"{QUEUED} -k later_edit",
    ),
    Mutant(
        "an update that changes nothing writes an older row over the publisher's",
        f"{POSTGRESQL}/queued/versioned_entries.py",
        'if operation == b"U" and new == old:',
        "if operation is None:",
        f"{QUEUED} -k changes_nothing",
    ),
    Mutant(
        "a conflict rejects its row alone, whatever the scope",
        "plugins/concord/jobs/replication.py",
        "return self.rejects and self.conflict.scope is Scope.TRANSACTION",
        "return False",
        f"{QUEUED} -k whole_transaction",
    ),
    Mutant(
        "a version is written over one that a user made meanwhile",
        f"{POSTGRESQL}/queued/procedure.py",
        "{rows.upsert(where=rows.before)};",
        "{rows.upsert()};",
        f"{QUEUED} -k between_judgement_and_write",
    ),
    Mutant(
        "a change of a key is judged by one of its keys",
        f"{POSTGRESQL}/queued/versioned_entries.py",
        "if any(new[at] != old[at] for at in table.key_places):",
        "if not table.key_places:",
        f"{QUEUED} -k each_for_itself",
    ),
    Mutant(
        "a transaction that changes a row twice contests itself",
        f"{POSTGRESQL}/queued/versioned_entries.py",
        "if old is None or old[at] != new[at]:",
        "if place >= 0:",
        f"{QUEUED} -k arrive_at_the_other",
    ),
    Mutant(
        "runs that follow one another keep what was delivered for ever",
        f"{RUN}/replicate.py",
        "        replication.publisher.forget_delivered()\n",
        "        pass\n",
        "tests/transactional/queued/test_continuous.py -k deletes_what",
    ),
    Mutant(
        "a tombstone that the publisher has forgotten is a conflict",
        f"{POSTGRESQL}/queued/procedure.py",
        'IS DISTINCT FROM {rows.before}{forgotten if self.reverse else ""}',
        "IS DISTINCT FROM {rows.before}",
        "tests/databases/postgresql/queued/test_delivered.py -k compensations_go",
    ),
    Mutant(
        "a child is left without its parent, since no entry is looked at once more",
        f"{POSTGRESQL}/replay/orphans.py",
        "IF NOT FOUND THEN orphaned := true; END IF;",
        "IF NOT FOUND THEN orphaned := false; END IF;",
        f"{BOTH_WAYS} -k whose_parent",
    ),
    Mutant(
        "a parent is deleted although the other site's child refers to it",
        f"{POSTGRESQL}/replay/orphans.py",
        "IF FOUND THEN orphaned := true; END IF;",
        "IF FOUND THEN orphaned := false; END IF;",
        f"{BOTH_WAYS} -k whose_parent",
    ),
    Mutant(
        "what is missing for a moment within a transaction stops it",
        f"{POSTGRESQL}/replay/orphans.py",
        "WHERE {mine} AND s.operation IN ('I', 'U') AND {refers} AND {missing} {each.parent_is(of_child)});",
        "WHERE {mine} AND s.operation IN ('I', 'U') AND {refers} AND ({missing} {each.parent_is(of_child)}) OR true);",
        f"{BOTH_WAYS} -k whose_parent",
    ),
    Mutant(
        "a queued transaction that leaves an orphan stops the way back",
        f"{POSTGRESQL}/queued/procedure.py",
        "if error.sqlstate == ORPHANED:",
        "if not error.sqlstate:",
        f"{QUEUED} -k without_its_parent",
    ),
    Mutant(
        "a value of a further unique rule that both sites give stops the replication",
        f"{POSTGRESQL}/queued/procedure.py",
        "if error.sqlstate not in _TAKEN or not found:",
        "if found or not found:",
        f"{CONTESTED} -k publishers_rows_stand",
    ),
    Mutant(
        "a rule that the publisher has not is asked about for ever",
        f"{POSTGRESQL}/queued/procedure.py",
        "job.direction is Direction.REVERSE or here.table.exclusive <= there.table.exclusive",
        "bool(job and here and there)",
        f"{CONTESTED} -k publisher_has_not",
    ),
    Mutant(
        "subscriber_wins: a transaction that breaks a rule takes the subscriber's versions with it",
        f"{POSTGRESQL}/queued/procedure.py",
        'taken = f" IF NOT fallen THEN {rows.upsert()}; END IF;"',
        'taken = f" {rows.upsert()};"',
        f"{CONTESTED} -k publishers_rows_stand",
    ),
    Mutant(
        "a user writes a deleted row again before its compensation is committed",
        f"{POSTGRESQL}/queued/procedure.py",
        "WHERE {rows.version_at(rows.key)} FOR UPDATE;",
        "WHERE {rows.version_at(rows.key)};",
        f"{HELD} -k nobody_inserts",
    ),
    Mutant(
        "a user inserts a row that never was before its compensation is committed",
        f"{POSTGRESQL}/queued/rejected.py",
        'rejected = f"{self._held} {self',
        'rejected = f"{self',
        f"{HELD} -k nobody_inserts",
    ),
    Mutant(
        "a transaction that the subscriber leaves out is asked for by nobody",
        f"{POSTGRESQL}/queued/rejected.py",
        'return f"IF fallen THEN {self._asked}; END IF; DELETE FROM {self.name};"',
        'return f"DELETE FROM {self.name};"',
        f"{CONTESTED} -k given_up",
    ),
    Mutant(
        "a row whose value another one still has is not asked for again",
        f"{POSTGRESQL}/queued/compensation.py",
        '{asked(self.job, found)}; {self.rows.of.count("superseded")}',
        '{self.rows.of.count("superseded")}',
        f"{CONTESTED} -k go_around",
    ),
    Mutant(
        "a row that is taken back stays in the way of the others",
        f"{POSTGRESQL}/queued/compensation.py",
        'DELETE FROM {self.rows.sql} t WHERE {self._at_key("t")};\n              BEGIN',
        "NULL;\n              BEGIN",
        f"{CONTESTED} -k go_around",
    ),
    Mutant(
        "a replication carries rows and columns that its set leaves out",
        "plugins/concord/configuration/replication.py",
        "        made = table.replicated(Policy())\n",
        "        made = table.replicated(Policy()).model_copy(update={'where': None})\n",
        "tests/transactional/test_configured.py -k of_its_set",
    ),
    Mutant(
        "a user deletes a row that another site owns",
        f"{POSTGRESQL}/sites/own_rows.py",
        'f"NOT {mine}"),',
        '"false"),',
        "tests/link/filters/test_own_rows.py -k changes_only_rows",
    ),
    Mutant(
        "a user gives a row to no site, where nobody may change it",
        f"{POSTGRESQL}/sites/own_rows.py",
        'f"NOT {mine} OR NOT ({given})"',
        'f"NOT {mine}"',
        "tests/link/filters/test_own_rows.py -k changes_only_rows",
    ),
    Mutant(
        "an update that changes nothing meets the change of a row's owner",
        f"{POSTGRESQL}/sites/own_rows.py",
        'BEGIN{"" if self.replayed else self._unless_same()}',
        "BEGIN{self._unless_same()}",
        "tests/transactional/owned/test_own_rows.py -k stop_no_replication",
    ),
    Mutant(
        "triggers that refuse changes stay when nothing is to be refused",
        f"{POSTGRESQL}/sites/own_rows.py",
        "        if oid not in oids:",
        "        if oid is None:",
        "tests/link/filters/test_own_rows.py -k makes_alters_and_takes",
    ),
    Mutant(
        "a table is followed whose rows were never copied",
        f"{POSTGRESQL}/replay/level.py",
        "(new := sorted(set(tables) - set(known)))",
        "(new := sorted(set(tables) - set(tables)))",
        f"{TABLES} -k added",
    ),
    Mutant(
        "a table that was made anew is taken for the old one",
        f"{POSTGRESQL}/replication/tables.py",
        'f"{published[each.place].table.oid} {each.table.name}"',
        'f"0 {each.table.name}"',
        f"{TABLES} -k anew",
    ),
    Mutant(
        "a run makes ready for all tables, however few its transactions touch",
        f"{POSTGRESQL}/replication/replay_session.py",
        "        if self.job.replication.both_ways:\n",
        "        if True:\n",
        f"{MANY_TABLES} -k makes_ready",
    ),
    Mutant(
        "a session that replays by set does not learn the tables that come later",
        f"{POSTGRESQL}/replication/replay_session.py",
        """        self._knows_sets = False
        if self.job""",
        "        if self.job",
        f"{MANY_TABLES} -k large_entries",
    ),
    Mutant(
        "a run replays one batch before it reads the next",
        f"{RUN}/overlap.py",
        "        return before\n",
        "        return before or self.finish()\n",
        f"{OVERLAP} -k next_batch",
    ),
    Mutant(
        "a person who ends a run waits for its replay",
        f"{RUN}/overlap.py",
        "            self._subscriber.interrupt()",
        "            pass",
        f"{OVERLAP} -k person",
    ),
    Mutant(
        "the publisher hears of a batch that is still replayed",
        f"{RUN}/replicate.py",
        "    _ended(replication, stream, replication.overlap.take(batch), account)",
        "    _ended(replication, stream, replication.overlap.take(batch), account)\n"
        "    stream.confirm(batch.level or account.level_to)",
        f"{OVERLAP} -k hears",
    ),
    Mutant(
        "a throttled run does not rest",
        f"{RUN}/replicate.py",
        "            pacer.rest()",
        "            pass",
        f"{THROTTLED} -k no_more",
    ),
    Mutant(
        "a throttled run replays a minute's worth at once",
        f"{POSTGRESQL}/entries/from_log.py",
        "self._batch.operations >= self._most",
        "self._batch.operations >= 60 * self._most",
        f"{THROTTLED} -k no_more",
    ),
    Mutant(
        "a throttled run that rests does not hear that it is to end",
        f"{RUN}/pacer.py",
        "while (left := self._left) > 0 and not self.asked_to_end():",
        "while (left := self._left) > 0:",
        "tests/transactional/throttle/test_pace.py -k wants_the_run",
    ),
    Mutant(
        "one direction goes on although the other has stopped",
        "plugins/concord/transactional/both_ways.py",
        """            return error
        finally:
            one_has_ended.set()""",
        """            return error
        finally:
            pass""",
        "tests/transactional/staying/test_both_at_once.py -k ends_the_other",
    ),
    Mutant(
        "a person's wish to end does not reach both directions",
        "plugins/concord/transactional/both_ways.py",
        "return one_has_ended.is_set() or asked_to_end()",
        "return one_has_ended.is_set()",
        "tests/transactional/staying/test_both_at_once.py -k of_either_site",
    ),
    Mutant(
        "a column x is taken for the whole row that people are shown",
        f"{POSTGRESQL}/replay/refused_entry.py",
        "(SELECT to_jsonb(x.*) FROM (SELECT {after}) x)",
        "(SELECT to_jsonb(x) FROM (SELECT {after}) x)",
        f"{NAMED} -k refused_transaction",
    ),
    Mutant(
        "a column t is taken for the whole row that a person's decision logs",
        f"{POSTGRESQL}/replay/decision.py",
        "to_jsonb({side}.*)",
        "to_jsonb({side})",
        f"{NAMED} -k conflict",
    ),
    Mutant(
        "a name ends the body of the procedure that replays",
        f"{POSTGRESQL}/replay/procedure.py",
        "LANGUAGE plpgsql AS {literal(source)}",
        "LANGUAGE plpgsql AS $concord${source}$concord$",
        f"{NAMED} -k takes_every_name",
    ),
)
