"""JSON of every shape, as whoever may write a site's tables can store it."""

import json

from hypothesis import strategies as st

_NUMBERS = (
    st.sampled_from([0, 1, -1, (1 << 63) - 1, 1 << 63, 10**30, 10**400])
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
#: No jsonb holds any other.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
_SCALARS = _NUMBERS | TEXTS | st.none() | st.booleans()
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)

#: Texts that PostgreSQL takes for JSON. Python cannot represent the last ones.
ANY_JSON = _VALUES.map(json.dumps) | st.sampled_from(
    [
        "1e400",
        '{"changed_at": 1e400}',
        "9" * 5000,
        "[" * 3000 + "]" * 3000,
        '{"a": ' * 3000 + "1" + "}" * 3000,
    ]
)


def either(usual: object, odd: st.SearchStrategy[str] = ANY_JSON) -> st.SearchStrategy[str]:
    """The usual value, the same with one part missing or of another kind, or any other."""
    parts = st.just(json.dumps(usual))
    if isinstance(usual, dict):
        changed = st.tuples(st.sampled_from(sorted(usual)), odd.filter(lambda text: len(text) < 1000))
        parts |= changed.map(lambda each: _with(usual, *each))
        parts |= st.sampled_from(sorted(usual)).map(lambda name: json.dumps(_without(usual, name)))
    return parts | odd


def _with(usual: dict[str, object], name: str, text: str) -> str:
    others = _without(usual, name)
    return json.dumps(others)[:-1] + f"{', ' if others else ''}{json.dumps(name)}: {text}}}"


def _without(usual: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in usual.items() if key != name}
