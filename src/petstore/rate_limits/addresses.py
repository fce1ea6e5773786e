"""Whom a request without a valid key is counted against."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from petstore.clock import MINUTE, Clock
from petstore.domain.plans import UNLIMITED, Limits
from petstore.rate_limits.contract import NEVER, BanRules, Decision, State
from petstore.rate_limits.decide import decide, describe

_NO_BANS = BanRules(least_strikes=UNLIMITED)
_FRESH = State()


class AddressLimiter:
    """One window a minute for each client address, in a table that never outgrows ``capacity``."""

    def __init__(self, clock: Clock, per_minute: int, capacity: int) -> None:
        self._clock = clock
        self._limits = Limits(per_minute, UNLIMITED)
        self._capacity = capacity
        self._states: dict[str, State] = {}

    def take(self, address: str) -> Decision:
        """Judge a request from ``address``, and charge it if it is admitted."""
        network, now = network_of(address), self._clock()
        state = self._states.get(network, _FRESH)
        decision, after = decide(state, self._limits, _NO_BANS, now, NEVER)
        if after.minute_started != state.minute_started:
            # A new window goes to the end, so the first in the table is always the oldest.
            self._states.pop(network, None)
            self._make_room(now)
        self._states[network] = after
        return decision

    def look(self, address: str) -> Decision:
        """Describe the window of ``address``, charging nothing."""
        state = self._states.get(network_of(address), _FRESH)
        return describe(state, self._limits, self._clock(), NEVER)

    def _make_room(self, now: int) -> None:
        while self._states:
            oldest = next(iter(self._states))
            ended = now >= self._states[oldest].minute_started + MINUTE
            if not ended and len(self._states) < self._capacity:
                return
            del self._states[oldest]


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return what ``address`` counts as: IPv4 as it is, IPv6 by its /64."""
    try:
        parsed: IPv4Address | IPv6Address = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv4Address):
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed), 64), strict=False))
