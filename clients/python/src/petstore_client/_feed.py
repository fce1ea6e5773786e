"""The feed of events, and events as the classes of their types."""

from dataclasses import dataclass

from msgspec import convert

from petstore_client._calls import UNDECODABLE, Call, Listing, Page, Reply, unexpected
from petstore_client.events import BY_TYPE
from petstore_client.models import Event


def typed(event: Event) -> Event:
    """Return an event as the class of its type; one of an unknown type stays as it is.

    Raises:
        ValidationError: its data is not that of its type.
    """
    kind = BY_TYPE.get(event.type)
    return event if kind is None else convert(event, kind, from_attributes=True)


@dataclass(frozen=True)
class Feed(Listing[Event]):
    """The feed of events. It has no last page: it ends, for now, where a page leads to itself."""

    def decode(self, reply: Reply) -> list[Event]:
        """Return the events of a page."""
        events = super().decode(reply)
        try:
            return [typed(event) for event in events]
        except UNDECODABLE as error:
            raise unexpected(reply, str(error)) from error

    def after(self, call: Call[list[Event]], page: Page[Event]) -> Call[list[Event]] | None:
        """Return the call of the page after the one that ``call`` got, ``None`` at the end."""
        return None if ("cursor", page.cursor) in call.query else super().after(call, page)
