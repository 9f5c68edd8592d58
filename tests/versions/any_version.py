"""Row versions as the sites of a mesh could have made them."""

import random
from dataclasses import replace

from hypothesis import strategies as st

from concord.versions.row_version import (
    ABSENT,
    Dot,
    RowVersion,
    Vector,
)

ORIGINS = ("capetown#1", "london#1", "london#2", "london#10", "oslo#1")
PRIORITIES = {"oslo": 7, "capetown": 7, "london": 2}

#: Few and small, so that equal timestamps and inclusion in both directions are frequent.
_stamps = st.integers(1, 4)
dots: st.SearchStrategy[Dot] = st.tuples(_stamps, st.integers(0, 2))
vectors: st.SearchStrategy[Vector] = st.dictionaries(st.sampled_from(ORIGINS), dots, max_size=4)


@st.composite
def versions(draw: st.DrawFn) -> RowVersion:
    """A version always includes itself, and may include more of its own origin than it says."""
    origin, dot = draw(st.sampled_from(ORIGINS)), draw(dots)
    vector = dict(draw(vectors))
    vector[origin] = max(dot, vector.get(origin, dot))
    return RowVersion(origin, *dot, vector, draw(st.booleans()), draw(st.booleans()))


#: The row that a link leaves where it locked a key that it did not write.
PLACEHOLDER = replace(ABSENT, deleted=True)

#: The rows that an incoming version may meet: another version, or a row that nobody has ever changed.
present_versions = st.one_of(versions(), st.just(ABSENT))


def random_version(source: random.Random) -> RowVersion:
    """The same distribution without Hypothesis, for thousands of pairs in one query."""

    def dot() -> Dot:
        return source.randint(1, 4), source.randint(0, 2)

    origin, own = source.choice(ORIGINS), dot()
    vector = {each: dot() for each in source.sample(ORIGINS, source.randint(0, 4))}
    vector[origin] = max(own, vector.get(origin, own))
    return RowVersion(origin, *own, vector, source.random() < 0.5, source.random() < 0.5)


def random_pairs(seed: int, many: int) -> list[tuple[RowVersion, RowVersion]]:
    """Incoming and present. One in ten presents is absent, one in ten the incoming version itself, and one in
    twenty of the incoming is a placeholder."""
    source = random.Random(seed)
    pairs = []
    for _ in range(many):
        incoming, chance = random_version(source), source.random()
        incoming = PLACEHOLDER if source.random() < 0.05 else incoming
        present = ABSENT if chance < 0.1 else incoming if chance < 0.2 else random_version(source)
        pairs.append((incoming, present))
    return pairs


def contains(whole: Vector, part: Vector) -> bool:
    return all(whole.get(origin, (0, 0)) >= dot for origin, dot in part.items())
