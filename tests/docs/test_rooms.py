"""The rooms of the code: a stranger finds his way in, and no arrow runs up."""

import pytest

from tests.conftest import PROJECT
from tests.docs.rooms import House, postgresql, room_of, whole, written


@pytest.mark.parametrize("house", [whole(), postgresql()], ids=lambda house: house.title)
def test_a_house_has_at_most_30_rooms_on_12_floors_and_no_circle(house: House) -> None:
    assert len(house.arrows) <= 30
    assert max(house.floors.values()) <= 12


@pytest.mark.parametrize("name", sorted(written()))
def test_the_pages_are_as_the_imports_are(name: str) -> None:
    assert (PROJECT / "docs" / name).read_text() == written()[name], "run `python -m tests.docs.rooms`"


def test_every_room_says_what_lives_there_and_what_does_not() -> None:
    for line in written()["rooms.md"].splitlines():
        if line.startswith("| `"):
            said = line.split("|")[3]
            assert said.count(". ") >= 1 or "python -m" in said or "entrance" in said, line


def test_rooms_that_import_each_other_are_found() -> None:
    house = House("a circle", {"a": frozenset({"b"}), "b": frozenset({"a"}), "c": frozenset()})
    with pytest.raises(ValueError, match=r"\['a', 'b'\]"):
        _ = house.floors


def test_an_arrow_that_follows_from_others_is_not_drawn() -> None:
    house = House("three", {"a": frozenset({"b", "c"}), "b": frozenset({"c"}), "c": frozenset()})
    assert house.drawn == [("a", "b"), ("b", "c")]
    assert house.floors == {"c": 1, "b": 2, "a": 3}


def test_a_module_stands_in_the_room_of_its_package() -> None:
    assert room_of("concord.rules.policy") == "concord.rules"
    assert room_of("concord.databases.registry") == "concord.databases"
    assert room_of("concord.databases.postgresql.facts.connection") == "concord.databases.postgresql"
    assert room_of("concord.orchestration.tasks.link") == "concord.orchestration.tasks"
    assert room_of("spark_jobs.link") == "spark_jobs"
    assert room_of("concord.dags") == "concord.dags"
    assert room_of("concord") is None
