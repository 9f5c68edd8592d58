"""Keep each transmission's lag and rate, and which objectives are missed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_MEASURED = ("lag", "rows_per_second")


def upgrade() -> None:
    """Of earlier transmissions neither is known."""
    with op.batch_alter_table("transmission") as batch:
        for name in _MEASURED:
            batch.add_column(sa.Column(name, sa.Double(), nullable=True))
    op.create_table(
        "missed_objective",
        sa.Column("synchronization", sa.String(), nullable=False),
        sa.Column("direction", sa.String(), nullable=False),
        sa.Column("aim", sa.String(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("synchronization", "direction", "aim", name=op.f("pk_missed_objective")),
    )


def downgrade() -> None:
    """Take them away."""
    op.drop_table("missed_objective")
    with op.batch_alter_table("transmission") as batch:
        for name in _MEASURED:
            batch.drop_column(name)
