"""Where a webhook may point, the events that it gets, and when a delivery is attempted."""

import json
import re
from contextlib import nullcontext
from ipaddress import ip_address, ip_network
from itertools import permutations
from typing import Any

import pytest
from msgspec import convert

from petstore.clock import DAY, MINUTE, SECOND
from petstore.domain.decoding import decode_json
from petstore.errors import ForbiddenAddress, InvalidBody, InvalidWebhookUrl
from petstore.events.model import EVENT_TYPES, scope_of
from petstore.keys.model import DEFAULT_SCOPES, SCOPES
from petstore.webhooks.model import (
    HOLD,
    NOTICED_FAILURES,
    Networks,
    SecretRotation,
    WebhookCreate,
    WebhookHealth,
    WebhookPatch,
    check_address,
    check_target,
    check_url,
    is_success,
    next_attempt,
    paused_until,
    status_in_words,
    wanted_types,
)

OWN: Networks = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
NAME_63 = "a" * 63


@pytest.mark.parametrize(
    ("url", "is_public", "is_own"),
    [
        ("https://shop.example", True, True),
        ("https://shop.example/hooks/7;v=1?a=b&c=/?:@%20~!$'()*+,", True, True),
        ("https://shop.example?a=b@c", True, True),
        ("HTTPS://SHOP.EXAMPLE:443/Hooks", True, True),
        ("https://shop.example./hooks", True, True),
        ("https://xn--bcher-kva.example/", True, True),
        ("https://my_shop.a-b.example/", True, True),
        (f"https://{NAME_63}.example/", True, True),
        ("https://7shop.example/", True, True),
        ("https://93.184.216.34/hooks", True, True),
        ("https://[2606:2800:220:1:248:1893:25c8:1946]:443/", True, True),
        ("https://shop.example/@me", True, True),
        ("http://shop.example/", False, True),
        ("https://shop.example:8443/", False, True),
        ("http://a:443/", False, True),
        ("https://10.1.2.3/", False, True),
        ("http://10.1.2.3:1/hooks", False, True),
        ("http://[fd00::7]:65535/", False, True),
        ("https://169.254.169.254/", False, False),
        ("https://[::ffff:127.0.0.1]/", False, False),
        ("http://93.184.216.34/", False, False),
        ("https://93.184.216.34:8443/", False, False),
    ],
)
def test_only_networks_of_the_operator_allow_what_is_not_public_https(
    url: str, *, is_public: bool, is_own: bool
) -> None:
    told = r"^url: expected (https and port 443|a public address); the operator can"
    for networks, is_accepted in (((), is_public), (OWN, is_own)):
        with nullcontext() if is_accepted else pytest.raises(InvalidWebhookUrl, match=told):
            check_url(url, networks)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", "an address such as https://shop.example/hooks"),
        ("shop.example/hooks", "an address such as"),
        ("//shop.example/hooks", "an address such as"),
        ("ftp://shop.example/hooks", "an address such as"),
        ("javascript:alert(1)", "an address such as"),
        ("file:///etc/passwd", "an address such as"),
        ("https://", "an address such as"),
        ("https:///hooks", "an address such as"),
        ("https:/shop.example", "an address such as"),
        (r"https://shop.example\@evil.example/", "no user name and no password"),
        (r"https://shop.example\.evil.example/", "an address such as"),
        ("https://shop.example/a b", "an address such as"),
        ("https://shop.example/\n", "an address such as"),
        ("https://shop.example/\r\nHost: x", "an address such as"),
        (" https://shop.example/", "an address such as"),
        ("https://shop.example/%zz", "an address such as"),
        ("https://shop.example/<x>", "an address such as"),
        ("https://shop.example:/", "an address such as"),
        ("https://shop.example:+443/", "an address such as"),
        ("https://[fe80::1%25eth0]/", "an address such as"),
        ("https://[shop.example]/", "an address such as"),
        ("https://bücher.example/", "only ASCII: the host as xn--"),
        ("https://shop.example/\u3002", "only ASCII"),
        ("https://shop.example/#top", "no fragment"),
        ("https://me@shop.example/", "no user name and no password"),
        ("https://me:geheim@shop.example/", "no user name and no password"),
        ("https://shop.example:443@evil.example/", "no user name and no password"),
        ("https://shop.example:0/", "a port from 1 to 65535"),
        ("https://shop.example:65536/", "a port from 1 to 65535"),
        ("https://10.0.0.1:0/", "a port from 1 to 65535"),
        ("https://.shop.example/", "a host name, or an address such as 192.0.2.7"),
        ("https://shop..example/", "a host name"),
        ("https://-shop.example/", "a host name"),
        ("https://shop-.example/", "a host name"),
        (f"https://{NAME_63}a.example/", "a host name"),
        (f"https://{'a.' * 126}example/", "a host name"),
        # What a resolver would take for an address that nobody checked.
        ("https://127.1/", "a host name, or an address"),
        ("https://2130706433/", "a host name, or an address"),
        ("https://0X7F000001/", "a host name, or an address"),
        ("https://0x7f.1/", "a host name, or an address"),
        ("https://0177.0.0.1/", "a host name, or an address"),
        ("https://127.0.0.1./", "a host name, or an address"),
        ("https://256.1.1.1/", "a host name, or an address"),
        ("https://[::1/", "an address such as"),
        ("https://[::1::]/", "a host name, or an address"),
    ],
    ids=lambda text: repr(text)[:60],
)
def test_a_url_that_is_not_https_is_refused(url: str, expected: str) -> None:
    for networks in ((), OWN):
        with pytest.raises(InvalidWebhookUrl) as refused:
            check_url(url, networks)
        assert refused.value.message.startswith(f"url: expected {expected}")
        assert "geheim" not in refused.value.message


DESCRIPTION = "description: expected 1 to 255 printable characters, not only white space"
GRACE = "graceSeconds: expected an integer from 0 to 604800"


@pytest.mark.parametrize(
    ("struct", "members", "message"),
    [
        (
            WebhookCreate,
            {"url": "x" * 2049},
            "url: expected an address such as https://shop.example/hooks, of up to 2048 characters",
        ),
        (
            WebhookPatch,
            {"types": "order.placed"},
            f"types: expected a list of any of {', '.join(map(repr, EVENT_TYPES))}",
        ),
        (WebhookPatch, {"description": ""}, DESCRIPTION),
        (WebhookPatch, {"description": "x" * 256}, DESCRIPTION),
        (WebhookPatch, {"enabled": 1}, "enabled: expected true or false"),
        (SecretRotation, {"graceSeconds": -1}, GRACE),
        (SecretRotation, {"graceSeconds": 604_801}, GRACE),
        (WebhookPatch, {"url": "x" * 2048}, None),
        (WebhookPatch, {"description": "x"}, None),
        (WebhookPatch, {"description": "x" * 255}, None),
        (SecretRotation, {"graceSeconds": 0}, None),
        (SecretRotation, {"graceSeconds": 604_800}, None),
    ],
)
def test_a_value_beyond_a_limit_is_refused_naming_the_field(
    struct: type, members: dict[str, Any], message: str | None
) -> None:
    body = json.dumps(members).encode()
    if message is None:
        assert decode_json(body, struct) == convert(members, struct)
    else:
        with pytest.raises(InvalidBody, match=f"^{re.escape(message)}$"):
            decode_json(body, struct)


def test_a_webhook_gets_the_types_that_its_key_can_read() -> None:
    every = frozenset(EVENT_TYPES) - {"webhook.test"}
    assert wanted_types([], frozenset(SCOPES)) == every
    of_key = {kind for kind in every if scope_of(kind) is None}
    assert wanted_types([], frozenset({"webhooks:write"})) == of_key
    assert wanted_types(["webhook.test"], frozenset(SCOPES)) == frozenset()
    types = ["order.placed", "key.banned"]
    assert wanted_types(types, frozenset(DEFAULT_SCOPES)) == set(types)
    assert wanted_types(types, frozenset({"pets:read"})) == {"key.banned"}


LOCAL = [
    str(address)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
    for address in (ip_network(network)[0], ip_network(network)[-1])
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
        *(form.format(address) for form in REFUSED for address in (*LOCAL[:4], "1.1.1.1")),
        *(form(address) for form in (in_6to4, in_teredo) for address in (LOCAL[3], "1.1.1.1")),
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(ForbiddenAddress, match=r"^expected a public address") as refused:
        check_address(ip_address(address), ())
    assert address not in str(refused.value)


@pytest.mark.parametrize("address", [*PUBLIC, *(form.format("1.1.1.1") for form in LEADING)])
def test_a_public_address_is_allowed_by_https_on_port_443_alone(address: str) -> None:
    check_target("https", 443, [ip_address(address)], ())
    for scheme, port in (("http", 80), ("https", 8443), ("http", 443), ("https", 22)):
        for networks in ((), OWN):
            with pytest.raises(ForbiddenAddress, match=r"^expected https and port 443"):
                check_target(scheme, port, [ip_address(address)], networks)


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::7"])
def test_in_an_allowed_network_plain_http_works_on_any_port(address: str) -> None:
    check_target("http", 8080, [ip_address(address)], OWN)


@pytest.mark.parametrize(
    ("scheme", "port", "networks", "reason"),
    [("http", 80, OWN, "https and port 443"), ("https", 443, (), "a public address")],
)
def test_one_forbidden_address_causes_all_to_be_refused(
    scheme: str, port: int, networks: Networks, reason: str
) -> None:
    for addresses in permutations([ip_address("10.0.0.1"), ip_address("1.1.1.1")]):
        with pytest.raises(ForbiddenAddress, match=f"^expected {reason}"):
            check_target(scheme, port, addresses, networks)


NOW = 20_788 * DAY + DAY // 2  # noon of 2026-12-01
HOUR = 60 * MINUTE
WAITS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, *(hours * HOUR for hours in (2, 5, 10, 14, 20, 24))]


@pytest.mark.parametrize(("attempts", "wait"), [*enumerate(WAITS, 1)])
def test_the_delay_before_each_of_ten_attempts_grows_with_20_percent_of_jitter(
    attempts: int, wait: int
) -> None:
    for chance, share in ((0, 0.8), (0.5, 1), (1, 1.2)):
        assert next_attempt(attempts, NOW, chance) == NOW + share * wait
    assert next_attempt(10, NOW, 0.5) is None
    assert WAITS[1] == HOLD


def test_only_a_2xx_status_is_a_success() -> None:
    statuses = (199, 200, 204, 299, 300, 301, 307, 400, 410, 500)
    assert [status for status in statuses if is_success(status)] == [200, 204, 299]


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("120", 120 * SECOND),
        ("Tue, 01 Dec 2026 12:02:00 GMT", 120 * SECOND),
        ("Tue, 01 Dec 2026 12:00:01 GMT", SECOND),
        ("9" * 5_000, DAY),
        ("Fri, 01 Jan 2100 00:00:00 GMT", DAY),
        (None, None),
        ("0", None),
        ("soon", None),
        ("-5", None),
        ("\N{ARABIC-INDIC DIGIT FIVE}", None),
        ("Tue, 01 Dec 2026 12:00:00 GMT", None),
        ("Tue, 01 Dec 2026 13:00:00 -0000", None),
    ],
)
def test_a_future_retry_after_on_a_429_or_503_pauses_up_to_a_day(
    retry_after: str | None, wait: int | None
) -> None:
    for status in (429, 503):
        assert paused_until(status, retry_after, NOW) == (None if wait is None else NOW + wait)
    for status in (200, 500):
        assert paused_until(status, retry_after, NOW) is None


def test_a_retry_after_date_one_millisecond_ahead_pauses_deliveries() -> None:
    assert paused_until(429, "Tue, 01 Dec 2026 12:00:00 GMT", NOW - 1) == NOW


def test_consecutive_failures_are_counted_from_the_first_until_a_success() -> None:
    health = WebhookHealth(0, None, 7)
    for hours in range(3):
        health = health.after(NOW + hours * HOUR, succeeded=False)
    assert health == WebhookHealth(NOTICED_FAILURES, NOW, 7) == WebhookHealth(3, NOW, 7)
    assert health.after(NOW + DAY, succeeded=True) == WebhookHealth(0, None, NOW + DAY)


def test_a_webhook_fails_for_good_after_five_days_and_ten_failures() -> None:
    assert WebhookHealth(10, NOW, None).is_failing_for_good(NOW + 5 * DAY)
    assert not WebhookHealth(9, NOW, None).is_failing_for_good(NOW + 5 * DAY)
    assert not WebhookHealth(10, NOW, None).is_failing_for_good(NOW + 5 * DAY - 1)
    assert not WebhookHealth(10, None, None).is_failing_for_good(NOW)


def test_a_status_has_its_reason_phrase_if_there_is_one() -> None:
    assert (status_in_words(404), status_in_words(999)) == ("404 Not Found", "999")
