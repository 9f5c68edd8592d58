"""A dialect that differs in some members, for tests of what others do with them."""

from copy import copy
from typing import Any

from concord.databases.contract.dialect import Dialect


def with_members(dialect: Dialect, **members: Any) -> Dialect:
    other = copy(dialect)
    vars(other).update(members)
    return other
