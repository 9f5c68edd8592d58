"""`provision` at a terminal: one line for each reason."""

import pytest

from tests.given.airflow_pair import Pair
from tests.given.typed_commands import Terminal

KEYLESS = "ALTER TABLE airlines DROP CONSTRAINT airlines_pkey"
REASON = "has no primary key; add one, or name a unique key in the configuration (key: [...])"


@pytest.mark.airflow
def test_the_same_reason_for_both_tables_is_one_line_a_site(unprovisioned: Pair, terminal: Terminal) -> None:
    for site in (unprovisioned.london, unprovisioned.capetown):
        site.run(KEYLESS)
        site.run("ALTER TABLE flights DROP CONSTRAINT flights_pkey")
    lines = [f"{site}: public.flights and public.airlines: {REASON}" for site in ("london", "capetown")]
    checked = terminal("provision", "--check").err.splitlines()
    assert checked[:2] == lines
    assert terminal("provision").err.splitlines()[1:] == [f"  - {line}" for line in lines]
