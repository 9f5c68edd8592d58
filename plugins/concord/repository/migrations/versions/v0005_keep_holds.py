"""Keep why links wait for a person, and who let them go on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Nothing was held so far."""
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "hold",
        sa.Column("id", sa.String(), nullable=False),
        *(
            sa.Column(name, sa.String(), nullable=False)
            for name in ("synchronization", "direction", "table_name", "kind")
        ),
        sa.Column("seen", sa.BigInteger(), nullable=False),
        sa.Column("table_rows", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("held_at", moment, nullable=False),
        sa.Column("approved_at", moment, nullable=True),
        sa.Column("approved_by", sa.String(), nullable=True),
        sa.Column("approved_up_to", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", moment, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hold")),
    )
    op.create_index(op.f("ix_hold_synchronization_ended_at"), "hold", ["synchronization", "ended_at"])


def downgrade() -> None:
    """Forget them; a held link is held again at its next run."""
    op.drop_table("hold")
