"""Which of a site's own columns are private, whatever the mapping makes of the canonical ones."""

from hypothesis import given
from hypothesis import strategies as st

from concord.tables.manipulation import Combine, Cut, Manipulation, Rename, Split
from concord.tables.privacy import Treatment, at_site, strictest
from tests.tables.mappings import OPERATIONS

STORED, HASHED, DROPPED = Treatment

TREATMENTS = st.dictionaries(
    st.sampled_from([name for each in OPERATIONS.values() for name in each.canonical] + ["plain"]),
    st.sampled_from(Treatment),
)


def test_a_column_keeps_its_treatment_under_its_own_name() -> None:
    renamed = Manipulation(operations=(Rename(canonical=("passport",), own=("pass_no",)),))
    assert at_site({"passport": HASHED, "note": STORED}, renamed) == {"pass_no": HASHED}


def test_each_part_of_a_private_column_is_private_and_the_strictest_holds_for_what_is_combined() -> None:
    split = Split(canonical=("iban",), own=("bank", "number"), cut=Cut(parts=2, lengths=(4, 6)))
    combine = Combine(canonical=("first", "last"), own=("name",), cut=Cut(parts=2, separator=" "))
    mapped = Manipulation(operations=(split, combine))
    own = at_site({"iban": HASHED, "first": HASHED, "last": DROPPED}, mapped)
    assert own == {"bank": HASHED, "number": HASHED, "name": DROPPED}


@given(TREATMENTS, st.permutations(list(OPERATIONS.values())))
def test_no_own_column_shows_more_than_any_canonical_column_in_it(
    treatments: dict[str, Treatment], operations: list[object]
) -> None:
    manipulation = Manipulation(operations=tuple(operations))  # type: ignore[arg-type]
    own = at_site(treatments, manipulation)
    assert STORED not in own.values()
    for name in [name for each in manipulation.operations for name in each.own] + ["plain"]:
        inside = manipulation.canonical_names([name])
        touching = [each.canonical for each in manipulation.operations if name in each.own] or [inside]
        wanted = strictest(treatments.get(column, STORED) for column in touching[0])
        assert own.get(name, STORED) is wanted
