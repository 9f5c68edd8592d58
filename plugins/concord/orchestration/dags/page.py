"""A DAG's own page in Airflow (`doc_md`): what it does, when it runs, what its parameters mean, where to look next."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from airflow.sdk import Param


def page(
    does: Sequence[str],
    runs: str,
    look_next: Sequence[str],
    params: Mapping[str, Param] | None = None,
    notices: Sequence[str] = (),
) -> str:
    """Markdown. The parameters are told as the trigger form tells them."""
    paragraphs = [*does, f"**Runs:** {runs}"]
    if params:
        paragraphs += ["**Parameters of a manual run:**", _table(params)]
    paragraphs += ["**Where to look next:**", _listed(look_next)]
    if notices:
        paragraphs += ["Notices of the configuration:", _listed([f"`{notice}`" for notice in notices])]
    return "\n\n".join(paragraphs)


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(params: Mapping[str, Param]) -> str:
    lines = [
        f"| `{name}` | `{json.dumps(param.value)}` | {param.description} |" for name, param in params.items()
    ]
    return "\n".join(["| parameter | default | meaning |", "|---|---|---|", *lines])
