"""Addresses of clients: behind which proxies, in which networks, and as what they count."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    collapse_addresses,
    get_mixed_type_key,
    ip_address,
    ip_network,
)
from typing import TypeAlias

from petstore.errors import InvalidBody

Network: TypeAlias = IPv4Network | IPv6Network

MAX_NETWORKS = 32
_MAX_HOPS = 20
_MAX_ADDRESS = 45  # characters of an IPv6 address that ends in an IPv4 address (RFC 4291 2.2)

# Only CIDR: ipaddress also takes masks, and zones (RFC 4007), which say nothing elsewhere.
_CIDR = re.compile(r"(?P<address>[0-9A-Fa-f:.]{2,45})(?:/(?P<bits>[0-9]{1,3}))?\Z")
_MAX_LENGTH = 50
# ``::ffff:0:0/96``, the IPv6 form of an IPv4 address (RFC 4291 section 2.5.5.2).
_MAPPED_PREFIX = 96


def canonical_networks(texts: Sequence[str]) -> tuple[str, ...]:
    """Return networks in CIDR notation, each once, IPv4 first and in ascending order.

    An address alone is a network of one. A network of IPv4-mapped IPv6 addresses is the network of
    their IPv4 addresses.
    """
    if len(texts) > MAX_NETWORKS:
        msg = f"allowedNetworks: expected at most {MAX_NETWORKS} networks, got {len(texts)}"
        raise InvalidBody(msg)
    networks = sorted(set(map(_parsed_network, texts)), key=get_mixed_type_key)
    return tuple(map(str, networks))


def compiled_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the fewest networks with the same addresses as those in ``texts``."""
    networks = [ip_network(text) for text in texts]
    v4 = collapse_addresses(net for net in networks if isinstance(net, IPv4Network))
    v6 = collapse_addresses(net for net in networks if isinstance(net, IPv6Network))
    return (*v4, *v6)


def contain(networks: Iterable[Network], address: str) -> bool:
    parsed = _parsed_address(address)
    return parsed is not None and any(parsed in network for network in networks)


def client_address(client: str, forwarded: bytes | None, trusted: Sequence[Network]) -> str:
    """Return the nearest address that is not a trusted proxy's.

    ``X-Forwarded-For`` is read from the right, and only as far as trusted proxies wrote it: at most
    20 hops, up to the first that is no plain address.
    """
    # The rest of the field stays in one piece, however many hops it has.
    for hop in reversed((forwarded or b"").rsplit(b",", _MAX_HOPS)[-_MAX_HOPS:]):
        found = _address_in(hop) if contain(trusted, client) else None
        if found is None:
            break
        client = found
    return client


def _address_in(hop: bytes) -> str | None:
    """Take an address, ``IPv4:port`` or ``[IPv6]:port``, and none with a zone (RFC 4007)."""
    text = hop.strip()
    if text.startswith(b"["):
        text = text[1:].partition(b"]")[0]
    elif text.count(b":") == 1:
        text = text.partition(b":")[0]
    address = text.decode("latin-1")
    is_plain = len(text) <= _MAX_ADDRESS and b"%" not in text and _parsed_address(address)
    return address if is_plain else None


@lru_cache(maxsize=4096)
def network_of(address: str, prefix: int = 64) -> str:
    """Return the network that a client address counts as: IPv4 itself, IPv6 its /64 by default."""
    parsed = _parsed_address(address)
    if not isinstance(parsed, IPv6Address):
        return address if parsed is None else str(parsed)
    return str(IPv6Network((int(parsed), prefix), strict=False))


def outside(networks: Iterable[Network], others: Iterable[Network]) -> Network | None:
    """Return the first of ``networks`` that is not within ``others`` (``compiled_networks``)."""
    others = tuple(others)
    return next((each for each in networks if not any(_is_within(each, o) for o in others)), None)


def _is_within(network: Network, other: Network) -> bool:
    return network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]


def _parsed_network(text: str) -> Network:
    match = _CIDR.match(text)
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        network = None
    if match is None or network is None:
        raise InvalidBody(
            "allowedNetworks: expected networks such as 203.0.113.0/24 or 2001:db8::/32, or"
            f" addresses; {text[:_MAX_LENGTH]!r} is neither"
        )
    if match["bits"] and ip_address(match["address"]) != network.network_address:
        msg = f"allowedNetworks: expected {network}, without bits after the prefix; got {text}"
        raise InvalidBody(msg)
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is None:  # in a larger network, the address of the network has another form
        return network
    return IPv4Network((mapped, network.prefixlen - _MAPPED_PREFIX))


@lru_cache(maxsize=4096)
def _parsed_address(address: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    # On a socket for both, IPv4 comes mapped into IPv6.
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, IPv6Address) else parsed
