"""What an agent is told to do about each kind of error."""

import pytest

from petstore.agents.failures import explain
from petstore_client import OutcomeUnknown, PetstoreError, errors

NOW = 1_796_126_400_000


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (400, "invalid_parameter", "Correct the arguments and call again."),
        (401, "invalid_api_key", "Ask the user for a valid API key."),
        (403, "missing_scope", "Tell the user, and do not try another way."),
        (404, "not_found", "Check the id with a list."),
        (409, "pet_reserved", "Read it again before you decide."),
        (409, "idempotency_key_in_use", "Call again in a few seconds."),
        (410, "cursor_expired", "Call again without cursor."),
        (412, "precondition_failed", "Read it again, and decide anew."),
        (422, "idempotency_key_reused", "Leave idempotencyKey out"),
        (431, "headers_too_large", "Tell the user."),
    ],
)
def test_each_error_says_what_to_do(status: int, code: str, told: str) -> None:
    lines = explain(PetstoreError("it is wrong", status=status, code=code), NOW).splitlines()
    assert lines[0] == f"{status} {code}: it is wrong"
    assert lines[1].startswith("What to do: ")
    assert told in lines[1]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (errors.UnexpectedResponse, "check the address of the store (--url)"),
        (errors.RateLimited, "Call no tool for 60 seconds"),
        (errors.ServiceUnavailable, "Call again in a minute."),
        (OutcomeUnknown, "Read the resource before you call again."),
        (errors.ClientClosed, "Tell the user."),
    ],
)
def test_so_does_a_call_without_a_response(error: type[PetstoreError], told: str) -> None:
    assert f"failed: it is wrong\nWhat to do: {told}" in explain(error("it is wrong"), NOW).replace(
        "Tell the user to check", "check"
    ).replace("It may have been done, or not. ", "")


def test_a_long_text_of_another_service_is_cut() -> None:
    told = explain(errors.BadRequest("x" * 100_000, status=400, code="y" * 5000), NOW)
    assert len(told) < 1200
    assert "What to do: Correct" in told


def test_a_limit_is_told_in_seconds_and_as_a_time() -> None:
    told = explain(errors.KeyBanned("the key is banned", retry_after=29.2), NOW)
    assert "Call no tool for 30 seconds, until 2026-12-01T12:00:30Z." in told


def test_an_error_names_its_code_its_request_and_its_explanation() -> None:
    error = errors.PetReserved(
        "status: an order reserves the pet",
        status=409,
        code="pet_reserved",
        request_id="r-17",
        documentation="https://shop.example/docs/errors#pet_reserved",
    )
    first, _, *rest = explain(error, NOW).splitlines()
    assert first == "409 pet_reserved: status: an order reserves the pet"
    explained = "https://shop.example/docs/errors#pet_reserved"
    assert rest == ["Request: r-17", f"Documentation: {explained}"]


def test_a_write_with_an_unknown_outcome_can_be_repeated_with_its_idempotency_key() -> None:
    error = errors.NoResponse("the connection broke")
    error.idempotency_key = "k-1"
    assert "the same arguments and idempotencyKey 'k-1': it acts once" in explain(error, NOW)
