"""Say what a conflict's entry withholds, and who overturned it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_COLUMNS: dict[str, sa.types.TypeEngine[Any]] = {
    "withheld": sa.JSON(none_as_null=True),
    "overturned_at": sa.DateTime(timezone=True),
    "overturned_by": sa.String(),
    "overturned_version": sa.JSON(none_as_null=True),
}


def upgrade() -> None:
    """Entries so far withhold nothing, and none was overturned."""
    for name, kind in _COLUMNS.items():
        op.add_column("conflict", sa.Column(name, kind, nullable=True))


def downgrade() -> None:
    """Forget both."""
    for name in _COLUMNS:
        op.drop_column("conflict", name)
