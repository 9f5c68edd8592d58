"""Which parameters a DAG run takes: every unknown key is refused, since Airflow lets it through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from airflow.sdk import Param
from pydantic import BaseModel, ConfigDict, ValidationError

from concord.configuration.field import near_miss
from concord.messages.errors import ParametersRefused


class Parameters(BaseModel):
    """The parameters of a DAG run, with the values that hold where nothing is given."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


Kind = TypeVar("Kind", bound=Parameters)


def tables_param(tables: Sequence[str]) -> Param:
    """Some of these tables, each once; none named is all."""
    return Param(
        None,
        type=["null", "array"],
        items={"type": "string", "enum": list(tables)},
        minItems=1,
        uniqueItems=True,
        description="Only these tables; empty for all.",
    )


def read(kind: type[Kind], conf: Mapping[str, Any] | None) -> Kind:
    """The parameters in a run's conf. Raises ParametersRefused for anything that they do not mean.

    A typo in `plan_only` would otherwise be a run that writes.
    """
    given = dict(conf or {})
    known = [field.alias or name for name, field in kind.model_fields.items()]
    if unknown := sorted(given.keys() - set(known)):
        raise ParametersRefused("; ".join(_unknown(key, known) for key in unknown))
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise ParametersRefused(f"parameter {name}: {first['msg'].lower()}") from None


def _unknown(key: str, known: list[str]) -> str:
    near = near_miss(key, known)
    return f"unknown parameter {key!r}; " + (
        f"did you mean {near}?" if near else f"there are {', '.join(known) or 'none'}"
    )
