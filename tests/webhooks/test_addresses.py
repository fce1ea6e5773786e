"""Where a delivery may go."""

from ipaddress import ip_address, ip_network

import pytest

from petstore.errors import ForbiddenAddress
from petstore.webhooks.model import check_address, check_target

LOCAL = [
    "0.0.0.0",  # noqa: S104 - nothing listens
    "0.255.255.255",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
]
# IPv4-mapped and NAT64 lead to a public IPv4 address; the other forms that embed one are refused.
LEADING = ["::ffff:{}", "64:ff9b::{}"]
REFUSED = ["::{}", "::ffff:0:{}", "64:ff9b:1::{}"]
PUBLIC = ["1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111"]


def in_6to4(address: str) -> str:
    return f"2002:{int(ip_address(address)) >> 16:x}:{int(ip_address(address)) & 0xFFFF:x}::1"


def in_teredo(address: str) -> str:
    hidden = int(ip_address(address)) ^ 0xFFFFFFFF
    return f"2001:0:4136:e378:8000:63bf:{hidden >> 16:x}:{hidden & 0xFFFF:x}"


@pytest.mark.parametrize(
    "address",
    [
        *LOCAL,
        *("::", "::1", "::2", "64:ff9b:1::1", "100::1", "100:0:0:1::1", "2001::1", "2001:2::1"),
        *("2001:10::1", "2001:20::1", "2001:db8::1", "2002::1", "3fff::1", "4000::1", "5f00::1"),
        *("fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1"),
        *("ff0e::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        *(form.format(address) for form in LEADING for address in LOCAL),
        *(form.format(address) for form in REFUSED for address in (*LOCAL[:3], "1.1.1.1")),
        *(form(address) for form in (in_6to4, in_teredo) for address in (LOCAL[2], "1.1.1.1")),
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(ForbiddenAddress, match=r"^expected a public address") as refused:
        check_address(ip_address(address), ())
    assert address not in str(refused.value)


@pytest.mark.parametrize("address", [*PUBLIC, *(form.format("1.1.1.1") for form in LEADING)])
def test_a_public_address_is_allowed(address: str) -> None:
    check_target("https", 443, [ip_address(address)], ())


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3", "10.0.0.0/8"),
        ("::ffff:10.1.2.3", "10.0.0.0/8"),
        ("fd00::7", "fd00::/8"),
        ("127.0.0.1", "127.0.0.1/32"),
    ],
)
def test_in_an_allowed_network_plain_http_works_on_any_port(address: str, network: str) -> None:
    check_target("http", 8080, [ip_address(address)], [ip_network(network)])


@pytest.mark.parametrize(
    ("scheme", "port"), [("http", 80), ("https", 8443), ("http", 443), ("https", 22)]
)
@pytest.mark.parametrize("networks", [[], ["10.0.0.0/8"]])
def test_public_addresses_need_https_and_443(scheme: str, port: int, networks: list[str]) -> None:
    own = list(map(ip_network, networks))
    with pytest.raises(ForbiddenAddress, match=r"^expected https and port 443"):
        check_target(scheme, port, [ip_address("1.1.1.1")], own)


def test_plain_http_needs_all_addresses_in_allowed_networks() -> None:
    addresses = [ip_address("10.0.0.1"), ip_address("1.1.1.1")]
    with pytest.raises(ForbiddenAddress, match=r"^expected https and port 443"):
        check_target("http", 80, addresses, [ip_network("10.0.0.0/8")])


def test_one_private_address_causes_all_to_be_refused() -> None:
    addresses = [ip_address("1.1.1.1"), ip_address("10.0.0.1")]
    with pytest.raises(ForbiddenAddress, match="expected a public address"):
        check_target("https", 443, addresses, ())
