"""Browsers that know a password: a cookie says so, and such a browser is served first.

Guesses from elsewhere use up nothing of what a known browser may try (OWASP, "device cookies").
The cookie signs nobody in. It has a random id, and a mark for each login that has signed in there:
a code over both, which only this service can make.
"""

import re
import secrets
from hashlib import blake2b
from hmac import compare_digest
from typing import NamedTuple

from petstore.domain.names import name_key

MAX_MARKS = 8
"""How many people a browser knows: on the computer of a shop they take turns."""

_ID_BYTES = 16
_MARK_BYTES = 12
_SEPARATOR = "."
_VALUE = re.compile(rf"[A-Za-z0-9_-]{{22}}(?:\.[0-9a-f]{{{2 * _MARK_BYTES}}}){{0,{MAX_MARKS}}}\Z")
_PURPOSE = b"known browser"


class KnownBrowser(NamedTuple):
    """What the cookie of a browser says; ``id`` is empty if there is none."""

    id: str = ""
    marks: tuple[str, ...] = ()

    @property
    def value(self) -> str:
        """The value of the cookie."""
        return _SEPARATOR.join((self.id, *self.marks))

    def knows(self, login: str, seal: bytes) -> bool:
        """Return whether somebody has signed in with a login here, to the store of the seal."""
        if not self.marks:
            return False
        mark = _mark_of(self.id, login, seal)
        return any(compare_digest(mark, known) for known in self.marks)

    def with_login(self, login: str, seal: bytes) -> "KnownBrowser":
        """Return it as it is once somebody has signed in: the last ones are remembered."""
        browser_id = self.id or secrets.token_urlsafe(_ID_BYTES)
        mark = _mark_of(browser_id, login, seal)
        others = tuple(known for known in self.marks if known != mark)
        return KnownBrowser(browser_id, (*others, mark)[-MAX_MARKS:])


def known_browser(cookie: str) -> KnownBrowser:
    """Return what the value of a cookie says."""
    if not _VALUE.match(cookie):
        return KnownBrowser()
    browser_id, *marks = cookie.split(_SEPARATOR)
    return KnownBrowser(browser_id, tuple(marks))


def _mark_of(browser_id: str, login: str, seal: bytes) -> str:
    text = f"{browser_id}{_SEPARATOR}{name_key(login)}".encode("utf-8", "replace")
    return blake2b(text, digest_size=_MARK_BYTES, key=seal, person=_PURPOSE).hexdigest()
