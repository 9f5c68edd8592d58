"""Count the rows that wait at the target: held for a person, or quarantined since the target would not take them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_FORMER = "acquired = applied + converged + superseded + lost + filtered"
_NEW = ("held", "quarantined")


def upgrade() -> None:
    """Add both counts to the sum of outcomes."""
    with op.batch_alter_table("transmission") as batch:
        for name in _NEW:
            batch.add_column(sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    _replace_check(f"{_FORMER} + held + quarantined")


def downgrade() -> None:
    """Take both away; a row that waits was not acquired, then."""
    op.execute(
        sa.text(
            "UPDATE transmission SET acquired = acquired - held - quarantined, held = 0, quarantined = 0"
            " WHERE held + quarantined > 0"
        )
    )
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
