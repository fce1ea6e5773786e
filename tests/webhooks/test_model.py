"""Where a webhook may point, and the events that it gets."""

import json
from contextlib import nullcontext
from ipaddress import ip_network
from typing import Any

import pytest
from msgspec import convert

from petstore.domain.decoding import decode_json
from petstore.errors import InvalidBody, InvalidWebhookUrl
from petstore.events.model import EVENT_TYPES, scope_of
from petstore.keys.model import DEFAULT_SCOPES, SCOPES
from petstore.webhooks.model import (
    MAX_WEBHOOKS,
    Networks,
    SecretRotation,
    WebhookCreate,
    WebhookPatch,
    check_url,
    in_order,
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
    ],
)
def test_an_invalid_value_is_refused_naming_the_field(
    struct: type, members: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidBody) as refused:
        decode_json(json.dumps(members).encode(), struct)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("struct", "members"),
    [
        (WebhookPatch, {"url": "x" * 2048}),
        (WebhookPatch, {"description": "x"}),
        (WebhookPatch, {"description": "x" * 255}),
        (SecretRotation, {"graceSeconds": 0}),
        (SecretRotation, {"graceSeconds": 604_800}),
    ],
)
def test_a_value_at_a_limit_is_accepted(struct: type, members: dict[str, Any]) -> None:
    assert decode_json(json.dumps(members).encode(), struct) == convert(members, struct)


def test_an_old_secret_signs_for_a_day_by_default() -> None:
    assert SecretRotation().grace_seconds == 86_400


def test_a_key_has_at_most_16_webhooks() -> None:
    assert MAX_WEBHOOKS == 16


def test_types_are_sorted_and_deduplicated() -> None:
    types = ["order.placed", "pet.created", "order.placed"]
    assert in_order(types) == ["pet.created", "order.placed"]
    assert in_order(EVENT_TYPES[::-1]) == [*EVENT_TYPES]


def test_a_webhook_gets_the_types_that_its_key_can_read() -> None:
    every = frozenset(EVENT_TYPES) - {"webhook.test"}
    assert wanted_types([], frozenset(SCOPES)) == every
    of_key = {kind for kind in every if scope_of(kind) is None}
    assert wanted_types([], frozenset({"webhooks:write"})) == of_key
    assert wanted_types(["webhook.test"], frozenset(SCOPES)) == frozenset()
    types = ["order.placed", "key.banned"]
    assert wanted_types(types, frozenset(DEFAULT_SCOPES)) == set(types)
    assert wanted_types(types, frozenset({"pets:read"})) == {"key.banned"}


def test_a_key_has_16_webhooks_and_an_old_secret_signs_for_a_day() -> None:
    assert (MAX_WEBHOOKS, SecretRotation().grace_seconds) == (16, 86_400)
