"""Runs of DAGs in a test's process, without what Airflow does anew each time although nothing has changed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from jsonschema import Draft202012Validator


def check_schemas_once() -> None:
    """Airflow reads each parameter of a DAG dozens of times a run, and checks its schema each time."""
    check, checked = Draft202012Validator.check_schema, set[str]()

    def once(schema: Any, *arguments: Any, **named: Any) -> None:
        key = json.dumps(schema, sort_keys=True, default=repr)
        if key not in checked or arguments or named:
            check(schema, *arguments, **named)
            checked.add(key)

    Draft202012Validator.check_schema = staticmethod(once)  # type: ignore[method-assign,assignment]


@contextmanager
def dags_known(*, already: bool) -> Iterator[None]:
    """`dag.test()` reads and stores the DAGs of all files before each run. Not where it has stored them already."""
    with pytest.MonkeyPatch.context() as patched:
        if already:
            for name in ("BundleDagBag", "sync_bag_to_db"):
                patched.setattr(f"airflow.dag_processing.dagbag.{name}", lambda *_, **__: None)
        yield
