"""Count the rows that a filter left alone, and those that their site does not own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_FORMER = "acquired = applied + converged + superseded + lost"
_NEW = ("filtered", "not_owned")


def upgrade() -> None:
    """Add both counts; the first belongs to the sum of outcomes."""
    with op.batch_alter_table("transmission") as batch:
        for name in _NEW:
            batch.add_column(sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    _replace_check(f"{_FORMER} + filtered")


def downgrade() -> None:
    """Take both away; a row that was filtered was not acquired, then."""
    op.execute(sa.text("UPDATE transmission SET acquired = acquired - filtered, filtered = 0"))
    _replace_check(_FORMER)
    with op.batch_alter_table("transmission") as batch:
        for name in _NEW:
            batch.drop_column(name)


def _replace_check(adds_up: str) -> None:
    """In a batch, since SQLite alters no constraint: there the table is made anew."""
    name = op.f("ck_transmission_adds_up")
    with op.batch_alter_table("transmission") as batch:
        batch.drop_constraint(name, type_="check")
        batch.create_check_constraint(name, f"state <> 'succeeded' OR {adds_up}")
