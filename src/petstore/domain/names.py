"""Names without regard to case: the keys by which they are compared and sorted."""

import re
from unicodedata import normalize

MAX_SEARCHED = 100
"""The most characters that a search may ask for."""

_LONGEST = 4 * 255
"""Characters: a name has 255, which may be four times as many until they are composed."""

_WIDE = re.compile("[\u3000\uff01-\uffee]+")


def name_key(name: str) -> str:
    """Return a key that is equal for names that differ only in case, width or composed accents.

    It is the canonical caseless form of Unicode (chapter 3.13, D145), composed, of the full
    width or half width that is usual. A text that is too long for a name is its own key.
    """
    if len(name) > _LONGEST:  # it would take time with the square of the marks on one letter
        return name
    usual = _WIDE.sub(lambda found: normalize("NFKC", found[0]), name)
    return normalize("NFC", normalize("NFD", usual).casefold())
