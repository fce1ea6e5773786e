"""What an agent is told to do about each kind of error."""

from typing import Any

import pytest

from petstore.agents.failures import explain
from petstore_client import OutcomeUnknown, PetstoreError, errors

NOW = 1_796_126_400_000


def explained(kind: type[PetstoreError], message: str = "it is wrong", **fields: Any) -> list[str]:
    return explain(kind(message, **fields), NOW).splitlines()


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (400, "invalid_parameter", "Correct the arguments and call again."),
        (401, "invalid_api_key", "Ask the user for a valid API key."),
        (403, "missing_scope", "Your key may not do this. Tell the user"),
        (404, "not_found", "Check the id with a list."),
        (409, "pet_reserved", "Read it again before you decide."),
        (409, "idempotency_key_in_use", "The first call is still under way."),
        (410, "cursor_expired", "Call again without cursor."),
        (412, "precondition_failed", "Somebody has changed it. Read it again"),
        (422, "idempotency_key_reused", "Leave idempotencyKey out"),
        (431, "headers_too_large", "Tell the user."),
    ],
)
def test_each_error_says_what_to_do(status: int, code: str, told: str) -> None:
    first, second = explained(PetstoreError, status=status, code=code)
    assert first == f"{status} {code}: it is wrong"
    assert second.startswith(f"What to do: {told}")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (errors.UnexpectedResponse, "Tell the user to check the address of the store (--url)"),
        (errors.RateLimited, "Call no tool for 60 seconds"),
        (errors.ServiceUnavailable, "Call again in a minute."),
        (OutcomeUnknown, "It may have been done, or not. Read the resource before you call again."),
        (errors.ClientClosed, "Tell the user."),
    ],
)
def test_so_does_a_call_without_a_response(error: type[PetstoreError], told: str) -> None:
    first, second = explained(error)
    assert first == "failed: it is wrong"
    assert second.startswith(f"What to do: {told}")


def test_a_long_text_of_another_service_is_cut() -> None:
    lines = explained(errors.BadRequest, "x" * 100_000, status=400, code="y" * 5000)
    assert len(lines[0]) <= 1000
    assert "What to do: Correct" in lines[1]


def test_a_limit_is_told_in_seconds_and_as_a_time() -> None:
    _, told = explained(errors.KeyBanned, retry_after=29.2)
    assert "Call no tool for 30 seconds, until 2026-12-01T12:00:30Z, or" in told


def test_an_error_names_its_request_and_its_explanation() -> None:
    link = "https://shop.example/docs/errors#pet_reserved"
    lines = explained(errors.PetReserved, status=409, request_id="r-17", documentation=link)
    assert lines[2:] == ["Request: r-17", f"Documentation: {link}"]
