"""Errors by which `provision` refuses what its check does not name, or leaves out more or less than it says."""

from tests.mutants.mutant import Mutant

REFUSED = "tests/databases/postgresql/provision/test_refusals.py"
SKIPPED = "tests/databases/postgresql/provision/test_skip_refused.py"
GROUPED = "tests/messages/test_grouped.py"
TYPED = "tests/terminal/test_provision.py"

REFUSALS = (
    Mutant(
        "the check does not name what provisioning refuses",
        "concord.databases.provisioning:check",
        "*(each.text for each in refused)]",
        "]",
        f"{REFUSED} -k 'names_what and round'",
    ),
    Mutant(
        "the check does not name the rights that the installer lacks",
        "concord.databases.refusals:refusals",
        "*of_site(lacked)]",
        "]",
        f"{REFUSED} -k 'names_what and installer'",
    ),
    Mutant(
        "the right to use a key's type is not checked",
        "concord.databases.postgresql.provision.admission:_of_installer",
        "if each.name in shadow.key]",
        "if False]",
        f"{REFUSED} -k 'names_what and others'",
    ),
    Mutant(
        "a log reader is not tried before its slot is made",
        "concord.databases.postgresql.provision.site_refusals:of_log",
        "yield from of_site(log_problems.login_refusals(connection, state.facts, wanted))",
        "pass",
        f"{REFUSED} -k 'names_what and password'",
    ),
    Mutant(
        "a log reader may lead to another database",
        "concord.databases.postgresql.sites.log_problems:login_refusals",
        "if identity != facts.identity:",
        "if False:",
        f"{REFUSED} -k 'names_what and another and database'",
    ),
    Mutant(
        "a server without a slot is found out too late",
        "concord.databases.postgresql.sites.log_problems:login_refusals",
        "count(*) >= current_setting",
        "count(*) > current_setting",
        f"{REFUSED} -k no_slot_left",
    ),
    Mutant(
        "a log reader is let in after its slot was to be made",
        "concord.databases.postgresql.provision.site_log:SiteLog.begin",
        "*(each.sql for each in logs_in),",
        "",
        f"{REFUSED} -k let_into",
    ),
    Mutant(
        "the right to let a log reader in is not checked",
        "concord.databases.postgresql.provision.admission:_lacked_grants",
        "needed.append(connect(wanted.log_reader, state.facts.database))",
        "pass",
        f"{REFUSED} -k cannot_let_in",
    ),
    Mutant(
        "the types of a destination are not looked for",
        "concord.databases.postgresql.snapshots.provision:target_refusals",
        'yield from (f"{where}{problem}" for problem in _type_problems(connection, ends))',
        "pass",
        f"{REFUSED} -k destination_of",
    ),
    Mutant(
        "a refused table is said to be missing as well",
        "concord.databases.postgresql.provision.site_statements:check",
        "if there or name not in refused:",
        "if True:",
        f"{REFUSED} -k not_said_to_be_missing",
    ),
    Mutant(
        "a refused site does not stop the others' tables",
        "concord.databases.leaving_out:accepted",
        "if not every:",
        "if all(each.of_site for each in every):",
        f"{SKIPPED} -k 'as_a_whole or installer_lacks'",
    ),
    Mutant(
        "a table is left out although that ends its capture",
        "concord.databases.leaving_out:accepted",
        "if lost or fewer",
        "if fewer",
        f"{SKIPPED} -k end_its_capture",
    ),
    Mutant(
        "a table keeps the triggers of an older Concord",
        "concord.databases.postgresql.provision.surveyed_site:Surveyed.captured",
        "or name in older",
        "",
        f"{SKIPPED} -k after_an_upgrade",
    ),
    Mutant(
        "children of refused tables are provisioned",
        "concord.databases.postgresql.sites.preflight:outside_parents",
        "if foreign_key.parent not in inside:",
        "if False:",
        f"{SKIPPED} -k refers_to",
    ),
    Mutant(
        "a refused snapshot keeps its captured source",
        "concord.databases.contract.surveyed_site:Installation.without",
        "if not each.captured_only or each.name in read",
        "if True",
        f"{SKIPPED} -k only_snapshot",
    ),
    Mutant(
        "an incremental snapshot is provisioned without its source",
        "concord.databases.contract.surveyed_site:Installation.without",
        "and (each.tracked is None or each.tracked.name not in tables)",
        "",
        f"{SKIPPED} -k with_its_source",
    ),
    Mutant(
        "a table of a superuser refuses the whole site",
        "concord.databases.postgresql.provision.admission:_tables_with",
        "if table and relation in (table.name, *table.sequences)",
        "if False",
        f"{SKIPPED} -k superusers_table",
    ),
    Mutant(
        "different reasons become one line",
        "concord.messages.grouped:grouped",
        "setdefault((site, reason), {})",
        "setdefault((site, ''), {})",
        GROUPED,
    ),
    Mutant(
        "a name is taken for the beginning of another",
        "concord.messages.grouped:_parts",
        "max((each for each",
        "min((each for each",
        f"{GROUPED} -k as_a_whole",
    ),
    Mutant(
        "the lists to paste hold the refused tables",
        "concord.configuration.fewer_tables:fewer_tables",
        "if str(table.table) not in refused",
        "if True",
        f"{TYPED} -k pasted",
    ),
    Mutant(
        "a word that YAML takes for a boolean is not quoted",
        "concord.configuration.fewer_tables:_text",
        "and not _CONSTANTS.fullmatch(text)",
        "",
        f"{TYPED} -k quoted",
    ),
)
