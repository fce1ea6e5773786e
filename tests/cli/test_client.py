"""The client: what it sends, what it waits for, and how it handles odd responses."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

import click
import pytest

from petstore.cli.client import Client
from petstore.cli.client_failures import ExitStatus, Failure
from support.manual_clock import ManualClock
from support.odd_service import HANG_UP, SILENCE, OddService, error, odd_service, response
from support.process import free_port

UNKNOWN = "; it is not known whether the request was carried out"


class Pet(TypedDict):
    id: int
    name: str


REX: Pet = {"id": 1, "name": "Rex"}
CREATED = response(201, REX)
Ask = Callable[[Client], Any]

GET: Ask = lambda client: client.get("/pets/1", Pet)  # noqa: E731
POST: Ask = lambda client: client.post("/pets", {"name": "Rex"}, Pet)  # noqa: E731
PATCH: Ask = lambda client: client.patch("/pets/1", {"status": None}, Pet)  # noqa: E731
DELETE: Ask = lambda client: client.delete("/pets/1")  # noqa: E731


class Setup:
    """A client that notes how long it would have slept, and the service it asks."""

    def __init__(self, service: OddService, clock: ManualClock) -> None:
        self.asked = service.asked
        self.url = f"{service.url}/v1"
        self.slept: list[float] = []
        self.client = Client(self.url, "the-key", self.slept.append, clock)

    def fail(self, ask: Ask) -> tuple[ExitStatus | int, str]:
        """Return how a request fails, without the address of the service."""
        with pytest.raises(Failure) as failure:
            ask(self.client)
        return failure.value.exit_code, failure.value.message.replace(self.url, "URL")


@pytest.fixture
def set_up(clock: ManualClock) -> Iterator[Callable[..., Setup]]:
    """Takes responses; returns a client of a service that sends them."""
    with ExitStack() as stack:
        yield lambda *responses: Setup(stack.enter_context(odd_service(*responses)), clock)


SetUp = Callable[..., Setup]


# Refusals


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ExitStatus.REFUSED),
        (401, ExitStatus.KEY),
        (403, ExitStatus.KEY),
        (404, ExitStatus.NOT_FOUND),
        (405, ExitStatus.FAILED),
        (409, ExitStatus.CONFLICT),
        (410, ExitStatus.NOT_FOUND),
        (412, ExitStatus.CONFLICT),
        (413, ExitStatus.REFUSED),
        (415, ExitStatus.FAILED),
        (422, ExitStatus.REFUSED),
        (500, ExitStatus.SERVICE),
        (501, ExitStatus.SERVICE),
    ],
)
@pytest.mark.parametrize("ask", [GET, POST, PATCH, DELETE])
def test_the_status_of_a_refusal_decides_the_exit_status(
    set_up: SetUp, ask: Ask, status: int, expected: ExitStatus
) -> None:
    setup = set_up(error(status, message="not so"))
    assert setup.fail(ask) == (expected, "not so")
    assert (len(setup.asked), setup.slept) == (1, [])


def test_the_page_of_the_commands_lists_what_a_refusal_ends_with(set_up: SetUp) -> None:
    page = (Path(__file__).parents[2] / "docs/client.md").read_text()
    rows = re.findall(r"^\| ([0-9]+) \| [^|]+ \| ([0-9, ]+) \|$", page, re.MULTILINE)
    listed = {int(status): int(row[0]) for row in rows for status in row[1].split(", ")}
    assert listed
    refusals = {status: set_up(error(status, Retry_After=601)).fail(GET)[0] for status in listed}
    assert refusals == listed


def test_an_address_past_the_interface_is_no_missing_resource(set_up: SetUp) -> None:
    past = response(404, {"code": "not_found", "message": "there is nothing here", "status": 404})
    setup = set_up(past)
    exit_status, words = setup.fail(GET)
    assert exit_status == ExitStatus.SERVICE
    assert words.endswith("responds with 404, not as a Petstore service does: check --url")


def test_an_animal_that_cannot_be_ordered_because_it_is_not_there_is_not_found(
    set_up: SetUp,
) -> None:
    assert set_up(error(400, code="unknown_pet")).fail(POST)[0] == ExitStatus.NOT_FOUND


def test_a_fault_of_the_service_names_the_request_for_its_operator(set_up: SetUp) -> None:
    setup = set_up(error(500, message="it broke", X_Request_Id="r-17"))
    assert setup.fail(GET) == (ExitStatus.SERVICE, "it broke (request r-17)")


def test_a_refusal_cannot_steer_the_terminal(set_up: SetUp) -> None:
    setup = set_up(error(400, message="\x1b[2Jgone\n\u202eback"))
    assert setup.fail(GET) == (ExitStatus.REFUSED, r"\x1b[2Jgone\n\u202eback")


@pytest.mark.parametrize(
    "odd",
    [
        response(200, b"<html>Welcome</html>"),
        response(200, b""),
        response(200, b"\xff"),
        response(200, b"[" * 100_000),
        response(200, [REX]),
        response(200, None),
        response(200, {"id": "1", "name": "Rex"}),
        response(200, {"id": 1}),
    ],
)
def test_a_response_that_is_no_resource_is_reported(set_up: SetUp, odd: bytes) -> None:
    assert set_up(odd).fail(GET) == (
        ExitStatus.SERVICE,
        "URL responds with 200, not as a Petstore service does: check --url",
    )


@pytest.mark.parametrize("status", [400, 401, 404, 409, 500])
def test_an_error_that_is_not_of_the_service_is_not_taken_for_one(
    set_up: SetUp, status: int
) -> None:
    """An nginx that knows no such path does not mean that there is no such animal."""
    assert set_up(response(status, b"<html>nginx</html>")).fail(GET) == (
        ExitStatus.SERVICE,
        f"URL responds with {status}, not as a Petstore service does: check --url",
    )


def test_a_deletion_whose_response_is_a_page_was_not_done(set_up: SetUp) -> None:
    assert set_up(response(200, b"<html>")).fail(DELETE) == (
        ExitStatus.SERVICE,
        "URL responds with 200, not as a Petstore service does: check --url",
    )


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_reported_and_not_followed(set_up: SetUp, status: int) -> None:
    setup = set_up(response(status, b"", Location="https://elsewhere.example/"), CREATED)
    assert setup.fail(GET) == (
        ExitStatus.SERVICE,
        "URL redirects to https://elsewhere.example/, not as a Petstore service does: check --url",
    )
    assert len(setup.asked) == 1


def test_nobody_there_is_said_at_once(clock: ManualClock) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    slept: list[float] = []
    with pytest.raises(Failure) as failure:
        GET(Client(url, "the-key", slept.append, clock))
    assert failure.value.exit_code == ExitStatus.SERVICE
    assert failure.value.message == f"cannot reach {url}: Connection refused"
    assert slept == []


def test_a_host_that_can_be_none_is_said_to_be_out_of_reach(clock: ManualClock) -> None:
    with pytest.raises(Failure, match=r"^cannot reach http://a\.\.b/v1: .*a\.\.b") as failure:
        GET(Client("http://a..b/v1", "the-key", clock=clock))
    assert failure.value.exit_code == ExitStatus.SERVICE


# What it sends


def test_a_request_carries_the_key_and_its_body_as_json(set_up: SetUp) -> None:
    setup = set_up(CREATED)
    assert POST(setup.client) == REX
    (asked,) = setup.asked
    assert (asked.method, asked.target) == ("POST", "/v1/pets")
    assert asked.fields["authorization"] == "Bearer the-key"
    assert asked.fields["content-type"] == "application/json"
    assert json.loads(asked.body) == {"name": "Rex"}


def test_a_change_may_take_a_value_away(set_up: SetUp) -> None:
    setup = set_up(response(200, REX))
    assert PATCH(setup.client) == REX
    assert (setup.asked[0].method, json.loads(setup.asked[0].body)) == ("PATCH", {"status": None})


def test_a_deletion_has_no_response_body(set_up: SetUp) -> None:
    setup = set_up(response(204, b""))
    DELETE(setup.client)
    assert (setup.asked[0].method, setup.asked[0].body) == ("DELETE", b"")


def test_members_that_are_news_to_it_are_passed_on(set_up: SetUp) -> None:
    assert GET(set_up(response(200, REX | {"colour": "red"})).client) == REX | {"colour": "red"}


def test_every_creation_has_a_key_of_its_own_and_nothing_else_has_one(set_up: SetUp) -> None:
    setup = set_up(CREATED, CREATED, CREATED, CREATED, response(204, b""))
    for ask in (POST, POST, GET, PATCH, DELETE):
        ask(setup.client)
    first, second, *others = [asked.fields.get("idempotency-key") for asked in setup.asked]
    assert first is not None
    assert second is not None
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first)
    assert first != second
    assert others == [None, None, None]


# Pages


def page(*ids: int, following: str = "") -> bytes:
    pets = [{"id": pet_id, "name": "x"} for pet_id in ids]
    return response(200, pets, **({"Link": following} if following else {}))


def find(client: Client, limit: int | None) -> tuple[list[int], bool]:
    query = [("status", "sold"), ("id", 1), ("id", 2)]
    found, is_more = client.find("/pets", Pet, query, limit)
    return [pet["id"] for pet in found], is_more


@pytest.mark.parametrize("link", ['<http://[::1?cursor=a>; rel="next"', '<?\xff \t>; rel="next"'])
def test_a_link_is_no_more_than_its_query(set_up: SetUp, link: str) -> None:
    assert find(set_up(page(1, following=link), page(2)).client, None) == ([1, 2], False)


def test_a_limited_list_is_one_page(set_up: SetUp) -> None:
    setup = set_up(page(1, 2, following='</v1/pets?cursor=x>; rel="next"'))
    assert find(setup.client, 2) == ([1, 2], True)
    assert setup.asked[0].target == "/v1/pets?status=sold&id=1&id=2&limit=2"


@pytest.mark.parametrize("last", [(3,), (3, 4)])
def test_a_short_page_is_followed_until_the_limit(set_up: SetUp, last: tuple[int, ...]) -> None:
    setup = set_up(
        page(1, 2, following='</v1/pets?limit=3&cursor=a>; rel="next"'),
        page(following='</v1/pets?limit=3&cursor=b>; rel="next"'),
        page(*last),
    )
    assert find(setup.client, 3) == ([1, 2, 3], len(last) > 1)
    assert len(setup.asked) == 3


def test_a_list_without_a_next_page_is_all_there_is(set_up: SetUp) -> None:
    setup = set_up(page(1, 2, following='</v1/pets>; rel="first"'))
    assert find(setup.client, 7) == ([1, 2], False)


def test_an_unlimited_list_follows_the_pages_to_the_last(set_up: SetUp) -> None:
    setup = set_up(
        page(1, following='</v1/pets?limit=100&cursor=a>; rel="next"'),
        page(2, following='</x>; rel="first", <?limit=100&cursor=b> ;  rel="next"'),
        page(3),
    )
    assert find(setup.client, None) == ([1, 2, 3], False)
    assert [asked.target for asked in setup.asked] == [
        "/v1/pets?status=sold&id=1&id=2&limit=100",
        "/v1/pets?limit=100&cursor=a",
        "/v1/pets?limit=100&cursor=b",
    ]


def test_the_key_does_not_follow_a_link_to_another_host(set_up: SetUp) -> None:
    with odd_service(page(2)) as other:
        setup = set_up(page(1, following=f'<{other.url}/v1/pets?cursor=a>; rel="next"'), page(3))
        assert find(setup.client, None) == ([1, 3], False)
    assert other.asked == []


# Waiting


LIMIT = "the limit is reached"


@pytest.mark.parametrize("ask", [GET, POST, PATCH, DELETE])
def test_a_limit_is_waited_out_as_long_as_the_service_says(
    set_up: SetUp, capsys: pytest.CaptureFixture[str], ask: Ask
) -> None:
    last = response(204, b"") if ask is DELETE else CREATED
    setup = set_up(error(429, Retry_After=41), error(429, Retry_After=2), last)
    ask(setup.client)
    assert setup.slept == [41, 2]
    assert capsys.readouterr().err == (
        "The limit is reached. Trying again in 41 s.\nThe limit is reached. Trying again in 2 s.\n"
    )
    first, second, third = setup.asked
    assert first == second == third


@pytest.mark.parametrize("said", [{}, {"Retry_After": "soon"}, {"Retry_After": "0"}])
def test_a_limit_without_a_time_is_waited_out_for_a_minute(
    set_up: SetUp, said: dict[str, str]
) -> None:
    setup = set_up(response(429, b"slow down", **said), CREATED)
    assert GET(setup.client) == REX
    assert setup.slept == [60]


@pytest.mark.parametrize(
    ("seconds", "until"), [(601, "2026-12-01T12:10:01Z"), (43200, "2026-12-02T00:00:00Z")]
)
def test_a_limit_that_lasts_too_long_is_said_to_with_its_end(
    set_up: SetUp, seconds: int, until: str
) -> None:
    setup = set_up(error(429, message=LIMIT, Retry_After=seconds))
    assert setup.fail(GET) == (ExitStatus.LIMIT, f"{LIMIT}, until {until}")
    assert setup.slept == []


def test_waits_together_are_no_longer_than_ten_minutes(set_up: SetUp) -> None:
    setup = set_up(*(error(429, message=LIMIT, Retry_After=200) for _ in range(4)))
    assert setup.fail(GET) == (ExitStatus.LIMIT, f"{LIMIT}, until 2026-12-01T12:03:20Z")
    assert setup.slept == [200, 200, 200]


def test_a_ban_is_called_one(set_up: SetUp, capsys: pytest.CaptureFixture[str]) -> None:
    setup = set_up(error(429, "api_key_banned", Retry_After=300), CREATED)
    assert GET(setup.client) == REX
    assert capsys.readouterr().err == "The key is banned. Trying again in 300 s.\n"


@pytest.mark.parametrize("ask", [GET, POST])
@pytest.mark.parametrize("fault", [HANG_UP, response(502, b"<html>"), error(503), error(504)])
def test_a_request_that_may_be_repeated_is_retried_after_a_fault(
    set_up: SetUp, ask: Ask, fault: bytes
) -> None:
    setup = set_up(fault, fault, fault, CREATED)
    assert ask(setup.client) == REX
    assert setup.slept == [1, 2, 4]
    assert all(asked == setup.asked[0] for asked in setup.asked)


def test_a_service_that_says_when_it_is_back_is_waited_for(
    set_up: SetUp, capsys: pytest.CaptureFixture[str]
) -> None:
    setup = set_up(error(503, Retry_After=30), CREATED)
    assert POST(setup.client) == REX
    assert setup.slept == [30]
    assert capsys.readouterr().err == "The service is not available. Trying again in 30 s.\n"


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxy_that_says_the_service_is_away_is_no_wrong_address(
    set_up: SetUp, status: int
) -> None:
    setup = set_up(*[response(status, b"<html>nginx</html>")] * 4)
    words = f"URL is not available now: it responds with {status}"
    assert setup.fail(GET) == (ExitStatus.SERVICE, words)
    assert setup.slept == [1, 2, 4]


def test_a_service_that_is_away_too_long_is_not_waited_for(set_up: SetUp) -> None:
    setup = set_up(error(503, message="repairs", Retry_After=3600))
    assert setup.fail(POST) == (ExitStatus.SERVICE, "repairs")
    assert setup.slept == []


def test_a_first_try_that_is_still_under_way_is_waited_for(set_up: SetUp) -> None:
    setup = set_up(HANG_UP, error(409, "idempotency_key_in_use"), CREATED)
    assert POST(setup.client) == REX
    assert setup.slept == [1, 2]


def test_a_service_that_is_just_starting_again_is_waited_for(
    set_up: SetUp, capsys: pytest.CaptureFixture[str]
) -> None:
    setup = set_up(HANG_UP)
    assert setup.fail(GET) == (ExitStatus.SERVICE, "cannot reach URL: Connection refused")
    assert capsys.readouterr().err == (
        "The service sent no response. Trying again in 1 s.\n"
        "The service cannot be reached. Trying again in 2 s.\n"
        "The service cannot be reached. Trying again in 4 s.\n"
    )


@pytest.mark.parametrize(("ask", "more"), [(GET, ""), (POST, UNKNOWN)])
@pytest.mark.parametrize("odd", [HANG_UP, b"SSH-2.0-OpenSSH\r\n"])
def test_a_connection_that_is_lost_again_and_again_is_given_up(
    set_up: SetUp, ask: Ask, more: str, odd: bytes
) -> None:
    setup = set_up(odd, odd, odd, odd)
    words = f"URL broke the connection off, or does not speak HTTP{more}"
    assert setup.fail(ask) == (ExitStatus.SERVICE, words)
    assert len(setup.asked) == 4


def test_an_incomplete_response_is_no_response(set_up: SetUp) -> None:
    setup = set_up(CREATED[:-3], CREATED)
    assert GET(setup.client) == REX
    assert setup.slept == [1]


@pytest.mark.parametrize("ask", [PATCH, DELETE])
def test_a_service_that_does_not_respond_is_given_up(ask: Ask) -> None:
    with odd_service(SILENCE) as service:
        client = Client(f"{service.url}/v1", "the-key", read_seconds=0.05)
        with pytest.raises(Failure) as failure:
            ask(client)
    assert failure.value.exit_code == ExitStatus.SERVICE
    assert failure.value.message == f"{service.url}/v1 did not respond in time{UNKNOWN}"


@pytest.mark.parametrize("ask", [PATCH, DELETE])
def test_a_change_is_not_sent_again_when_it_may_have_been_done(set_up: SetUp, ask: Ask) -> None:
    setup = set_up(HANG_UP, CREATED)
    words = f"URL broke the connection off, or does not speak HTTP{UNKNOWN}"
    assert setup.fail(ask) == (ExitStatus.SERVICE, words)
    assert len(setup.asked) == 1


def test_an_interrupted_wait_ends_as_an_interrupted_program_does(clock: ManualClock) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    with odd_service(error(429, Retry_After=41)) as service:
        client = Client(f"{service.url}/v1", "the-key", interrupted, clock)
        with pytest.raises(click.exceptions.Exit) as ended:
            GET(client)
    assert ended.value.exit_code == 130


def test_an_endless_response_is_not_read(set_up: SetUp) -> None:
    exit_status, words = set_up(response(200, b" " * (17 * 1024 * 1024))).fail(GET)
    assert exit_status == ExitStatus.SERVICE
    assert "not as a Petstore service does" in words


def test_a_page_that_leads_to_itself_ends_the_walk(set_up: SetUp) -> None:
    page = response(200, [], Link='</v1/pets?limit=100&cursor=x>; rel="next"')
    setup = set_up(page, page, page)
    exit_status, _ = setup.fail(lambda client: client.find("/pets", dict, [], None))
    assert exit_status == ExitStatus.SERVICE
    assert len(setup.asked) == 2


def test_a_link_that_takes_long_to_look_through_by_a_careless_search_does_not(
    set_up: SetUp,
) -> None:
    page = response(200, [], Link="<" * 60_000)
    assert set_up(page).client.find("/pets", dict, [], None) == ([], False)


# A feed


def feed(*ids: int, cursor: str) -> bytes:
    return page(*ids, following=f'</v1/events?type=a&cursor={cursor}>; rel="next"')


def follow(setup: Setup, pages: int, cursor: str | None = "latest") -> list[list[int]]:
    """Return the ids on the first pages of a feed."""
    followed = setup.client.follow("/events", Pet, [("type", "a")], cursor)
    return [[pet["id"] for pet in found] for found in islice(followed, pages)]


def test_a_feed_at_an_address_that_never_responded_fails_at_once(clock: ManualClock) -> None:
    client = Client(f"http://127.0.0.1:{free_port()}/v1", "the-key", clock=clock)
    with pytest.raises(Failure, match="cannot reach"):
        next(client.follow("/events", Pet, [], None))


@pytest.mark.parametrize("link", ["", '</v1/events>; rel="next"', '<?cursor=>; rel="next"'])
def test_a_feed_that_does_not_say_where_it_goes_on_is_no_feed(set_up: SetUp, link: str) -> None:
    setup = set_up(page(1, following=link))
    exit_status, words = setup.fail(
        lambda client: list(islice(client.follow("/events", Pet, [], None), 2))
    )
    assert exit_status == ExitStatus.SERVICE
    assert "not as a Petstore service does" in words


def test_a_refusal_ends_a_feed(set_up: SetUp) -> None:
    setup = set_up(feed(1, cursor="a"), error(410, "cursor_expired"))
    with pytest.raises(Failure) as failure:
        follow(setup, 2)
    assert failure.value.code == "cursor_expired"
    assert setup.slept == []


def test_a_feed_is_followed_by_long_poll_from_cursor_to_cursor(set_up: SetUp) -> None:
    setup = set_up(feed(cursor="a"), feed(1, 2, cursor="b"), feed(3, cursor="c"))
    assert follow(setup, 3) == [[], [1, 2], [3]]
    assert [asked.target for asked in setup.asked] == [
        "/v1/events?type=a&limit=100&cursor=latest",
        "/v1/events?type=a&limit=100&wait=25&cursor=a",
        "/v1/events?type=a&limit=100&wait=25&cursor=b",
    ]
    assert setup.slept == []


def test_a_feed_without_a_cursor_begins_with_the_oldest(set_up: SetUp) -> None:
    setup = set_up(feed(1, cursor="a"))
    assert follow(setup, 1, cursor=None) == [[1]]
    assert setup.asked[0].target == "/v1/events?type=a&limit=100"


def test_a_feed_waits_for_a_service_that_is_away_and_says_so_once(
    set_up: SetUp, capsys: pytest.CaptureFixture[str]
) -> None:
    away = (HANG_UP, error(503, Retry_After=30), response(502, b"<html>"), error(429))
    setup = set_up(feed(1, cursor="a"), *away, *[HANG_UP] * 2, feed(2, cursor="b"))
    assert follow(setup, 2) == [[1], [2]]
    assert setup.slept == [1, 30, 4, 60, 8, 8]
    assert capsys.readouterr().err == (
        "The service sent no response. Waiting for the service.\nGoing on.\n"
    )
    assert {asked.target for asked in setup.asked[1:]} == {
        "/v1/events?type=a&limit=100&wait=25&cursor=a"
    }


def test_a_feed_waits_for_a_limit_however_long_it_lasts(
    set_up: SetUp, capsys: pytest.CaptureFixture[str]
) -> None:
    reached = error(429, message=LIMIT, Retry_After=43200)
    setup = set_up(feed(1, cursor="a"), reached, feed(2, cursor="b"))
    assert follow(setup, 2) == [[1], [2]]
    assert setup.slept == [43200]
    assert capsys.readouterr().err == "The limit is reached. Waiting 43200 s.\nGoing on.\n"


def test_a_feed_that_ends_every_wait_at_once_is_not_asked_without_a_pause(set_up: SetUp) -> None:
    setup = set_up(feed(cursor="a"), feed(cursor="a"), feed(cursor="a"), feed(cursor="b"))
    assert follow(setup, 4) == [[], [], [], []]
    assert setup.slept == [1, 1]
