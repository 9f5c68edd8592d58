"""Queued updating: whose change stands where both sites changed a row, and how much of a transaction falls with it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Precedence(StrEnum):
    """The fate of a change by the subscriber's users that meets another one of the publisher's (S3-19 to S3-21)."""

    PUBLISHER = "publisher_wins"  #: it is taken back at the subscriber
    SUBSCRIBER = "subscriber_wins"  #: it replaces the publisher's
    REINITIALIZE = (
        "publisher_wins_and_reinitialize"  #: it is taken back, and the subscriber is to be copied anew
    )


class Scope(StrEnum):
    """How much of the subscriber's transaction a conflict rejects (S2-04)."""

    TRANSACTION = "transaction"
    ROW = "row"


class QueuedConflicts(BaseModel):
    """The decision of conflicts where the subscriber's users write as well, and are heard later."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: Precedence = Field(
        default=Precedence.PUBLISHER,
        description="publisher_wins takes the subscriber's change back; subscriber_wins replaces the publisher's;"
        " publisher_wins_and_reinitialize takes it back, and asks to copy the subscriber anew.",
    )
    scope: Scope = Field(
        default=Scope.TRANSACTION,
        description="With publisher_wins: a conflict rejects the whole transaction, or the row alone.",
    )
    report_to_subscriber: bool = Field(
        default=False,
        description="Is a row that is taken back logged at the subscriber as well? Default: at the publisher alone.",
    )
