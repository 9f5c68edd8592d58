"""Record which interval of versions a run covers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_COLUMNS = ("interval_start", "interval_end")


def upgrade() -> None:
    """Runs so far covered no interval."""
    for column in _COLUMNS:
        op.add_column("synchronization_run", sa.Column(column, sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Forget the intervals."""
    for column in _COLUMNS:
        op.drop_column("synchronization_run", column)
