"""How an initialization goes about its work: how much it commits at once, when it gives up."""

from __future__ import annotations

from pydantic import Field, StrictBool, StrictInt

from concord.configuration.field import Settings


class InitializeSettings(Settings):
    """Settings of every `initialize__<name>`."""

    chunk_rows: StrictInt = Field(
        default=50_000, ge=1, le=10_000_000, description="Rows that are compared, and committed, at once."
    )
    late_indexes: StrictBool = Field(
        default=False,
        description="An empty table is loaded without the indexes that only make queries faster. The site's installer"
        " drops them before, and builds them after, while users work.",
    )
    max_errors: StrictInt = Field(
        default=100, ge=0, le=100_000, description="Refused rows after which an initialization stops."
    )
