"""The methods that are not made from the table of operations: ``pets.get`` and the events."""

from collections.abc import Callable, Iterable

from msgspec import convert

from petstore_client import events
from petstore_client._calls import (
    UNDECODABLE,
    Call,
    Listing,
    Reply,
    Response,
    into,
    number,
    only,
    parameters,
)
from petstore_client._faces import D, Resource, listing, operation
from petstore_client.models import Event, EventType, Pet

_LONG_POLL_SECONDS = 25
_decode: Callable[[Reply], list[Event]] = into(list[Event])
_BY_TYPE: dict[str, type[Event]] = {
    kind.__annotations__["type"].__args__[0]: kind
    for kind in Event.__subclasses__()
    if kind.__module__ == events.__name__
}


def typed(event: Event) -> Event:
    """Return an event as the class of its type; one of an unknown type stays as it is.

    Raises:
        ValidationError: its data is not that of its type.
    """
    kind = _BY_TYPE.get(event.type)
    return event if kind is None else convert(event, kind, from_attributes=True)


class PetById(Resource[D]):
    """One pet, by the list of pets: the operation ``getPet`` is deprecated."""

    @operation
    def get(self, pet_id: int) -> Call[Pet]:
        """Return a pet.

        Raises:
            NotFound: there is none with this id.
        """
        query = parameters(id=number("pet_id", pet_id))
        return Call("GET /pets", "GET", "/pets", only(Pet, f"pet {pet_id}"), query)


class EventFeed(Resource[D]):
    """The feed of events, which can be listed until now, and followed for ever."""

    @listing
    def list(
        self,
        *,
        types: Iterable[EventType] | None = None,
        resource: str | None = None,
        actor: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait: int | None = None,
    ) -> Listing[Event]:
        """Iterate over the events until now, oldest first, each as the class of its type.

        With a ``resource``, such as ``pet/17``, these are the events of that resource, and with an
        ``actor``, such as ``key/3``, what that did. ``sort="-sequence"`` is newest first. It begins
        with the oldest event that is kept, or at a ``cursor``: that of an earlier page, or
        ``latest``, which is behind the newest event. The ``cursor`` of the last page is where to go
        on later. ``wait`` is how many seconds to wait for an event if there is none, up to 25.
        """
        filters = parameters(type=types, resource=resource, actor=actor, sort=sort)
        place = parameters(limit=limit, wait=wait, cursor=cursor)
        return Listing("/events", _events, filters + place)

    @operation
    def latest(self) -> Call[str]:
        """Return the cursor behind the newest event.

        Get it before you read the lists of the store. Then ``follow`` from it, and you have all
        that happens after.
        """
        query = parameters(cursor="latest", limit=1)
        return Call("GET /events", "GET", "/events", _cursor, query)

    @listing
    def follow(
        self,
        *,
        cursor: str | None = None,
        types: Iterable[EventType] | None = None,
        resource: str | None = None,
        limit: int | None = None,
    ) -> Listing[Event]:
        """Iterate over events as they happen, for ever, each as the class of its type.

        It begins with the oldest event that is kept, or at a ``cursor``: that of an earlier stream,
        or ``latest``. With a ``resource``, such as ``pet/17``, it has the events of that one. Once
        the service has responded, it waits for it whenever it is away, however long that takes, and
        misses and repeats nothing.

        Raises:
            CursorExpired: the events behind the cursor are not kept any more.
        """
        query = parameters(type=types, resource=resource, limit=limit, cursor=cursor)
        return Listing("/events", _events, query, _LONG_POLL_SECONDS)


def _events(reply: Reply) -> list[Event]:
    """Return the events of a page."""
    try:
        return [typed(event) for event in _decode(reply)]
    except UNDECODABLE as error:
        raise reply.unexpected(str(error)) from error


def _cursor(reply: Reply) -> str:
    """Return the cursor behind a page."""
    cursor = Listing("/events", _events).page(Response(**vars(reply), value=[])).cursor
    if cursor is None:
        msg = "it has no link to what follows"
        raise reply.unexpected(msg)
    return cursor
