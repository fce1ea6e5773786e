"""What a client knows of the limits of its key, shared by all of its threads and tasks."""

import re
import threading
from dataclasses import dataclass

from httpx2 import Headers

from petstore_client._errors import RateLimited
from petstore_client._transport import renew_after_fork

_WINDOW = re.compile(r'"([^"]*)"((?:\s*;\s*[a-z]+=[0-9]{1,15})+)')
_PARAMETER = re.compile(r"([a-z]+)=([0-9]+)")
# While nothing is known, requests go at this distance for each that has no response yet.
_SECONDS_APART = 0.05
_LONGEST_DISTANCE = 1.0
# After a wait that nobody waits out, one request may ask again at this distance: too seldom to be
# banned, and soon enough to notice a change of plan.
_ASK_AGAIN_SECONDS = 60.0
_LONGEST_BACKOFF = 64.0


@dataclass
class _Window:
    left: int
    ends: float


@dataclass(frozen=True)
class Wait:
    """How long a request has to wait.

    It waits for a window to end, after the 429 ``error`` or because nothing is left; or for its
    place among the others.
    """

    seconds: float
    is_for_window: bool = False
    error: RateLimited | None = None


class RateLimits:
    """Says when a request may be sent.

    After a 429, nobody sends until the service says so. In between, no more requests are sent than
    the service has said are left, so a full window is waited out without a refusal. When nothing is
    known, at the start and when a window has ended, the first request goes ahead of the others to
    learn what is left. Moments are in seconds of a monotonic clock.
    """

    def __init__(self, max_wait: float) -> None:
        self._max_wait = max_wait
        self._windows: dict[str, _Window] = {}
        self._is_known = False
        self._sent_at = float("-inf")
        self._closed_until = self._refused_until = float("-inf")
        self._refusal: RateLimited | None = None
        self._refusals = 0
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Leave the requests under way to the process that has sent them."""
        self._lock = threading.Lock()
        self._pending = 0

    def enter(self, now: float, max_wait: float) -> Wait | None:
        """Count a request as sent and return ``None``, or return how long it has to wait first.

        ``max_wait`` is how many seconds the caller waits at most for a window to end. If it does
        not end in time, the request goes, so that the service says what is the matter.
        """
        with self._lock:
            wait = self._wait(now, max_wait)
            if wait is None:
                self._pending += 1
                self._sent_at = now
                for window in self._windows.values():
                    window.left -= 1
            return wait

    def leave(self, now: float, headers: Headers) -> None:
        """Learn from the response to a request."""
        with self._lock:
            self._pending -= 1
            self._refusals = 0
            self._is_known = True
            self._learn(now, headers)

    def abandon(self) -> None:
        """Forget a request that has no response."""
        with self._lock:
            self._pending -= 1

    def refuse(self, now: float, refusal: RateLimited) -> None:
        """Learn from a 429."""
        with self._lock:
            self._pending -= 1
            is_first = now >= self._closed_until  # else it was sent before that was known
            if is_first:
                self._refusals += 1
            # 1 s at first, and twice as long each time in a row.
            backoff = min(2.0 ** (self._refusals - 1), _LONGEST_BACKOFF)
            seconds = max(refusal.retry_after or 0, backoff)
            if is_first or now + seconds > self._refused_until:
                self._refusal, self._refused_until = refusal, now + seconds
            longest = max(self._max_wait, _ASK_AGAIN_SECONDS)
            self._closed_until = min(self._refused_until, now + longest)
            self._windows.clear()

    def _wait(self, now: float, max_wait: float) -> Wait | None:
        if now < self._closed_until:
            return Wait(self._refused_until - now, is_for_window=True, error=self._refusal)
        ended = [name for name, window in self._windows.items() if window.ends <= now]
        for name in ended:
            del self._windows[name]
        if ended or self._refusal is not None:
            self._is_known, self._refusal = False, None
        full = [window.ends - now for window in self._windows.values() if window.left <= 0]
        if full and max(full) <= max_wait:
            return Wait(max(full), is_for_window=True)
        distance = 0.0
        if full or not self._is_known:
            distance = min(_SECONDS_APART * self._pending, _LONGEST_DISTANCE)
        seconds = self._sent_at + distance - now
        return Wait(seconds) if seconds > 0 else None

    def _learn(self, now: float, headers: Headers) -> None:
        windows = _windows(headers)
        if not windows and "X-RateLimit-Limit" not in headers:
            return  # the response is not of the service, but of a proxy
        before, self._windows = self._windows, {}  # a change of plan may have ended some
        for name, left, seconds in windows:
            known = before.get(name)
            if known is None:
                usable = left - self._pending  # which the service may not have counted yet
            elif self._pending:
                usable = min(left, known.left)  # the key may have other users
            else:
                usable = left
            self._windows[name] = _Window(usable, now + seconds)


def _windows(headers: Headers) -> list[tuple[str, int, int]]:
    """Return name, requests left and seconds to the reset of each window.

    Of ``RateLimit`` (draft-ietf-httpapi-ratelimit-headers). A service without limits has none.
    """
    windows: list[tuple[str, int, int]] = []
    for name, text in _WINDOW.findall(headers.get("RateLimit", "")):
        values = {key: int(value) for key, value in _PARAMETER.findall(text)}
        if "r" in values and "t" in values:
            windows.append((name, values["r"], values["t"]))
    return windows
