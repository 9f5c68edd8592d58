"""Count the updates that found no row at the target, and were inserted there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the count: of what was applied so far, nobody knows it."""
    with op.batch_alter_table("transmission") as batch:
        batch.add_column(
            sa.Column("inserted_for_update", sa.BigInteger(), nullable=False, server_default="0")
        )


def downgrade() -> None:
    """Take it away."""
    with op.batch_alter_table("transmission") as batch:
        batch.drop_column("inserted_for_update")
