"""Whom a request without a valid key is counted against."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from petstore.clock import Clock
from petstore.rate_limits.contract import Decision
from petstore.rate_limits.minutes import MinuteLimiter


class AddressLimiter:
    """One window a minute for each client address, in a table that never outgrows ``capacity``."""

    def __init__(self, clock: Clock, per_minute: int, capacity: int) -> None:
        self._networks = MinuteLimiter[str](clock, per_minute, capacity)

    def take(self, address: str) -> Decision:
        """Judge a request from ``address``, and charge it if it is admitted."""
        return self._networks.take(network_of(address))

    def look(self, address: str) -> Decision:
        """Describe the window of ``address``, charging nothing."""
        return self._networks.look(network_of(address))

    def give_back(self, address: str) -> None:
        """Take back the charge of one request from ``address``."""
        self._networks.give_back(network_of(address))


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
