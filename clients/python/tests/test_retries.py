"""The client against a service that misbehaves: what it sends again, and what it never does."""

import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from petstore_client import (
    Client,
    NoResponse,
    OutcomeUnknown,
    PetstoreError,
    UnexpectedResponse,
    errors,
)
from support.client_faces import KEY, Face, SleepingClock, by_the_time_of, each_face
from support.odd_service import HANG_UP, SILENCE, error, odd_service, response
from support.process import free_port

PET = {"id": 7, "name": "Bella", "categoryId": 1, "status": "available"}
GET, CREATE, UPDATE, DELETE = (
    lambda client: client.pets.get(7),
    lambda client: client.pets.create(name="Bella", category_id=1),
    lambda client: client.pets.update(7, status="sold"),
    lambda client: client.pets.delete(7),
)


@pytest.fixture
def clock() -> SleepingClock:
    return SleepingClock()


def failure(face: Face, url: str, use: Callable[[Any], Any], clock: SleepingClock) -> PetstoreError:
    with pytest.raises(PetstoreError) as raised:
        face(url, use, clock)
    return raised.value


# What is not sent again


@each_face
def test_a_refusal_is_not_retried_and_raises_an_error_with_its_details(
    face: Face, clock: SleepingClock
) -> None:
    refusal = error(409, "pet_not_available", "pet 7 is pending", X_Request_Id="abc")
    with odd_service(refusal) as service:
        raised = failure(face, service.url, lambda c: c.orders.place(pet_id=7), clock)
    assert isinstance(raised, errors.PetNotAvailable)
    assert isinstance(raised, errors.Conflict)
    assert (raised.status, raised.code, raised.message) == (
        409,
        "pet_not_available",
        "pet 7 is pending",
    )
    assert raised.request_id == "abc"
    assert raised.idempotency_key == service.asked[0].fields["idempotency-key"]
    assert clock.sleeps == []


@each_face
def test_an_error_has_the_headers_the_body_and_the_explanation_of_the_response(
    face: Face, clock: SleepingClock
) -> None:
    body = {"code": "pet_reserved", "message": "no", "status": 409, "later": {"order": 3}}
    links = '</v1/pets>; rel="next", </docs/errors#pet_reserved>; title="x"; rel="other help"'
    with odd_service(response(409, body, X_RateLimit_Limit=60, Link=links)) as service:
        raised = failure(face, service.url, DELETE, clock)
    assert isinstance(raised, errors.PetReserved)
    assert raised.headers is not None
    assert raised.headers["x-ratelimit-limit"] == "60"
    assert raised.body == body
    assert raised.documentation == f"{service.url}/docs/errors#pet_reserved"
    again = pickle.loads(pickle.dumps(raised))  # noqa: S301 - our own
    assert vars(again) == vars(raised)


@each_face
def test_the_body_of_an_error_that_is_no_json_is_its_text(face: Face, clock: SleepingClock) -> None:
    with odd_service(response(502, b"<html>aw\xffay", Link="</docs>; rel=up")) as service:
        raised = failure(face, service.url, UPDATE, clock)
    assert isinstance(raised, OutcomeUnknown)
    assert raised.message.startswith("the outcome of PATCH /pets/7 is unknown: ")
    assert (raised.body, raised.documentation) == ("<html>aw\ufffday", None)
    assert raised.headers is not None
    assert raised.headers["link"] == "</docs>; rel=up"


@each_face
def test_an_error_without_a_response_has_nothing_of_one(face: Face, clock: SleepingClock) -> None:
    raised = failure(face, f"http://127.0.0.1:{free_port()}", UPDATE, clock)
    assert isinstance(raised, NoResponse)
    assert (raised.headers, raised.body, raised.documentation) == (None, None, None)


@pytest.mark.parametrize("use", [UPDATE, DELETE])
@pytest.mark.parametrize("lost", [HANG_UP, error(502), error(503), error(504)])
@each_face
def test_a_change_that_may_have_taken_effect_is_not_retried(
    face: Face, clock: SleepingClock, lost: bytes, use: Callable[[Any], Any]
) -> None:
    with odd_service(lost) as service:
        raised = failure(face, service.url, use, clock)
    assert isinstance(raised, OutcomeUnknown)
    assert "/pets/7 is unknown: " in str(raised)
    assert isinstance(raised.__cause__, PetstoreError)
    assert len(service.asked) == 1


@each_face
def test_an_internal_error_is_not_retried(face: Face, clock: SleepingClock) -> None:
    with odd_service(error(500, "internal_error", X_Request_Id="abc")) as service:
        raised = failure(face, service.url, CREATE, clock)
    assert type(raised) is errors.ServerError
    assert str(raised) == "no (request abc)"


@each_face
def test_a_redirect_is_not_followed_so_the_key_is_sent_to_no_other_host(
    face: Face, clock: SleepingClock
) -> None:
    with odd_service(response(301, None, Location="https://elsewhere.example/v1/pets")) as service:
        raised = failure(face, service.url, GET, clock)
    assert isinstance(raised, UnexpectedResponse)
    assert "redirects to https://elsewhere.example/v1/pets" in str(raised)


STRANGE = {
    "a list that is an object": response(200, {}),
    "an id that is text": response(200, [{**PET, "id": "7"}]),
    "a member that is missing": response(200, [{"id": 7}]),
    "no JSON": response(200, b"<html>hello"),
    "no UTF-8": response(200, b'[{"id": 7, "name": "\xff", "categoryId": 1}]'),
    "JSON without end": response(200, b'[{"id": 7, "later": ' + 99_999 * b"["),
    "an error without its body": response(400, b"<html>bad"),
    "an error without end": response(
        400, b'{"code": "a", "message": "b", "later": ' + 99_999 * b"["
    ),
    "a 404 of another program": response(404, {"code": "not_found", "message": "no"}),
    "a 304 that nobody asked for": response(304),
}


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE)
@each_face
def test_a_response_that_is_not_from_a_petstore_service_is_an_error(
    face: Face, clock: SleepingClock, strange: bytes
) -> None:
    with odd_service(strange) as service:
        raised = failure(face, service.url, GET, clock)
    assert isinstance(raised, UnexpectedResponse)
    assert f"{service.url}/v1 responds with " in str(raised)


@each_face
def test_a_login_page_with_status_200_does_not_count_as_a_success(
    face: Face, clock: SleepingClock
) -> None:
    with odd_service(response(200, b"<html>log in")) as service:
        raised = failure(face, service.url, DELETE, clock)
    assert isinstance(raised, UnexpectedResponse)
    assert "it should have no content" in str(raised)


@pytest.mark.parametrize("link", ["<?cursor=>", "<?limit=5#cursor=b>", "</v1/pets>"])
@each_face
def test_a_next_link_without_a_cursor_is_an_error(
    face: Face, clock: SleepingClock, link: str
) -> None:
    with odd_service(response(200, [PET], Link=f"{link}; rel=next")) as service:
        raised = failure(face, service.url, lambda client: client.pets.list(), clock)
    assert isinstance(raised, UnexpectedResponse)
    assert "the link to the next page has no cursor" in str(raised)


@each_face
def test_the_cursor_of_a_link_with_an_invalid_address_is_used(
    face: Face, clock: SleepingClock
) -> None:
    link = "<http://[::1/v1/pets?cursor=b#top>; rel=next"
    with odd_service(response(200, [PET], Link=link), response(200, [])) as service:
        face(service.url, lambda client: client.pets.list(), clock)
    assert service.asked[1].target == "/v1/pets?limit=100&cursor=b"


@each_face
def test_a_cursor_that_is_too_long_for_a_url_is_an_error(face: Face, clock: SleepingClock) -> None:
    link = f"<?cursor={80_000 * 'b'}>; rel=next"
    with odd_service(response(200, [PET], Link=link)) as service:
        raised = failure(face, service.url, lambda client: client.pets.list(), clock)
    assert str(raised) == "GET /pets cannot be sent: URL too long"


@each_face
def test_an_endless_response_is_cut_off(face: Face, clock: SleepingClock) -> None:
    with odd_service(response(200, bytes(16 * 1024 * 1024 + 1))) as service:
        raised = failure(face, service.url, GET, clock)
    assert isinstance(raised, UnexpectedResponse)


@each_face
def test_an_empty_list_for_one_id_raises_not_found(face: Face, clock: SleepingClock) -> None:
    with odd_service(response(200, [], X_Request_Id="abc")) as service:
        raised = failure(face, service.url, GET, clock)
        assert service.asked[0].target == "/v1/pets?id=7"
    assert isinstance(raised, errors.NotFound)
    assert (raised.status, raised.code, raised.request_id) == (404, "not_found", "abc")


# What is sent again


HALF = b"HTTP/1.1 200 x\r\nContent-Length: 99\r\n\r\n[{"
PASSING = {
    "a reset": HANG_UP,
    "half a response": HALF,
    "no HTTP": b"SSH-2.0-hello\r\n",
    "408": error(408, "request_timeout"),
    "502 of a proxy": response(502, b"<html>bad gateway"),
    "503": error(503, "service_unavailable"),
    "504": error(504),
}


@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
@each_face
def test_a_read_is_retried_after_a_temporary_failure(
    face: Face, clock: SleepingClock, passing: bytes
) -> None:
    with odd_service(passing, passing, response(200, [PET])) as service:
        assert face(service.url, GET, clock).name == "Bella"
    assert len(service.asked) == 3
    assert clock.sleeps == [0.5, 1.0]  # of full jitter, the longest


@each_face
def test_a_post_is_retried_with_the_same_idempotency_key(face: Face, clock: SleepingClock) -> None:
    with odd_service(HANG_UP, error(409, "idempotency_key_in_use"), response(201, PET)) as service:
        assert face(service.url, CREATE, clock).id == 7
    keys = [asked.fields["idempotency-key"] for asked in service.asked]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len({asked.body for asked in service.asked}) == 1


@each_face
def test_a_post_has_the_idempotency_key_of_its_caller(face: Face, clock: SleepingClock) -> None:
    with odd_service(HANG_UP, HANG_UP, HANG_UP) as service:
        raised = failure(
            face, service.url, lambda c: c.orders.place(pet_id=7, idempotency_key="mine"), clock
        )
    assert [asked.fields["idempotency-key"] for asked in service.asked] == ["mine"] * 3
    assert isinstance(raised, OutcomeUnknown)
    assert raised.idempotency_key == "mine"


@each_face
def test_a_refusal_after_a_lost_response_settles_the_outcome_of_a_post(
    face: Face, clock: SleepingClock
) -> None:
    with odd_service(HANG_UP, error(409, "pet_not_available")) as service:
        raised = failure(face, service.url, lambda c: c.orders.place(pet_id=7), clock)
    assert isinstance(raised, errors.PetNotAvailable)


@pytest.mark.parametrize("silent", [error(401, "invalid_api_key"), error(429, Retry_After=999)])
@each_face
def test_an_unrelated_refusal_leaves_the_outcome_of_an_earlier_attempt_unknown(
    face: Face, clock: SleepingClock, silent: bytes
) -> None:
    with odd_service(HANG_UP, silent) as service:
        raised = failure(face, service.url, CREATE, clock)
    assert isinstance(raised, OutcomeUnknown)
    assert raised.status in (401, 429)


@each_face
def test_a_change_is_retried_if_it_cannot_have_been_received(
    face: Face, clock: SleepingClock
) -> None:
    raised = failure(face, f"http://127.0.0.1:{free_port()}", UPDATE, clock)
    assert type(raised) is NoResponse
    assert raised.status is None
    assert clock.sleeps == [0.5, 1.0]
    with odd_service(error(408, "request_timeout"), response(200, PET)) as service:
        assert face(service.url, UPDATE, clock).id == 7


@each_face
def test_the_caller_sets_the_number_of_retries(face: Face, clock: SleepingClock) -> None:
    with odd_service(*5 * [HANG_UP], response(200, [PET])) as service:
        assert face(service.url, GET, clock, max_retries=5).id == 7
    assert clock.sleeps == [0.5, 1, 2, 4, 8]
    with odd_service(HANG_UP) as service, pytest.raises(NoResponse):
        face(service.url, GET, clock, max_retries=0)


@each_face
def test_a_retry_waits_for_retry_after(face: Face, clock: SleepingClock) -> None:
    with odd_service(
        error(503, Retry_After=7),
        error(
            503,
            Retry_After="Sun, 22 Nov 2026 10:00:09 GMT",
            Date="Sun, 22 Nov 2026 10:00:00 GMT",
        ),
        response(200, [PET]),
    ) as service:
        face(service.url, GET, clock)
    assert clock.sleeps == [7, 9]


@pytest.mark.parametrize(
    "nonsense", ["soon", "-1", "Mon, 01 Jan 99999999999 00:00:00 GMT", "Sun, 99 Nov 2026", "1.5"]
)
@each_face
def test_an_invalid_retry_after_is_ignored(face: Face, clock: SleepingClock, nonsense: str) -> None:
    with odd_service(error(503, Retry_After=nonsense), response(200, [PET])) as service:
        face(service.url, GET, clock)
    assert clock.sleeps == [0.5]


@pytest.mark.parametrize(
    ("wait", "seconds"),
    [(121, 121), (10**12, 1e9), ("9" * 400, 1e9), ("Fri, 31 Dec 9999 23:59:59 GMT", 1e9)],
)
@each_face
def test_a_wait_that_is_too_long_is_an_error_at_once(
    face: Face, clock: SleepingClock, wait: object, seconds: float
) -> None:
    with odd_service(error(503, Retry_After=wait)) as service:
        raised = failure(face, service.url, GET, clock)
    assert isinstance(raised, errors.ServiceUnavailable)
    assert raised.retry_after == seconds
    assert clock.sleeps == []


# At the limit


@each_face
def test_a_429_is_waited_out_to_the_second_and_is_not_a_retry(
    face: Face, clock: SleepingClock
) -> None:
    refusals = [error(429, "rate_limit_exceeded", Retry_After=seconds) for seconds in (1, 30, 9)]
    with odd_service(*refusals, response(200, PET)) as service:
        assert face(service.url, UPDATE, clock, max_retries=0).id == 7
    assert clock.sleeps == [1, 30, 9]


@each_face
def test_waits_with_a_total_that_is_too_long_are_an_error_at_once(
    face: Face, clock: SleepingClock
) -> None:
    refusals = [error(429, "rate_limit_exceeded", Retry_After=seconds) for seconds in (100, 21)]
    with odd_service(*refusals) as service:
        raised = failure(face, service.url, GET, clock)
    assert isinstance(raised, errors.RateLimited)
    assert raised.retry_after == 21
    assert clock.sleeps == [100]


def test_after_a_long_429_only_calls_that_are_not_counted_are_sent(clock: SleepingClock) -> None:
    refusal = error(429, "api_key_banned", "banned", Retry_After=300, X_Request_Id="abc")
    with (
        odd_service(refusal, error(401, "invalid_api_key")) as service,
        by_the_time_of(clock),
        Client(KEY, f"{service.url}/v1") as client,
    ):
        for _ in range(3):
            with pytest.raises(errors.KeyBanned, match="banned") as raised:
                client.pets.get(7)
            assert raised.value.retry_after == 300 - (clock.moment - 1000)
            assert raised.value.request_id == "abc"
            clock.moment += 10
        assert len(service.asked) == 1
        with pytest.raises(errors.Unauthorized):
            client.usage.get()
    assert service.asked[1].target == "/v1/usage"


def test_a_key_that_was_rotated_too_often_holds_up_no_other_call(clock: SleepingClock) -> None:
    refusal = error(429, "too_many_rotations", "tomorrow", Retry_After=43200)
    with (
        odd_service(refusal, response(200, [PET])) as service,
        by_the_time_of(clock),
        Client(KEY, f"{service.url}/v1", max_wait=1e9) as client,
    ):
        with pytest.raises(errors.TooManyRotations, match="tomorrow") as raised:
            client.keys.rotate_current()
        assert raised.value.retry_after == 43200
        assert client.pets.get(7).id == 7
    assert clock.sleeps == []


# Time


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 x\r\n", HALF], ids=["no", "half", "whole"])
@each_face
def test_a_service_that_stalls_with_its_head_or_after_it_times_out(
    face: Face, clock: SleepingClock, head: bytes
) -> None:
    with odd_service((head, SILENCE)) as service, pytest.raises(OutcomeUnknown) as raised:
        face(service.url, UPDATE, clock, timeout=0.2)
    assert isinstance(raised.value.__cause__, errors.TimedOut)


# Secrets


@each_face
def test_no_error_no_repr_and_no_log_contains_the_key(
    face: Face, clock: SleepingClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []

    def use(client: Any) -> Any:
        seen.append(repr(client))
        return client.pets.get(7)

    with odd_service(error(503), HANG_UP, HANG_UP) as service:
        raised = failure(face, service.url, use, clock)
        assert service.asked[0].fields["authorization"] == f"Bearer {KEY}"
    cause: BaseException | None = raised
    while cause is not None:
        seen += [repr(cause), str(cause)]
        cause = cause.__cause__
    told = "".join([*seen, caplog.text])
    assert "Client(base_url='http://127.0.0.1:" in told
    assert "petstore_client" in caplog.text
    assert KEY not in told
