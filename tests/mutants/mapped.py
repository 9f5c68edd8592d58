"""Errors to plant where a replication maps rows: a value that is lost, or a row that is not found, would go unseen."""

from __future__ import annotations

from tests.mutants.planted import POSTGRESQL, Mutant

MAPPED_HERE = "tests/transactional/mapped/test_mapped.py"
REFUSED = "tests/transactional/mapped/test_refused_mapping.py"
BY_SPARK = "tests/transactional/mapped/test_by_spark.py"
OWN_SPARK = "tests/orchestration/tasks/test_replication_spark.py"
LINES = f"{POSTGRESQL}/entries/mapped_lines.py"

MAPPED = (
    Mutant(
        "a row that does not come back the same is replayed",
        "plugins/concord/tables/row_mapping.py",
        '            *(f"{each} at {self.target.site}" for each in there.unfaithful(canonical, leaving=False)),\n',
        "",
        f"{REFUSED} -k names_operation",
    ),
    Mutant(
        "a row that does not fit its mapping is replayed by the loop",
        f"{POSTGRESQL}/replay/procedure.py",
        "{taken(self.table)}{refused(self.table)}",
        "{taken(self.table)}",
        f"{REFUSED} -k names_operation",
    ),
    Mutant(
        "a row that does not fit its mapping is replayed by set",
        f"{POSTGRESQL}/entries/staging.py",
        'return "false" if self.mapping is None else "s.refused IS NOT NULL"',
        'return "false"',
        f"{REFUSED} -k names_operation",
    ),
    Mutant(
        "the key of a row before an operation is not mapped",
        LINES,
        "return mapper(mapping, keys) if mapping.changed else [Mapped(key) for key in keys]",
        "return [Mapped(key) for key in keys]",
        f"{REFUSED} -k key_without",
    ),
    Mutant(
        "an unsent value is taken for an empty one",
        LINES,
        'b"1" if of and of <= unsent else b"0"',
        'b"0"',
        f"{MAPPED_HERE} -k unsent",
    ),
    Mutant(
        "a value that is made of several is mapped of what an update sends",
        f"{POSTGRESQL}/log/published.py",
        "return self.images or self.where is not None or self.shared or self.joined",
        "return self.images or self.where is not None or self.shared",
        f"{MAPPED_HERE} -k unchanged_value",
    ),
    Mutant(
        "truth values are read as their contrary",
        LINES,
        '_TRUTHS = {b"t": "true", b"f": "false"}',
        '_TRUTHS = {b"t": "false", b"f": "true"}',
        f"{MAPPED_HERE} -k first_copy_is_mapped",
    ),
    Mutant(
        "a first copy takes rows that do not fit",
        LINES,
        "if each.refused is not None:",
        "if False:",
        f"{REFUSED} -k leaves_nothing",
    ),
    Mutant(
        "a key that is mapped with other columns is let pass",
        f"{POSTGRESQL}/replication/way.py",
        "if columns & of_key and not columns <= of_key:",
        "if False:",
        f"{MAPPED_HERE} -k mapped_with_other",
    ),
    Mutant(
        "a private column shows in what several become",
        f"{POSTGRESQL}/replay/set_aside.py",
        "tuple(at_site(each.private, each.manipulation_at(site)))",
        "each.manipulation_at(site).own_names(tuple(each.private))",
        f"{REFUSED} -k private",
    ),
    Mutant(
        "rows that Spark has mapped come back in any order",
        "spark_jobs/steps/mapped_texts.py",
        ".sort_by(_PLACE)",
        '.sort_by([(_PLACE, "descending")])',
        f"{BY_SPARK} -k in_order",
    ),
    Mutant(
        "Spark is asked for few rows",
        "spark_jobs/replicate.py",
        "if not rows or len(rows) < spark_from:",
        "if not rows:",
        f"{BY_SPARK} -k so_many",
    ),
    Mutant(
        "a replication's own Spark does not hear of the memory that the connection names",
        "plugins/concord/orchestration/tasks/spark_settings.py",
        'return str(extra.get(f"{of}-memory", MEMORY))',
        "return MEMORY",
        f"{OWN_SPARK} -k many_rows",
    ),
    Mutant(
        "a Spark that does not start ends a replication in Java's words",
        "spark_jobs/session.py",
        "    except (PySparkException, Py4JError) as error:",
        "    except InterruptedError as error:",
        f"{OWN_SPARK} -k port",
    ),
    Mutant(
        "Spark maps rows of a replication that says nothing of it",
        "plugins/concord/jobs/replication.py",
        "    spark_from: int | None = None  #: rows",
        "    spark_from: int | None = 0  #: rows",
        f"{BY_SPARK} -k unless_the_configuration",
    ),
)
