"""The format of tokens, and when a key can be used."""

import re
import string
from hashlib import sha256
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.keys.model import (
    PREFIXES,
    Caller,
    Environment,
    KeyState,
    digest,
    is_token,
    new_token,
)
from support.exploration import explored

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
TOKEN = b"ps_live_0123456789ABCDEFGHIJKLMNOPQRSTUV27v6EQ"
NOW = 1_000_000


def key(expires_at: int | None = None, revoked_at: int | None = None) -> Caller:
    return Caller(
        "test",
        id=1,
        environment="production",
        created_at=0,
        expires_at=expires_at,
        revoked_at=revoked_at,
    )


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"ps_live_",
        TOKEN[:-1],
        TOKEN + b"0",
        TOKEN + b"\n",
        b" " + TOKEN,
        TOKEN.lower(),
        TOKEN.replace(b"_", b"-"),
        TOKEN[:20] + b"\xff" + TOKEN[21:],
        TOKEN[:20] + b"\xef\xbc\x91" + TOKEN[23:],
    ],
)
def test_a_malformed_token_is_refused(token: bytes) -> None:
    assert not is_token(token, "production")


@explored(50)
@given(st.integers(0, len(TOKEN) - 1), st.integers(0, 255))
def test_a_typo_of_any_character_is_refused(position: int, character: int) -> None:
    typo = TOKEN[:position] + bytes([character]) + TOKEN[position + 1 :]
    assert is_token(typo, "production") is (typo == TOKEN)


@explored(50)
@given(st.integers(8, len(TOKEN) - 2))
def test_a_token_with_two_swapped_characters_is_refused(position: int) -> None:
    swapped = bytearray(TOKEN)
    swapped[position : position + 2] = reversed(swapped[position : position + 2])
    assert is_token(bytes(swapped), "production") is (swapped == TOKEN)


@pytest.mark.parametrize(("environment", "prefix"), [("production", "live"), ("staging", "test")])
def test_a_token_is_a_prefix_32_random_characters_and_6_of_checksum(
    environment: Environment, prefix: str
) -> None:
    token = new_token(environment)
    assert re.fullmatch(rf"ps_{prefix}_[0-9A-Za-z]{{38}}", token)
    value = 0
    for digit in token[-6:]:
        value = value * 62 + BASE62.index(digit)
    assert value == crc32(token[:-6].encode())
    for each in PREFIXES:  # of one environment, it is invalid in the other
        assert is_token(token.encode(), each) == (each == environment)


def test_every_token_is_unique() -> None:
    assert len({new_token("production") for _ in range(200)}) == 200


def test_a_token_is_stored_as_its_sha256() -> None:
    assert digest(TOKEN) == sha256(TOKEN).digest()


@pytest.mark.parametrize(
    ("expires_at", "revoked_at", "state"),
    [
        (None, None, "active"),
        (NOW + 1, None, "active"),
        (NOW, None, "expired"),
        (NOW - 1, None, "expired"),
        (None, NOW - 1, "revoked"),
        (None, NOW + 1, "revoked"),
        (NOW - 1, NOW - 2, "revoked"),
    ],
)
def test_a_key_is_active_until_it_expires_or_is_revoked(
    expires_at: int | None, revoked_at: int | None, state: KeyState
) -> None:
    assert key(expires_at, revoked_at).state(NOW) == state
