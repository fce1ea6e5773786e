"""The client against a service that misbehaves: what it sends again, and what it never does."""

import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from petstore.interface.openapi.events import example_of
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


def failure(
    face: Face, url: str, use: Callable[[Any], Any], clock: SleepingClock | None = None
) -> PetstoreError:
    with pytest.raises(PetstoreError) as raised:
        face(url, use, clock)
    return raised.value


# What is not sent again


@each_face
def test_a_refusal_is_not_retried_and_raises_an_error_with_its_details(
    face: Face, clock: SleepingClock
) -> None:
    body = {"code": "pet_not_available", "message": "pet 7 is pending", "later": {"order": 3}}
    links = '</v1/pets>; rel="next", </docs/errors#a>; title="x"; rel="other help"'
    refusal = response(409, body, X_RateLimit_Limit=60, X_Request_Id="abc", Link=links)
    with odd_service(refusal) as service:
        raised = failure(face, service.url, lambda c: c.orders.place(pet_id=7), clock)
    assert isinstance(raised, errors.PetNotAvailable)
    assert isinstance(raised, errors.Conflict)
    assert (raised.status, raised.code, raised.message) == (409, body["code"], body["message"])
    assert (raised.request_id, raised.body) == ("abc", body)
    assert raised.headers is not None
    assert raised.headers["x-ratelimit-limit"] == "60"
    assert raised.documentation == f"{service.url}/docs/errors#a"
    assert raised.idempotency_key == service.asked[0].fields["idempotency-key"]
    assert clock.sleeps == []
    again = pickle.loads(pickle.dumps(raised))  # noqa: S301 - our own
    assert vars(again) == vars(raised)


@pytest.mark.parametrize("use", [UPDATE, DELETE])
@pytest.mark.parametrize("lost", [HANG_UP, error(502), error(503), error(504)])
@each_face
def test_a_change_that_may_have_taken_effect_is_not_retried(
    face: Face, lost: bytes, use: Callable[[Any], Any]
) -> None:
    with odd_service(lost) as service:
        raised = failure(face, service.url, use)
    assert isinstance(raised, OutcomeUnknown)
    assert "/pets/7 is unknown: " in str(raised)
    assert isinstance(raised.__cause__, PetstoreError)
    assert len(service.asked) == 1


LIST = lambda client: client.pets.list()  # noqa: E731 - as those above
FEED = lambda client: client.events.list()  # noqa: E731 - as those above
NO_NAME = [example_of("pet.created") | {"data": {"id": 7}}]
NO_CURSOR = "the link to the next page has no cursor"
STRANGE = {
    "a redirect": (GET, response(301, None, Location="https://a.example/"), "redirects to https"),
    "a list that is an object": (GET, response(200, {}), "responds with 200"),
    "an id that is text": (GET, response(200, [{**PET, "id": "7"}]), "responds with 200"),
    "a member that is missing": (GET, response(200, [{"id": 7}]), "responds with 200"),
    "no JSON": (GET, response(200, b"<html>hello"), "responds with 200"),
    "no UTF-8": (GET, response(200, b'[{"id": 7, "name": "\xff"}]'), "responds with 200"),
    "JSON without end": (GET, response(200, b'[{"id": ' + 99_999 * b"["), "responds with 200"),
    "an error without its body": (GET, response(400, b"<html>bad"), "responds with 400"),
    "a 404 of another program": (GET, response(404, {"code": "a", "message": "no"}), "with 404"),
    "a 304 that nobody asked for": (GET, response(304), "responds with 304"),
    "no end": (GET, response(200, bytes(16 * 1024 * 1024 + 1)), "more than 16777216 bytes"),
    "a login page": (DELETE, response(200, b"<html>log in"), "it should have no content"),
    "an empty cursor": (LIST, response(200, [PET], Link="<?cursor=>; rel=next"), NO_CURSOR),
    "a cursor of a fragment": (LIST, response(200, [], Link="<?a#cursor=b>; rel=next"), NO_CURSOR),
    "an event without its data": (FEED, response(200, NO_NAME), "required field `name`"),
    "no cursor": (LIST, response(200, [PET], Link="</v1/pets>; rel=next"), NO_CURSOR),
}


@pytest.mark.parametrize(("use", "strange", "said"), STRANGE.values(), ids=STRANGE)
@each_face
def test_a_response_that_is_not_from_a_petstore_service_is_an_error(
    face: Face, use: Callable[[Any], Any], strange: bytes, said: str
) -> None:
    with odd_service(strange) as service:
        raised = failure(face, service.url, use)
    assert isinstance(raised, UnexpectedResponse)
    assert said in str(raised)


@each_face
def test_an_error_says_what_is_known_of_its_response(face: Face) -> None:
    with odd_service(response(502, b"<html>aw\xffay", Link="</docs>; rel=up")) as service:
        raised = failure(face, service.url, UPDATE)
    assert raised.message.startswith("the outcome of PATCH /pets/7 is unknown: ")
    assert (raised.body, raised.documentation) == ("<html>aw\ufffday", None)
    with odd_service(error(500, "internal_error", X_Request_Id="abc")) as service:
        raised = failure(face, service.url, CREATE)
    assert (type(raised), str(raised)) == (errors.ServerError, "no (request abc)")
    too_long = f"<?cursor={80_000 * 'b'}>; rel=next"
    with odd_service(response(200, [PET], Link=too_long)) as service:
        raised = failure(face, service.url, LIST)
    assert str(raised) == "GET /pets cannot be sent: URL too long"


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
def test_a_post_is_retried_with_the_same_idempotency_key(face: Face) -> None:
    with odd_service(HANG_UP, error(409, "idempotency_key_in_use"), response(201, PET)) as service:
        assert face(service.url, CREATE).id == 7
    keys = [asked.fields["idempotency-key"] for asked in service.asked]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len({asked.body for asked in service.asked}) == 1


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        ([HANG_UP, HANG_UP], OutcomeUnknown),
        ([error(409, "pet_not_available")], errors.PetNotAvailable),  # which settles it
        ([error(401, "invalid_api_key")], OutcomeUnknown),
        ([error(429, Retry_After=999)], OutcomeUnknown),
    ],
)
@each_face
def test_a_post_whose_response_was_lost_ends_as_what_came_after_tells(
    face: Face, after: list[bytes], kind: type[PetstoreError]
) -> None:
    def place(client: Any) -> Any:
        return client.orders.place(pet_id=7, idempotency_key="mine")

    with odd_service(HANG_UP, *after) as service:
        raised = failure(face, service.url, place)
    assert {asked.fields["idempotency-key"] for asked in service.asked} == {"mine"}
    assert (type(raised), raised.idempotency_key) == (kind, "mine")


@each_face
def test_a_change_is_retried_if_it_cannot_have_been_received(
    face: Face, clock: SleepingClock
) -> None:
    raised = failure(face, f"http://127.0.0.1:{free_port()}", UPDATE, clock)
    assert type(raised) is NoResponse
    about_response = (raised.status, raised.headers, raised.body, raised.documentation)
    assert about_response == (None, None, None, None)
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


DATE = {"Retry_After": "Sun, 22 Nov 2026 10:00:09 GMT", "Date": "Sun, 22 Nov 2026 10:00:00 GMT"}
FAR = "Fri, 31 Dec 9999 23:59:59 GMT"
NONSENSE = ("soon", "-1", "Mon, 01 Jan 99999999999 00:00:00 GMT", "Sun, 99 Nov 2026", "1.5")


@pytest.mark.parametrize(
    ("away", "sleeps", "left"),
    [
        ([error(503, Retry_After=7), error(503, **DATE)], [7, 9], None),
        *(([error(503, Retry_After=text)], [0.5], None) for text in NONSENSE),
        ([error(429, Retry_After=seconds) for seconds in (1, 30, 9)], [1, 30, 9], None),
        ([error(429, Retry_After=100), error(429, Retry_After=21)], [100], 21),
        ([error(503, Retry_After=121)], [], 121),
        *(([error(503, Retry_After=text)], [], 1e9) for text in (10**12, "9" * 400, FAR)),
    ],
)
@each_face
def test_a_call_waits_as_long_as_the_service_asks_or_raises_its_error_at_once(
    face: Face, clock: SleepingClock, away: list[bytes], sleeps: list[float], left: float | None
) -> None:
    with odd_service(*away, *([] if left else [response(200, [PET])])) as service:
        if left is None:
            assert face(service.url, GET, clock).id == 7
        else:
            assert failure(face, service.url, GET, clock).retry_after == left
    assert clock.sleeps == sleeps


# At the limit


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
def test_a_service_that_stalls_with_its_head_or_after_it_times_out(face: Face, head: bytes) -> None:
    with odd_service((head, SILENCE)) as service:
        raised = failure(face, service.url, lambda c: c.with_options(timeout=0.2).pets.delete(7))
    assert isinstance(raised, OutcomeUnknown)
    assert isinstance(raised.__cause__, errors.TimedOut)


# Secrets


@each_face
def test_no_error_no_repr_and_no_log_contains_the_key(
    face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with odd_service(error(503), HANG_UP, HANG_UP) as service:
        cause: BaseException | None = failure(face, service.url, GET)
        assert service.asked[0].fields["authorization"] == f"Bearer {KEY}"
    seen = [repr(Client(KEY))]
    while cause is not None:
        seen += [repr(cause), str(cause)]
        cause = cause.__cause__
    told = "".join([*seen, caplog.text])
    assert "Client(base_url='http://127.0.0.1:" in told
    assert "petstore_client" in caplog.text
    assert KEY not in told
