"""The address of a client, behind proxies that the operator trusts."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

from petstore.http.messages import Request

Network: TypeAlias = IPv4Network | IPv6Network

_MAX_HOPS = 20
_MAX_ADDRESS = 45  # characters of an IPv6 address that ends in an IPv4 address (RFC 4291 2.2)


def client_address(request: Request, trusted: Sequence[Network]) -> str:
    """Return the nearest address that is not a trusted proxy's.

    ``X-Forwarded-For`` is read from the right, and only as far as trusted proxies wrote it: at most
    20 hops, up to the first that is no plain address.
    """
    forwarded = request.fields.get(b"x-forwarded-for")
    if not trusted or forwarded is None:
        return request.client
    address = request.client
    networks = tuple(trusted)
    # The rest of the field stays in one piece, however many hops it has.
    for hop in reversed(forwarded.rsplit(b",", _MAX_HOPS)[-_MAX_HOPS:]):
        found = _address_in(hop) if is_in(address, networks) else None
        if found is None:
            break
        address = found
    return address


def _address_in(hop: bytes) -> str | None:
    """Return the address in what a proxy writes: it, ``IPv4:port`` or ``[IPv6]:port``.

    An address with a zone (RFC 4007) is none: it says nothing outside the machine that wrote it.
    """
    text = hop.strip()
    if text.startswith(b"["):
        text = text[1:].partition(b"]")[0]
    elif text.count(b":") == 1:
        text = text.partition(b":")[0]
    if len(text) > _MAX_ADDRESS or b"%" in text:
        return None
    address = text.decode("latin-1")
    return None if _parsed(address) is None else address


@lru_cache(maxsize=4096)
def is_in(address: str, networks: tuple[Network, ...]) -> bool:
    """Return whether an address is in one of the networks. Other text is in none."""
    parsed = _parsed(address)
    # On a socket for both, IPv4 comes mapped into IPv6.
    if isinstance(parsed, IPv6Address):
        parsed = parsed.ipv4_mapped or parsed
    return parsed is not None and any(parsed in network for network in networks)


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(address)
    except ValueError:
        return None
