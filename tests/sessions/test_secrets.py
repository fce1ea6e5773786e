"""The secrets of sessions and links, and how made-up ones are told from those that were issued."""

import pytest

from petstore.sessions.secrets import SEAL_LENGTH, is_sealed, new_secret

SEAL = b"s" * 32


def test_an_issued_secret_is_valid_and_unique() -> None:
    assert len(SEAL) == SEAL_LENGTH
    issued = {new_secret(SEAL) for _ in range(5)}
    assert len(issued) == 5
    assert all(is_sealed(secret, SEAL) for secret in issued)


def test_a_secret_with_another_seal_is_invalid() -> None:
    assert not is_sealed(new_secret(b"x" * SEAL_LENGTH), SEAL)


@pytest.mark.parametrize("position", [0, 42, 43, 64])
def test_a_changed_secret_is_invalid(position: int) -> None:
    secret = new_secret(SEAL)
    other = "a" if secret[position] != "a" else "b"
    assert not is_sealed(secret[:position] + other + secret[position + 1 :], SEAL)


@pytest.mark.parametrize("made_up", ["", "x", "x" * 65, "x" * 64 + "\n", "\ud800" * 65, "é" * 65])
def test_a_made_up_secret_is_invalid(made_up: str) -> None:
    assert not is_sealed(made_up, SEAL)
    assert not is_sealed(new_secret(SEAL) + made_up[:1] + "=", SEAL)
