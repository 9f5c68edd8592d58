"""A column that travels has one name for Spark and one for Arrow."""

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from concord.databases.contract.rows import VERSION_TYPES
from concord.databases.postgresql.facts.types import NATIVE
from spark_jobs.steps.acquire import ARROW_TYPES, arrow_schema


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_every_type_that_travels_is_read_as_spark_would_read_it() -> None:
    assert {*VERSION_TYPES.values(), *(kind for kind, _ in NATIVE.values())} <= ARROW_TYPES.keys()
    ddl = ", ".join(f"c{number} {kind}" for number, kind in enumerate(ARROW_TYPES))
    assert arrow_schema(ddl) == to_arrow_schema(StructType.fromDDL(ddl))
