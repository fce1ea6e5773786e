"""Names without regard to case: the keys by which they are compared and sorted."""

import re
from unicodedata import normalize

MAX_SEARCHED = 100
"""The most characters that a search may ask for."""

_LONGEST = 4 * 255
"""Characters: a name has 255, which may be four times as many until they are composed."""

_WIDE = re.compile("[\u3000\uff01-\uffee]+")
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000
_LAST = "\U0010ffff"


def name_key(name: str) -> str:
    """Return a key that is equal for names that differ only in case, width or composed accents.

    It is the canonical caseless form of Unicode (chapter 3.13, D145), composed, of the full
    width or half width that is usual. A text that is too long for a name is its own key.
    """
    if len(name) > _LONGEST:  # it would take time with the square of the marks on one letter
        return name
    usual = _WIDE.sub(lambda found: normalize("NFKC", found[0]), name)
    return normalize("NFC", normalize("NFD", usual).casefold())


def end_of_prefix(prefix: str) -> str | None:
    """Return the first text, by code points, after all that begin with ``prefix``, if any."""
    rest = prefix.rstrip(_LAST)
    if not rest:
        return None
    last = ord(rest[-1])
    # UTF-8 has no surrogates.
    following = _AFTER_SURROGATES if last == _BEFORE_SURROGATES else last + 1
    return rest[:-1] + chr(following)
