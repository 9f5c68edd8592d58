"""Keep what comparisons find."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "comparison",
        *(_text(name) for name in ("id", "synchronization", "source", "target", "repair")),
        *(_moment(name) for name in ("started_at", "ended_at")),
        *(_number(name) for name in ("differences", "in_flight")),
        *(_json(name) for name in ("tables", "seconds")),
        sa.PrimaryKeyConstraint("id", name="pk_comparison"),
    )
    op.create_index("ix_comparison_ended_at", "comparison", ["ended_at"])
    op.create_table(
        "difference",
        _text("comparison_id"),
        _number("place"),
        _text("table_name"),
        _json("key"),
        _text("kind"),
        *(_json(f"{side}_row", nullable=True) for side in ("source", "target")),
        *(_json(f"{side}_version", nullable=True) for side in ("source", "target")),
        _text("remedy", nullable=True),
        sa.PrimaryKeyConstraint("comparison_id", "place", name="pk_difference"),
        sa.ForeignKeyConstraint(
            ["comparison_id"], ["comparison.id"], name="fk_difference_comparison_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """Drop both tables, the child first."""
    op.drop_table("difference")
    op.drop_table("comparison")


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=nullable)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _json(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(), nullable=nullable)
