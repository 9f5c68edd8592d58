"""Create the repository."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table."""
    _create_synchronization()
    _create_link()
    _create_synchronization_run()
    _create_transmission()
    _create_conflict()
    _create_maintenance()


def downgrade() -> None:
    """Drop every table, children first."""
    for table in (
        "maintenance",
        "conflict",
        "transmission",
        "synchronization_run",
        "link",
        "synchronization",
    ):
        op.drop_table(table)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=nullable)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _json(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(), nullable=nullable)


def _create_synchronization() -> None:
    op.create_table(
        "synchronization",
        _text("name"),
        _number("epoch"),
        _text("owner", nullable=True),
        _moment("lease_acquired_at", nullable=True),
        _moment("lease_expires_at", nullable=True),
        _moment("last_started_at", nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_synchronization"),
    )


def _create_link() -> None:
    op.create_table(
        "link",
        _text("synchronization"),
        _text("direction"),
        _text("source"),
        _text("target"),
        _moment("last_started_at", nullable=True),
        sa.PrimaryKeyConstraint("synchronization", "direction", name="pk_link"),
        sa.ForeignKeyConstraint(
            ["synchronization"], ["synchronization.name"], name="fk_link_synchronization"
        ),
        sa.CheckConstraint("direction IN ('forward', 'reverse')", name=op.f("ck_link_direction")),
    )


def _create_synchronization_run() -> None:
    op.create_table(
        "synchronization_run",
        _text("id"),
        _text("synchronization"),
        _number("epoch"),
        _text("owner"),
        _text("dag_run_id"),
        _text("run_type"),
        _text("direction", nullable=True),
        _json("tables", nullable=True),
        sa.Column("plan_only", sa.Boolean(), nullable=False),
        _moment("started_at"),
        _moment("ended_at", nullable=True),
        _text("state"),
        _text("message", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_synchronization_run"),
        sa.ForeignKeyConstraint(
            ["synchronization"], ["synchronization.name"], name="fk_synchronization_run_synchronization"
        ),
        sa.UniqueConstraint("synchronization", "epoch", name="uq_synchronization_run_synchronization_epoch"),
        sa.CheckConstraint(
            "state IN ('running', 'succeeded', 'failed', 'released')",
            name=op.f("ck_synchronization_run_state"),
        ),
    )


def _create_transmission() -> None:
    op.create_table(
        "transmission",
        _text("id"),
        _text("run_id"),
        _text("direction"),
        _text("source"),
        _text("target"),
        sa.Column("plan_only", sa.Boolean(), nullable=False),
        _moment("started_at"),
        _moment("ended_at"),
        _text("state"),
        _text("error_code", nullable=True),
        _text("error_message", nullable=True),
        _number("bytes"),
        _json("seconds"),
        _json("tables"),
        _number("acquired"),
        _number("applied"),
        _number("converged"),
        _number("superseded"),
        _number("lost"),
        _number("conflicts"),
        sa.PrimaryKeyConstraint("id", name="pk_transmission"),
        sa.ForeignKeyConstraint(["run_id"], ["synchronization_run.id"], name="fk_transmission_run_id"),
        sa.CheckConstraint("state IN ('succeeded', 'failed')", name=op.f("ck_transmission_state")),
        sa.CheckConstraint(
            "state <> 'succeeded' OR acquired = applied + converged + superseded + lost",
            name=op.f("ck_transmission_adds_up"),
        ),
    )
    op.create_index("ix_transmission_run_id", "transmission", ["run_id"])


def _create_conflict() -> None:
    op.create_table(
        "conflict",
        _text("id"),
        _text("synchronization"),
        _text("link"),
        _text("transmission"),
        _text("table_name"),
        _json("key"),
        _text("conflict_type"),
        _text("resolver"),
        _text("reason"),
        _text("winner_site"),
        _text("loser_site"),
        _json("winner_version"),
        _json("loser_version"),
        _json("winner_row", nullable=True),
        _json("loser_row", nullable=True),
        _moment("decided_at"),
        _text("site"),
        sa.PrimaryKeyConstraint("id", name="pk_conflict"),
    )
    op.create_index("ix_conflict_decided_at", "conflict", ["decided_at"])
    op.create_index("ix_conflict_synchronization_table_name", "conflict", ["synchronization", "table_name"])


def _create_maintenance() -> None:
    op.create_table(
        "maintenance",
        _text("name"),
        _moment("last_completed_at"),
        sa.PrimaryKeyConstraint("name", name="pk_maintenance"),
    )
