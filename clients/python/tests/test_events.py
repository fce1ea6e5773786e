"""The feed of events, followed through all that happens to a service."""

from typing import Any

import msgspec
import pytest

from petstore.events.model import EVENT_TYPES, EventType
from petstore.interface.openapi.events import example_of
from petstore_client import NoResponse, PetstoreError, UnexpectedResponse, errors, events, models
from support.client_faces import Face, SleepingClock, each_face, each_of, with_threads
from support.odd_service import HANG_UP, error, odd_service, response

EVENT = example_of("pet.created")
LATEST = '</v1/events?cursor={0}>; rel="latest"'


def page(cursor: str | None, *ids: str, form: str = LATEST) -> bytes:
    found = [{**EVENT, "id": each} for each in ids]
    links = {} if cursor is None else {"Link": form.format(cursor)}
    return response(200, found, X_RateLimit_Limit=60, **links)


class Followed:
    """The ids of the first events of a stream, each with the cursor to go on from after it."""

    def __init__(self, count: int, **options: Any) -> None:
        self.count = count
        self.options = options
        self.seen: list[tuple[str, str | None]] = []

    def __call__(self, client: Any) -> Any:
        self.stream = client.events.follow(**self.options)
        return each_of(self.stream, self._note)

    def _note(self, event: models.Event) -> bool:
        self.seen.append((event.id, self.stream.cursor))
        return len(self.seen) == self.count


@each_face
def test_events_are_yielded_one_by_one_and_the_cursor_follows_a_complete_page(face: Face) -> None:
    followed = Followed(3, cursor="latest", types=["pet.created", "pet.deleted"])
    with odd_service(page("b"), page("c", "1", "2"), page("d", "3")) as service:
        face(service.url, followed)
    assert followed.seen == [("1", "b"), ("2", "c"), ("3", "d")]
    types = "type=pet.created&type=pet.deleted"
    assert [asked.target for asked in service.asked] == [
        f"/v1/events?{types}&cursor=latest&limit=100",
        f"/v1/events?{types}&limit=100&wait=25&cursor=b",
        f"/v1/events?{types}&limit=100&wait=25&cursor=c",
    ]


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_each_type_of_event_has_a_class(event_type: EventType) -> None:
    example = example_of(event_type)
    with odd_service(response(200, [example])) as service:
        (event,) = with_threads(service.url, lambda client: client.events.list())
    name = event_type.replace(".", "_").title().replace("_", "")
    assert type(event) is getattr(events, name)
    assert event.type == event_type
    kind = getattr(models, event_type.partition(".")[0].title(), dict)
    if "keyId" in example["data"]:
        kind = dict
    assert type(event.data) is kind
    assert event.data == msgspec.convert(example["data"], kind)
    assert event.previous == example.get("previous")


@each_face
def test_an_event_of_a_type_that_a_later_service_adds_is_a_plain_event(face: Face) -> None:
    later = EVENT | {"type": "pet.vaccinated", "data": {"id": 7, "against": "rabies"}}
    with odd_service(response(200, [later, EVENT])) as service:
        plain, known = face(service.url, lambda c: c.events.list())
    assert type(plain) is models.Event
    assert (plain.type, plain.data) == ("pet.vaccinated", {"id": 7, "against": "rabies"})
    assert isinstance(known, events.PetCreated)


@each_face
def test_the_cursor_behind_the_newest_event_costs_one_request(face: Face) -> None:
    with odd_service(page("b")) as service:
        assert face(service.url, lambda c: c.events.latest()) == "b"
    assert service.asked[0].target == "/v1/events?cursor=latest&limit=1"
    with odd_service(page(None)) as service, pytest.raises(UnexpectedResponse, match="no link"):
        face(service.url, lambda c: c.events.latest())


@each_face
def test_events_can_be_read_in_pages_and_some_are_empty(face: Face) -> None:
    seen: list[tuple[list[str], str | None]] = []

    def use(client: Any) -> Any:
        stream = client.events.follow()

        def note(found: Any) -> bool:
            seen.append(([event.id for event in found], stream.cursor))
            return len(seen) == 3

        return each_of(stream.pages(), note)

    with odd_service(page("b", "1", "2"), page("b"), page("c", "3")) as service:
        face(service.url, use)
    assert seen == [(["1", "2"], None), ([], "b"), (["3"], "b")]


@each_face
def test_the_stream_waits_for_a_service_that_is_down(face: Face) -> None:
    followed, clock = Followed(2, limit=5), SleepingClock()
    away = [HANG_UP, HANG_UP, error(502), error(503, Retry_After=200), error(429, Retry_After=300)]
    with odd_service(page("b", "1"), *away, page("c", "2")) as service:
        face(service.url, followed, clock, max_retries=0)
    assert followed.seen == [("1", "b"), ("2", "c")]
    assert len({asked.target for asked in service.asked[1:]}) == 1
    assert [each for each in clock.sleeps if each] == [1, 2, 4, 200, 300]


@each_face
def test_a_service_that_ends_every_long_poll_at_once_is_not_flooded(face: Face) -> None:
    clock = SleepingClock()
    with odd_service(page("b"), page("b"), page("b"), page("c", "1")) as service:
        face(service.url, Followed(1), clock)
    assert sum(clock.sleeps) >= 2


@pytest.mark.parametrize(
    ("responses", "kind"),
    [
        ([HANG_UP] * 3, NoResponse),  # it has never responded
        ([page("b"), error(410, "cursor_expired")], errors.CursorExpired),
        ([page("b"), error(401, "invalid_api_key")], errors.Unauthorized),
        ([page("b"), error(500, "internal_error")], errors.ServerError),
        ([page(None)], UnexpectedResponse),
        ([page("b", "1"), page("b", "2")], UnexpectedResponse),  # it leads back to itself
    ],
)
@each_face
def test_what_does_not_pass_ends_the_stream(
    face: Face, responses: list[bytes], kind: type[PetstoreError]
) -> None:
    with odd_service(*responses) as service, pytest.raises(kind):
        face(service.url, Followed(3))


@each_face
def test_a_list_that_links_to_itself_ends_in_an_error(face: Face) -> None:
    again = response(200, [], Link='</v1/pets?cursor=b>; rel="next"')
    with odd_service(again, again) as service, pytest.raises(UnexpectedResponse, match="same page"):
        face(service.url, lambda c: c.pets.list())


@pytest.mark.parametrize(
    "form",
    [
        f'</v1/events?cursor={{0}}>; rel="next", {LATEST}',
        "<https://elsewhere.example/v1/events?limit=1&cursor={}>; rel=next",
        '</docs>; rel="help", </v1/events?cursor={}>; title="x"; rel="prev next"',
    ],
)
@each_face
def test_a_list_ends_without_a_next_link_of_which_only_the_cursor_is_used(
    face: Face, form: str
) -> None:
    pages = page("b", "1", form=form), page("c", form=form), page("d", "2")
    with odd_service(*pages) as service:
        listed = face(service.url, lambda c: c.events.list())
    assert [event.id for event in listed] == ["1", "2"]
    _, *more = (asked.target for asked in service.asked)  # and none asks another host
    assert more == [f"/v1/events?limit=100&cursor={cursor}" for cursor in "bc"]
