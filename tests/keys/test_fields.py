"""The fields of an API key in a request: which values they take, and what a refusal says."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import asdict

from petstore.domain.decoding import decode_json
from petstore.errors import InvalidBody
from petstore.keys.model import KeyCreate, KeyPatch

LIMIT = "an integer from 1 to 2147483646"
SCOPES = (
    "a list of one or more of 'pets:read', 'pets:write', 'orders:read', 'orders:write',"
    " 'webhooks:write', 'keys:admin'"
)
NETWORKS = "a list of up to 32 networks such as 203.0.113.0/24 or 2001:db8::/32"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", "", "1 to 100 printable characters, not only white space"),
        ("name", "x" * 101, "1 to 100 printable characters, not only white space"),
        ("name", "\n", "1 to 100 printable characters, not only white space"),
        ("plan", "gold", "one of 'free', 'pro', 'business', 'enterprise'"),
        *(("perMinute", value, LIMIT) for value in (0, 2**31 - 1)),
        *(("perDay", value, LIMIT) for value in (0, 2**31 - 1)),
        *(("scopes", value, SCOPES) for value in ([], ["pets"])),
        ("expiresAt", "2030-01-01T00:00:00", "a date and time as in 2026-12-24T10:00:00Z"),
        ("allowedNetworks", ["10.0.0.0/8"] * 33, NETWORKS),
    ],
)
@pytest.mark.parametrize("struct", [KeyCreate, KeyPatch])
def test_an_invalid_value_is_refused(
    struct: type, field: str, value: object, expected: str
) -> None:
    with pytest.raises(InvalidBody) as refused:
        decode_json(json.dumps({"name": "Till", field: value}).encode(), struct)
    assert refused.value.message == f"{field}: expected {expected}"


@pytest.mark.parametrize(
    ("field", "value", "name", "meant"),
    [
        ("name", "x" * 100, "name", "x" * 100),
        ("perMinute", 1, "per_minute", 1),
        ("perDay", 2**31 - 2, "per_day", 2**31 - 2),
        ("perMinute", None, "per_minute", None),
        ("scopes", ["keys:admin"], "scopes", frozenset({"keys:admin"})),
        ("expiresAt", "2030-01-01T00:00:00Z", "expires_at", datetime(2030, 1, 1, tzinfo=UTC)),
        ("expiresAt", None, "expires_at", None),
        ("allowedNetworks", ["::1"] * 32, "allowed_networks", ("::1",) * 32),
    ],
)
def test_a_patch_names_what_it_changes(field: str, value: Any, name: str, meant: Any) -> None:
    patch = asdict(decode_json(json.dumps({field: value}).encode(), KeyPatch))
    assert patch == dict.fromkeys(KeyCreate.__struct_fields__, UNSET) | {name: meant}
