"""`status` marks a link that cannot go on, whole, with what to do; and takes the mark away when it can."""

import re

import pytest

from tests.given.airflow_pair import NAME, Pair
from tests.given.typed_commands import Terminal

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

INITIALIZE = f"python -m concord initialize {NAME}"


def shown(terminal: Terminal) -> str:
    """The output of `status`, without the breaks of a narrow terminal."""
    return re.sub(r"[\s│]+", " ", terminal("status").out)


def test_a_link_below_its_floor_is_marked_until_it_is_initialized(pair: Pair, terminal: Terminal) -> None:
    assert "ready" in shown(terminal)
    forced = "UPDATE concord.link_state SET forced_at = now() WHERE link = 'london_capetown/forward'"
    pair.london.run(forced)
    said = shown(terminal)
    assert re.search(rf"below its floor since .* UTC, by force; run `{INITIALIZE}`", said)
    assert pair.run(f"initialize__{NAME}", {"how": "reinitialize", "from": "london"}).state == "success"
    assert "below its floor" not in shown(terminal)


def test_a_link_that_was_refused_is_marked_until_what_it_says_was_done(
    pair: Pair, terminal: Terminal
) -> None:
    pair.capetown.run("UPDATE concord.site SET identity = 'another/database'")
    assert pair.run().state == "failed"
    said = shown(terminal)
    assert "refused (identity_changed): capetown: the database is not the one that was provisioned" in said
    assert f"run `{INITIALIZE} --accept-restored`" in said
    named = terminal("status")
    assert (named.status, named.err.startswith(f"{NAME}/forward: refused (identity_changed): capetown")) == (
        1,
        True,
    )
    assert terminal("initialize", NAME, "--accept-restored").status == 0
    assert "refused" not in shown(terminal)
