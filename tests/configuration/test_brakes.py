"""How brakes are written, and which hold for a table."""

import pytest
from pydantic import ValidationError

from concord.configuration.brakes import BrakeSettings
from concord.configuration.settings import SynchronizationSettings, TableSettings
from concord.rules.brake import Brakes, Limit


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("50%", Limit(share=0.5)),
        ("7 %", Limit(share=0.07)),
        (10000, Limit(rows=10000)),
        (["50%", 10000], Limit(share=0.5, rows=10000)),
        ("never", Limit()),
    ],
)
def test_a_limit_is_a_share_a_number_both_or_never(written: object, limit: Limit) -> None:
    settings = BrakeSettings.model_validate({"deletes": written})
    assert settings.deletes == limit
    assert BrakeSettings.model_validate(settings.model_dump(exclude_none=True)) == settings


@pytest.mark.parametrize("written", ["0%", "101%", "half", -1, True, 0.5, [], [1, 2], ["1%", "2%"], {}])
def test_anything_else_is_refused_with_what_to_write(written: object) -> None:
    with pytest.raises(ValidationError, match="write a number of rows such as 10000, a share"):
        BrakeSettings.model_validate({"changes": written})


def test_a_table_says_what_differs_from_its_synchronization_which_says_what_differs_from_the_defaults() -> (
    None
):
    pair = SynchronizationSettings.model_validate(
        {
            **{"replication_set": "r", "source": "a", "target": "b"},
            "brakes": {"deletes": 100, "smallest_table": 5},
        }
    )
    table = {"table": "public.t"}
    plain = TableSettings.model_validate(table)
    own = TableSettings.model_validate({**table, "brakes": {"changes": "90%"}})
    assert pair.brakes_of(plain) == Brakes(deletes=Limit(rows=100), smallest_table=5)
    assert pair.brakes_of(own) == Brakes(deletes=Limit(rows=100), changes=Limit(share=0.9), smallest_table=5)
