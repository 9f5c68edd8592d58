"""Whether Spark is ours alone, or was started by somebody else for many (`resident`)."""

#: The group of this process's jobs in a Spark that others use as well; none where Spark is ours alone.
_GROUP: list[str] = []


def share_as(group: str) -> None:
    """Spark is others' as well: what any thread of ours asks of it belongs to this group, and ends with it."""
    _GROUP[:] = [group]


def group() -> str | None:
    """What our jobs are called in a Spark of many."""
    return _GROUP[0] if _GROUP else None
