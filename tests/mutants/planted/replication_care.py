"""Errors around a replication's runs: its copies, its messages, and what `provision` says of it."""

from tests.mutants.mutant import Mutant

KILLS = "tests/transactional/test_kills.py"
ADDED = "tests/transactional/hooks/test_rights_of_added_rows.py"
IDENTITIES = "tests/transactional/publications/test_identities.py"
KEYS = "tests/transactional/publications/test_keys.py"
PREPARED = "tests/terminal/test_prepare.py"
LOGINS = "tests/terminal/test_prepared_logins.py"
SITES = "tests/transactional/differing/test_restored_sites.py"
TERMINAL = "tests/orchestration/dags/test_replicate.py"

REPLICATION_CARE = (
    Mutant(
        "a copy drops the slot of a replication that runs",
        "concord.databases.postgresql.replication.publisher:Publisher.begin_anew",
        "if self.job.copied or slot.is_kept(self.connection, self._slot):",
        "if False:",
        f"{KILLS} -k 'killed_copy_of and log'",
    ),
    Mutant(
        "a copy drops the kept operations of a replication that runs",
        "concord.databases.postgresql.replication.trigger_publisher:TriggerPublisher.begin_anew",
        "if not was_kept:",
        "if True:",
        f"{KILLS} -k 'killed_copy_of and triggers'",
    ),
    Mutant(
        "a way back replays what a copy has replaced",
        "concord.databases.postgresql.replication.subscriber:Subscriber.initialize",
        "about_to_commit()",
        "pass",
        f"{KILLS} -k way_back",
    ),
    Mutant(
        "a message says that the other site was restored",
        "concord.databases.contract.last_entry:confirmed_beyond",
        "as after a restore of {target}",
        "as after a restore of {source}",
        f"{SITES} -k 'names and level'",
    ),
    Mutant(
        "a key that no operator of PostgreSQL's own compares is provisioned",
        "concord.databases.postgresql.facts.types:ColumnType.is_comparable",
        'return self.kind != "b" or self.built_in',
        "return True",
        f"{KEYS} -k refused",
    ),
    Mutant(
        "a domain over such a type is a key",
        "concord.databases.postgresql.facts.types:ColumnType.is_comparable",
        'return not self.root.startswith("enum:") and self.root not in _OWN_OPERATORS',
        'return not self.root.startswith("enum:")',
        f"{KEYS} -k refused",
    ),
    Mutant(
        "provision resets a replica identity that somebody made FULL",
        "concord.databases.postgresql.log.publication:identity_problems",
        "elif somebodys and each.listed:",
        "elif False:",
        f"{IDENTITIES} -k 'refused and before'",
    ),
    Mutant(
        "provision resets an identity that another reader of the log may need",
        "concord.databases.postgresql.log.publication:whole_identities",
        "if each.full and each.filtered",
        "if each.full",
        f"{IDENTITIES} -k 'hinders and once'",
    ),
    Mutant(
        "a run reads a table that its users cannot update",
        "concord.databases.postgresql.replication.publisher:Publisher.inspect_published",
        "if full := list(publication.refused_identities(found, published.tables)):",
        "if full := list[str]():",
        f"{IDENTITIES} -k 'refused and once'",
    ),
    Mutant(
        "nobody may draw the numbers of rows that hooks add",
        "concord.databases.postgresql.provision.surveyed_site:Surveyed._replication_grants",
        "*logs_in, *of_hooks]",
        "*logs_in]",
        f"{ADDED} -k numbers_of",
    ),
    Mutant(
        "the check says that nothing writes a table of a hook",
        "concord.databases.postgresql.provision.surveyed_site:Surveyed._otherwise_provisioned",
        "written = [*self.replications.replayed, *added]",
        "written = [*self.replications.replayed]",
        f"{ADDED} -k numbers_of",
    ),
    Mutant(
        "a hook's table may have a column that nothing fills",
        "concord.databases.postgresql.hooks.added_rows:problems",
        "elif needed:",
        "elif False:",
        "tests/databases/postgresql/hooks/test_added_rows.py -k strict",
    ),
    Mutant(
        "a run at a terminal does not say that it never stays",
        "concord.terminal.replicate:run",
        "if configuration.replications[asked.name].stays:",
        "if False:",
        f"{TERMINAL} -k never_stays",
    ),
    Mutant(
        "the prepared login cannot read the log",
        "concord.databases.postgresql.provision.logins:_steps",
        'reads_log = " REPLICATION" if login == LOG_READER else ""',
        'reads_log = ""',
        f"{PREPARED} -k nothing_but",
    ),
    Mutant(
        "a prepared replication has no login for the log",
        "concord.terminal.prepare:_site",
        'log_reader = f", log_reader: {site}_log_reader" if place.publishes else ""',
        'log_reader = ""',
        f"{PREPARED} -k own_section",
    ),
    Mutant(
        "databases of one server share their logins",
        "concord.databases.contract.logins:name_of",
        'return shortened(f"{login}_of_{database}")',
        "return login",
        f"{LOGINS} -k distinct",
    ),
    Mutant(
        "long names of logins are cut by PostgreSQL",
        "concord.databases.contract.logins:name_of",
        'return shortened(f"{login}_of_{database}")',
        'return f"{login}_of_{database}"',
        f"{LOGINS} -k distinct",
    ),
    Mutant(
        "a second folder's script takes over the first one's logins",
        "concord.databases.postgresql.provision.logins:_leaves_another_folder",
        "JOIN pg_authid ON rolname = login AND rolpassword <> verifier;",
        "JOIN pg_authid ON false;",
        f"{LOGINS} -k second_folder",
    ),
    Mutant(
        "a script admits a second installer to a role that serves another folder",
        "concord.databases.postgresql.provision.logins:_leaves_another_folder",
        "SELECT * INTO others, remedy FROM",
        "SELECT NULL, NULL INTO others, remedy FROM",
        f"{LOGINS} -k earlier_concord",
    ),
)
