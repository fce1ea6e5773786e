"""Networks of keys, and addresses of clients: behind which proxies, and as what they count."""

from ipaddress import ip_network

import pytest

from petstore.domain.networks import (
    canonical_networks,
    client_address,
    compiled_networks,
    contain,
    network_of,
    outside,
)
from petstore.errors import InvalidBody


@pytest.mark.parametrize(
    "text",
    [
        *("", "here", "10", "10.0.0", "10.0.0.0.0", "256.0.0.1", "010.0.0.1", "10.0.0.0/"),
        *("10.0.0.0/33", "2001:db8::/129", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/255.0.0.0"),
        *("10.0.0.0/0.255.255.255", "fe80::%eth0", "fe80::%eth0/64", "[::1]", "::1]", "/8", "/"),
        *(" 10.0.0.0/8", "10.0.0.0/8\n", "10.0.0.0/\N{ARABIC-INDIC DIGIT EIGHT}", "x" * 100_000),
        *("203.0.113.7/24", "10.0.0.1/0", "2001:db8::1/32"),
    ],
)
def test_an_invalid_network_is_refused_naming_the_field(text: str) -> None:
    meant = {"203.0.113.7/24": "203.0.113.0/24", "10.0.0.1/0": "0.0.0.0/0"}
    meant["2001:db8::1/32"] = "2001:db8::/32"
    wanted = "networks such as 203.0.113.0/24 or 2001:db8::/32, or addresses;"
    message = f"{wanted} {text[:50]!r} is neither"
    if text in meant:
        message = f"{meant[text]}, without bits after the prefix; got {text}"
    with pytest.raises(InvalidBody) as refused:
        canonical_networks([text])
    assert refused.value.message == f"allowedNetworks: expected {message}"


def test_more_than_32_networks_are_refused() -> None:
    texts = [f"10.0.0.{number}" for number in range(33)]
    assert len(canonical_networks(texts[:32])) == 32
    with pytest.raises(InvalidBody, match=r"^allowedNetworks: expected at most 32 .*, got 33$"):
        canonical_networks(texts)


@pytest.mark.parametrize(
    ("texts", "canonical"),
    [
        ([], ()),
        (["203.0.113.7"], ("203.0.113.7/32",)),
        (["2001:DB8:0::1"], ("2001:db8::1/128",)),
        (["10.0.0.0/8", "10.0.0.0/8"], ("10.0.0.0/8",)),
        (["::/0", "0.0.0.0/0"], ("0.0.0.0/0", "::/0")),
        (["::ffff:192.0.2.7", "::ffff:198.51.100.0/120"], ("192.0.2.7/32", "198.51.100.0/24")),
        (["::ffff:0.0.0.0/96"], ("0.0.0.0/0",)),
        (["9.0.0.0/8", "10.0.0.0/16", "10.0.0.0/8"], ("9.0.0.0/8", "10.0.0.0/8", "10.0.0.0/16")),
    ],
)
def test_every_form_of_a_network_has_one_canonical_form(
    texts: list[str], canonical: tuple[str, ...]
) -> None:
    assert canonical_networks(texts) == canonical
    assert canonical_networks(canonical) == canonical


@pytest.mark.parametrize(
    ("address", "is_in"),
    [
        *(("203.0.113.0", True), ("203.0.113.255", True), ("203.0.114.0", False)),
        *(("::ffff:203.0.113.7", True), ("::ffff:203.0.114.7", False), ("2001:db8::1", True)),
        *(("2001:db9::1", False), ("::203.0.113.7", False), ("", False), ("localhost", False)),
    ],
)
def test_an_address_is_in_a_network_whatever_its_form(address: str, *, is_in: bool) -> None:
    assert contain(compiled_networks(["203.0.113.0/24", "2001:db8::/32"]), address) == is_in


def test_a_network_outside_the_others_is_found() -> None:
    own = compiled_networks(["10.0.0.0/9", "10.128.0.0/9", "2001:db8::/32"])
    inside = compiled_networks(["10.0.0.0/8", "2001:db8:1::/48"])
    assert outside(reversed(inside), iter(own)) is None
    for text in ("11.0.0.0/8", "0.0.0.0/0", "2001:db8::/31", "::/0"):
        beyond = ip_network(text)
        assert outside([*inside, beyond], own) == beyond


@pytest.mark.parametrize(
    ("address", "network"),
    [
        *((v4, "192.0.2.1") for v4 in ("192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201")),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2:0:0:0:9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        *(("fe80::1%eth0", "fe80::/64"), ("::1", "::/64")),
        *(("unix socket", "unix socket"), ("", "")),
    ],
)
def test_an_address_is_counted_by_its_network(address: str, network: str) -> None:
    assert network_of(address) == network


PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"), ip_network("fe80::/10"))
LONGEST = "2001:0db8:0000:0000:0000:ffff:255.255.255.255"


def test_at_most_20_hops_are_followed() -> None:
    for hops in (0, 19, 20, 21, 6_000):
        proxies = [f"10.1.{n // 250}.{n % 250}" for n in range(hops)]
        forwarded = ", ".join(["192.0.2.1", *proxies]).encode()
        expected = "192.0.2.1" if hops < 20 else proxies[-20]
        assert client_address("10.0.0.1", forwarded, PROXIES) == expected


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        # The nearest address that is not a proxy's.
        ("10.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", " 192.0.2.1 ", "192.0.2.1"),
        ("10.0.0.1", "198.51.100.9, 192.0.2.1,10.1.2.3, fd00::1", "192.0.2.1"),
        ("10.0.0.1", "nonsense, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "::ffff:192.0.2.1, ::ffff:10.1.2.3", "::ffff:192.0.2.1"),
        ("10.0.0.1", "10.0.0.9, 10.0.0.2", "10.0.0.9"),
        ("fe80::1%eth0", "192.0.2.1", "192.0.2.1"),
        # Without its port, in any length.
        ("10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        ("10.0.0.1", "[2001:db8::9]:443", "2001:db8::9"),
        ("10.0.0.1", LONGEST, LONGEST),
        ("10.0.0.1", f"[{LONGEST}]:65535", LONGEST),
        # What is no address counts as the proxy that sent it.
        *(
            ("10.0.0.1", forwarded, "10.0.0.1")
            for forwarded in (
                *("", "unknown", "192.0.2.1, _hidden", "192.0.2.1, ", "192.0.2.1, 300.0.0.1"),
                *("192.0.2.1, fe80::1%eth0", "192.0.2.1, [fe80::1%eth0]:443"),
                *(f"192.0.2.1, ::{'0' * 44}1", f"192.0.2.1, {'1' * 60_000}"),
            )
        ),
        # A peer that is no proxy, or has no address.
        ("192.0.2.7", "192.0.2.1", "192.0.2.7"),
        ("", "192.0.2.1", ""),
    ],
    ids=lambda text: text[:30],
)
def test_the_client_is_the_nearest_address_that_is_no_proxy(
    peer: str, forwarded: str, client: str
) -> None:
    assert client_address(peer, forwarded.encode(), PROXIES) == client
