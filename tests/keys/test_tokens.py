"""The format of tokens, and when a key can be used."""

import re
import string
from hashlib import sha256
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.domain.decoding import decode_json
from petstore.domain.plans import UNLIMITED, Limits
from petstore.errors import InvalidBody
from petstore.keys.model import (
    DEFAULT_SCOPES,
    LONGEST_LIFE,
    Caller,
    Environment,
    KeyCreate,
    KeyName,
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


@explored(50)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_not_a_token(token: bytes) -> None:
    assert not is_token(token, "production")


def test_a_token_of_one_environment_is_invalid_in_the_other() -> None:
    assert not is_token(new_token("production").encode(), "staging")
    assert not is_token(new_token("staging").encode(), "production")


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
    assert is_token(token.encode(), environment)


def test_the_form_of_a_token_never_changes() -> None:
    assert is_token(TOKEN, "production")


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


def test_a_key_has_the_limits_of_its_plan() -> None:
    assert key().limits == Limits(60, 1_000)
    assert key().limits.per_minute < UNLIMITED


def test_the_default_scopes_are_reading_and_writing_pets_and_orders() -> None:
    assert DEFAULT_SCOPES == ("pets:read", "pets:write", "orders:read", "orders:write")
    assert KeyCreate("test").scopes == frozenset(DEFAULT_SCOPES)


def test_a_key_expires_in_at_most_a_hundred_years() -> None:
    assert LONGEST_LIFE == 36_500 * 86_400_000


@pytest.mark.parametrize(("length", "is_taken"), [(0, False), (1, True), (100, True), (101, False)])
def test_a_name_has_1_to_100_printable_characters(length: int, *, is_taken: bool) -> None:
    named = msgspec.defstruct("Named", [("name", KeyName)])
    body = b'{"name": "%b"}' % (b"x" * length)
    if is_taken:
        assert decode_json(body, named) == named("x" * length)
        return
    expected = "^name: expected 1 to 100 printable characters, not only white space$"
    with pytest.raises(InvalidBody, match=expected):
        decode_json(body, named)
