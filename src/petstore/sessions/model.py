"""What a session at the console is, and how long it lasts."""

import re
import secrets
from hashlib import blake2b
from hmac import compare_digest
from typing import NamedTuple

from petstore.clock import DAY, MINUTE, Milliseconds
from petstore.domain.names import name_key
from petstore.keys.model import Caller

STAYS: Milliseconds = 30 * DAY
"""A session that stays ends this long after its last use."""

FRESH: Milliseconds = DAY
"""In an older session, a change to who may sign in needs one's own password."""

MAX_MARKS = 8
"""How many people a browser knows: they share the computer of a shop."""

_IDLE: Milliseconds = 30 * MINUTE
_LONGEST: Milliseconds = 12 * 60 * MINUTE
_STAYS_LONGEST: Milliseconds = 180 * DAY
_SEPARATOR = "."
_MARK_BYTES = 12
_COOKIE = re.compile(rf"[\w-]{{22}}(?:\.[0-9a-f]{{{2 * _MARK_BYTES}}}){{1,{MAX_MARKS}}}", re.ASCII)


def expiry(created_at: Milliseconds, used_at: Milliseconds, *, stays: bool) -> Milliseconds:
    """Return when a session ends if it is not used again."""
    idle, longest = (STAYS, _STAYS_LONGEST) if stays else (_IDLE, _LONGEST)
    return min(created_at + longest, used_at + idle)


class Browser(NamedTuple):
    """The browser that a session begins in.

    ``device`` is what it is, in a few words. The session with the secret ``replaced`` ends. The new
    one ``stays`` if the person wants to stay signed in there.
    """

    device: str = ""
    stays: bool = False
    replaced: str = ""


class Device(NamedTuple):
    """A session as its owner sees it; ``digest`` is the digest of its cookie."""

    digest: bytes
    device: str
    created_at: Milliseconds
    used_at: Milliseconds
    expires_at: Milliseconds
    stays: bool

    @property
    def id(self) -> int:
        """A number below 2^53, which JavaScript takes, too."""
        return int.from_bytes(self.digest[:7]) >> 3


class Session(NamedTuple):
    """A session of a ``caller``, which ends with the ``credential`` that opened it.

    That is the digest of the token of a key, or of the hash of the password of a person.
    """

    caller: Caller
    credential: bytes
    device: Device


class DeviceCookie(NamedTuple):
    """Who has signed in with a browser, as its cookie says: a mark for each password."""

    id: str = ""
    marks: tuple[str, ...] = ()

    @property
    def cookie(self) -> str:
        return _SEPARATOR.join((self.id, *self.marks))

    def knows(self, credential: bytes) -> bool:
        """Return whether a password was used here, by the digest of its hash."""
        mark = _mark_of(self.id, credential)
        return any(compare_digest(mark, known) for known in self.marks)

    def with_mark(self, credential: bytes) -> "DeviceCookie":
        browser_id = self.id or secrets.token_urlsafe(16)
        mark = _mark_of(browser_id, credential)
        others = (known for known in self.marks if known != mark)
        return DeviceCookie(browser_id, (*others, mark)[-MAX_MARKS:])


def known_browser(cookie: str) -> DeviceCookie:
    if not _COOKIE.fullmatch(cookie):
        return DeviceCookie()
    browser_id, *marks = cookie.split(_SEPARATOR)
    return DeviceCookie(browser_id, tuple(marks))


def _mark_of(browser_id: str, credential: bytes) -> str:
    text = browser_id.encode("ascii")
    return blake2b(text, digest_size=_MARK_BYTES, key=credential).hexdigest()


def login_digest(login: str, size: int = 16) -> str:
    """Return the name of a login in the counts and in the log, however long it is."""
    return blake2b(name_key(login).encode("utf-8", "replace"), digest_size=size).hexdigest()
