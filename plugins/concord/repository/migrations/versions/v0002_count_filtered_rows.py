"""Count the rows that a filter left alone, and those that their site does not own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_STATE = "state IN ('succeeded', 'failed')"
_FORMER = "acquired = applied + converged + superseded + lost"
_ADDS_UP = f"{_FORMER} + filtered"
_NEW = ("filtered", "not_owned")


def upgrade() -> None:
    """Add both counts; the first belongs to the sum of outcomes."""
    with _transmission(_ADDS_UP) as batch:
        for name in _NEW:
            batch.add_column(sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    _replace_check(_ADDS_UP)


def downgrade() -> None:
    """Take both away; a row that was filtered was not acquired, then."""
    op.execute(sa.text("UPDATE transmission SET acquired = acquired - filtered"))
    _replace_check(_FORMER)
    with _transmission(_FORMER) as batch:
        for name in _NEW:
            batch.drop_column(name)


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"


def _transmission(adds_up: str):  # type: ignore[no-untyped-def]  # alembic's context manager has no public name
    """SQLite alters no constraint: the table is made anew, with its checks, which are not read back."""
    checks = (
        sa.CheckConstraint(_STATE, name=op.f("ck_transmission_state")),
        sa.CheckConstraint(f"state <> 'succeeded' OR {adds_up}", name=op.f("ck_transmission_adds_up")),
    )
    return op.batch_alter_table("transmission", table_args=checks)


def _replace_check(adds_up: str) -> None:
    if not _is_sqlite():
        name = op.f("ck_transmission_adds_up")
        op.drop_constraint(name, "transmission", type_="check")
        op.create_check_constraint(name, "transmission", f"state <> 'succeeded' OR {adds_up}")
