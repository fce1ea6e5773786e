"""The address a request came from, through proxies the operator trusts."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

from petstore.api.messages import Request
from petstore.rate_limits.addresses import network_of

Network: TypeAlias = IPv4Network | IPv6Network


def client_address(request: Request, trusted: Sequence[Network]) -> str:
    """Return the nearest address that is not a trusted proxy's.

    ``X-Forwarded-For`` is read from the right, and only as far as trusted proxies wrote it.
    """
    forwarded = request.fields.get(b"x-forwarded-for")
    if not trusted or forwarded is None:
        return request.client
    address = request.client
    for hop in reversed(forwarded.decode("latin-1").split(",")):
        found = _without_port(hop.strip())
        if not (_is_in(address, tuple(trusted)) and _is_address(found)):
            return address
        address = found
    return address


def counted_as(address: str, trusted: Sequence[Network]) -> str | None:
    """Return what connections from ``address`` count as: a client, or ``None`` for a proxy."""
    return None if _is_in(address, tuple(trusted)) else network_of(address)


@lru_cache(maxsize=4096)
def _is_in(address: str, networks: tuple[Network, ...]) -> bool:
    parsed = ip_address(address)
    # On a socket for both, IPv4 comes mapped into IPv6.
    if isinstance(parsed, IPv6Address):
        parsed = parsed.ipv4_mapped or parsed
    return any(parsed in network for network in networks)


def _without_port(hop: str) -> str:
    """Return the address in what a proxy writes: it, ``IPv4:port`` or ``[IPv6]:port``."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
