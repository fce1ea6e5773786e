"""What an agent is told to do about each kind of error."""

from typing import Any

import pytest

from petstore.agents.server import explain
from petstore_client import OutcomeUnknown, PetstoreError, errors

NOW = 1_796_126_400_000


def explained(kind: type[PetstoreError], message: str = "it is wrong", **fields: Any) -> list[str]:
    return explain(kind(message, **fields), NOW).splitlines()


@pytest.mark.parametrize(
    ("kind", "status", "code", "told"),
    [
        (PetstoreError, 400, "invalid_parameter", "Correct the arguments and call again."),
        (PetstoreError, 401, "invalid_api_key", "Ask the user for a valid API key."),
        (PetstoreError, 403, "missing_scope", "Your key may not do this. Tell the user"),
        (PetstoreError, 404, "not_found", "Check the id with a list."),
        (PetstoreError, 409, "pet_reserved", "Read it again before you decide."),
        (PetstoreError, 409, "idempotency_key_in_use", "The first call is still under way."),
        (PetstoreError, 410, "cursor_expired", "Call again without cursor."),
        (PetstoreError, 412, "precondition_failed", "It has changed since. Read it again"),
        (PetstoreError, 422, "idempotency_key_reused", "Leave idempotencyKey out"),
        (PetstoreError, 431, "headers_too_large", "Tell the user."),
        (errors.UnexpectedResponse, None, None, "Tell the user to check the address of the store"),
        (errors.RateLimited, None, None, "Call no tool for 60 seconds"),
        (errors.ServiceUnavailable, None, None, "Call again in a minute."),
        (OutcomeUnknown, None, None, "It may have been done, or not. Read the resource before"),
        (errors.ClientClosed, None, None, "Tell the user."),
    ],
)
def test_each_error_says_what_to_do(
    kind: type[PetstoreError], status: int | None, code: str | None, told: str
) -> None:
    first, second = explained(kind, status=status, code=code)
    assert first == (f"{status} {code}: it is wrong" if status else "failed: it is wrong")
    assert second.startswith(f"What to do: {told}")


def test_a_limit_is_told_in_seconds_and_as_a_time() -> None:
    _, told = explained(errors.KeyBanned, retry_after=29.2)
    assert "Call no tool for 30 seconds, until 2026-12-01T12:00:30Z, or" in told


def test_an_error_names_its_request_and_its_explanation() -> None:
    link = "https://shop.example/docs/errors#pet_reserved"
    lines = explained(errors.PetReserved, status=409, request_id="r-17", documentation=link)
    assert lines[2:] == ["Request: r-17", f"Documentation: {link}"]
