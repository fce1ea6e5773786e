"""Where a delivery may go: the public internet, and the networks that the operator allows."""

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TypeAlias

from petstore.errors import ForbiddenAddress

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_HTTPS = ("https", 443)
# These embed an IPv4 address that packets end up at: IPv4-mapped (RFC 4291), NAT64 (RFC 6052).
_EMBEDDING = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
# Of IPv6, only this is global unicast (RFC 4291): not ::/96, 64:ff9b:1::/48, fc00::/7, fe80::/10,
# fec0::/10 and multicast.
_GLOBAL_IPV6 = IPv6Network("2000::/3")
# Not for the public, by the special-purpose address registries of IANA.
_SPECIAL: tuple[Network, ...] = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by a carrier's clients
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local; of clouds, the metadata of a machine
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved; the last address is broadcast
            "2001::/23",  # protocol assignments; Teredo, which embeds IPv4, is 2001::/32
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, which embeds IPv4
            "3fff::/20",  # documentation
        ),
    )
)


def check_address(address: Address, networks: Collection[Network]) -> None:
    """Refuse an address that is neither public nor in one of ``networks``."""
    address = _unwrapped(address)
    if _is_in(address, networks):
        return
    is_local = address.version == 6 and address not in _GLOBAL_IPV6  # noqa: PLR2004 - IPv6
    if is_local or _is_in(address, _SPECIAL):
        msg = "expected a public address; the operator can allow others with --webhook-network"
        raise ForbiddenAddress(msg)


def check_target(
    scheme: str, port: int, addresses: Collection[Address], networks: Collection[Network]
) -> None:
    """Refuse a URL that resolves to ``addresses``, of which a delivery may use any."""
    for address in addresses:
        check_address(address, networks)
    is_own = all(_is_in(_unwrapped(address), networks) for address in addresses)
    if (scheme, port) != _HTTPS and not is_own:
        msg = "expected https and port 443; the operator can allow more with --webhook-network"
        raise ForbiddenAddress(msg)


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address in an IPv6 address that leads to it, else the address itself."""
    if _is_in(address, _EMBEDDING):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _is_in(address: Address, networks: Collection[Network]) -> bool:
    return any(address in network for network in networks)
