"""How Alembic reaches the repository: over the connection that `migrate` hands it."""

from __future__ import annotations

from alembic import context

from concord.repository.migration import VERSION_TABLE
from concord.repository.models import Record

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Record.metadata,
    version_table=VERSION_TABLE,
)

with context.begin_transaction():
    context.run_migrations()
