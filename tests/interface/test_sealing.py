"""Sealed texts: only their secret opens them, and nothing of them shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.interface.sealing import seal, unseal
from support.exploration import explored

SECRET = b"ps_live_" + b"a" * 38
OVERHEAD = 12 + 16
# What releases before AES-GCM kept: a SHAKE-256 key stream and an HMAC, with SECRET.
BY_THE_OLD_CIPHER = bytes.fromhex(
    "6175ee4ac0d3f78f4cdf4ba2007fdc274bc6436cfefdff9c858d54232ae6ba1f936f1fbc7f235155a439a5e730fb3870"
    "ba040edc7aff78c031b27e5c6a3d6c1ad5e68b4f3b"
)


SEALED = bytes.fromhex("000102030405060708090a0bb9599319078013b99b6cb763cdf5294c5ff23e1eda")


def test_a_text_sealed_by_an_earlier_release_can_be_opened() -> None:
    assert unseal(SEALED, SECRET) == b"token"


@explored(50)
@given(text=st.binary(max_size=500), secret=st.binary(min_size=1))
def test_the_same_secret_opens_a_sealed_text(text: bytes, secret: bytes) -> None:
    assert unseal(seal(text, secret), secret) == text


@explored(50)
@given(text=st.binary(max_size=100), secret=st.binary(), other=st.binary())
def test_another_secret_does_not_open_a_sealed_text(
    text: bytes, secret: bytes, other: bytes
) -> None:
    # HMAC fills a short secret up with zeros: those with another number of them are the same.
    if secret.rstrip(b"\0") != other.rstrip(b"\0"):
        assert unseal(seal(text, secret), other) is None


def test_a_text_sealed_for_one_purpose_does_not_open_for_another() -> None:
    assert unseal(seal(b"token", SECRET, b"a"), SECRET, b"a") == b"token"
    assert unseal(seal(b"token", SECRET, b"a"), SECRET, b"b") is None


def test_a_changed_text_is_not_opened() -> None:
    sealed = seal(b"token", SECRET)
    for index in range(len(sealed)):
        changed = bytearray(sealed)
        changed[index] ^= 1
        assert unseal(bytes(changed), SECRET) is None, index


@pytest.mark.parametrize("length", [0, 1, 8, 11, 12, OVERHEAD - 1, OVERHEAD, OVERHEAD + 4])
def test_a_truncated_text_is_not_opened(length: int) -> None:
    assert unseal(seal(b"token", SECRET)[:length], SECRET) is None


def test_a_sealed_text_reveals_only_its_length() -> None:
    text = b"ps_live_" * 100
    sealed = seal(text, SECRET)
    assert len(sealed) == len(text) + OVERHEAD
    assert b"ps_live" not in sealed
    # A stream that repeats itself would show where the text does.
    hidden = sealed[12:-16]
    assert len({hidden[at : at + 8] for at in range(0, len(hidden), 8)}) == 100


def test_sealing_the_same_text_twice_gives_different_results() -> None:
    first, second = seal(b"token" * 20, SECRET), seal(b"token" * 20, SECRET)
    assert first[:12] != second[:12]
    assert first[12:] != second[12:]


def test_a_record_of_the_former_cipher_is_not_opened() -> None:
    assert unseal(BY_THE_OLD_CIPHER, SECRET) is None
