"""What an agent is told to do about each kind of error."""

import pytest

from petstore.agents.failures import explain
from petstore_client import OutcomeUnknown, PetstoreError, errors

NOW = 1_796_126_400_000


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (errors.Unauthorized, "Ask the user for a valid API key."),
        (errors.MissingScope, "Tell the user, and do not try another way."),
        (errors.NotFound, "Check the id with a list."),
        (errors.CursorExpired, "Call again without cursor."),
        (errors.PreconditionFailed, "Read it again, and decide anew."),
        (errors.IdempotencyKeyInUse, "Call again in a few seconds."),
        (errors.IdempotencyKeyReused, "Leave idempotencyKey out"),
        (errors.PetReserved, "Read it again before you decide."),
        (errors.BadRequest, "Correct the arguments and call again."),
        (errors.UnexpectedResponse, "check the address of the store (--url)"),
        (errors.RateLimited, "Wait a minute before you call any tool again."),
        (errors.ServiceUnavailable, "Call again in a minute."),
        (OutcomeUnknown, "Read the resource before you call again."),
        (errors.ClientClosed, "Tell the user."),
    ],
)
def test_each_error_says_what_to_do(error: type[PetstoreError], told: str) -> None:
    lines = explain(error("it is wrong"), NOW).splitlines()
    assert lines[0] == "failed: it is wrong"
    assert lines[1].startswith("What to do: ")
    assert told in lines[1]


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
    explained = (
        "petstore://docs/errors, pet_reserved; https://shop.example/docs/errors#pet_reserved"
    )
    assert rest == ["Request: r-17", f"Documentation: {explained}"]


def test_a_write_with_an_unknown_outcome_can_be_repeated_with_its_idempotency_key() -> None:
    error = errors.NoResponse("the connection broke")
    error.idempotency_key = "k-1"
    assert "the same arguments and idempotencyKey 'k-1': it acts once" in explain(error, NOW)
