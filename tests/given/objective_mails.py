"""Mails about objectives, as docs/monitoring.md has people told; and the configuration that asks for them."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import text

from tests.given.airflow_pair import CANARY, CONFIGURATION, Pair
from tests.given.mailbox import Mailbox, mails_through

#: A row's value, which is nobody's business.
PRIVATE = "delayed by a bird"
#: Each edit in London's flights was made an hour ago.
AN_HOUR_AGO = """UPDATE concord."public.flights" SET changed_at = changed_at - 3600000000"""

Wants = Callable[[str], None]


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    with mails_through("objective_alerts", "monitoring.md", monkeypatch) as box:
        yield box


@pytest.fixture
def wants(pair: Pair) -> Wants:
    """Writes an objective into the configuration."""

    def write(objective: str) -> None:
        wanted = f"objective: {{{objective}, through: objective_alerts}}, schedule:"
        pair.path.write_text(CONFIGURATION.replace("schedule:", wanted))

    return write


def taken(box: Mailbox) -> list[str]:
    """The mails since the last look, sorted: their subjects."""
    mails, box.mails = box.mails, []
    for recipients, mail in mails:
        assert recipients == ["dba@example.org"]
        (part,) = mail.iter_parts()
        assert str(mail["Subject"]).split(" ")[0] in part.get_content()
        assert PRIVATE not in part.get_content()
        assert CANARY not in part.get_content()
    return sorted(str(mail["Subject"]) for _, mail in mails)


def long_ago(pair: Pair) -> None:
    """The links last ran yesterday."""
    with pair.repository.begin() as repository:
        repository.execute(text("UPDATE link SET last_started_at = '2020-01-01 00:00:00.000000'"))
