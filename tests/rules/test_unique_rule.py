"""The row that gives way when rows cannot stand together: a pure function of the collisions, always to the greater
row."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from concord.rules.unique_rule import Collision, Loss, Rule, losses

RULES = {
    "email": Rule("email", "email", "email", frozenset({"email"})),
    "phone": Rule("phone", "phone", "phone", frozenset({"phone"})),
    "both": Rule("both", "both", "phone", frozenset({"email", "phone"})),
    "code": Rule("code", "code", None, frozenset({"code"})),
}
ROWS = "abcdef"

collisions = st.builds(
    Collision, st.sampled_from(sorted(RULES)), st.sampled_from(ROWS), st.sampled_from(ROWS)
).filter(lambda each: each.one != each.other)
histories = st.lists(collisions, max_size=20)


def rank(row: str) -> tuple[object, ...]:
    return (row,)


def decided(found: list[Collision]) -> list[Loss]:
    return losses(found, RULES, rank)


def stands(collision: Collision, lost: list[Loss]) -> bool:
    """Do the two rows still collide after what was given up?"""
    for row in (collision.one, collision.other):
        given_up = {loss.gives_up for loss in lost if loss.row == row}
        if None in given_up or given_up & RULES[collision.rule].columns:
            return False
    return True


@given(histories)
def test_afterwards_no_two_rows_collide(found: list[Collision]) -> None:
    assert [each for each in found if stands(each, decided(found))] == []


@given(histories)
def test_every_loser_gives_way_to_a_greater_row_that_keeps_its_value(found: list[Collision]) -> None:
    lost = decided(found)
    for loss in lost:
        assert rank(loss.winner) > rank(loss.row)
        assert not any(
            each.row == loss.winner and (each.gives_up is None or each.gives_up in RULES[loss.rule].columns)
            for each in lost
        )


@given(histories)
def test_the_greatest_row_of_all_gives_nothing_up(found: list[Collision]) -> None:
    greatest = max((row for each in found for row in (each.one, each.other)), default="")
    assert all(loss.row != greatest for loss in decided(found))


@given(histories)
def test_neither_the_order_nor_which_of_two_rows_arrives_matters(found: list[Collision]) -> None:
    turned = [Collision(each.rule, each.other, each.one) for each in reversed(found)]
    assert decided(turned) == decided(found)


@given(histories)
def test_a_row_gives_up_no_more_than_its_collisions_demand(found: list[Collision]) -> None:
    """Where no rule looks at what another gives up."""
    found = [each for each in found if each.rule != "both"]
    lost = decided(found)
    for loss in lost:
        others = [each for each in lost if each != loss]
        assert any(stands(each, others) for each in found)


def test_a_row_between_two_others_is_out_of_the_way_of_the_lesser_once_it_is_gone() -> None:
    """F40, in a row: c beats b, which would have beaten a."""
    assert decided([Collision("code", "a", "b"), Collision("code", "b", "c")]) == [
        Loss("b", "c", "code", None)
    ]


def test_a_row_that_gives_up_one_value_keeps_the_other() -> None:
    """F40: row b collides with c on email and with a on phone."""
    assert decided([Collision("email", "b", "c"), Collision("phone", "b", "a")]) == [
        Loss("b", "c", "email", "email"),
        Loss("a", "b", "phone", "phone"),
    ]


@given(histories, st.permutations(sorted(RULES)))
def test_what_a_site_calls_its_rules_decides_nothing(found: list[Collision], names: list[str]) -> None:
    called = dict(zip(sorted(RULES), names, strict=True))
    rules = {called[name]: replace(rule, name=called[name]) for name, rule in RULES.items()}
    lost = losses([replace(each, rule=called[each.rule]) for each in found], rules, rank)
    back = {name: own for own, name in called.items()}
    assert [replace(each, rule=back[each.rule]) for each in lost] == decided(found)
