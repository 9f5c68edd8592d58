"""Text of a database, or of its users, as a terminal or a log shows it: it steers nothing, and hides nothing."""

from __future__ import annotations

import re
import unicodedata

#: Signs that are not seen although their category is a letter's or a mark's: fillers, joiners of graphemes, vowels that
#: are inherent, selectors of variants.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def inert(text: str) -> str:
    r"""The text on one line, with an escape as `\n`, `\x1b` or `\u202e` for each sign that is not seen.

    These are control and format characters, of direction or of no width, line and paragraph separators, surrogates, and
    signs that are private or not assigned. Joiners inside emoji and inside words of Persian are among them: two names
    that differ by one would look alike. Spaces of whatever width stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_seen, text))


def inert_lines(text: str) -> str:
    """The same for each of several lines."""
    return "\n".join(map(inert, text.split("\n")))


def _seen(sign: str) -> str:
    if (sign.isprintable() or unicodedata.category(sign) == "Zs") and not _BLANK.match(sign):
        return sign
    return sign.encode("unicode_escape").decode()
