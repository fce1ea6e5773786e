"""The feed of events, and events as the classes of their types."""

from dataclasses import dataclass

from msgspec import convert

from petstore_client._calls import UNDECODABLE, Call, Listing, Page, Reply, Response, unexpected
from petstore_client._links import link_to
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
    """The feed of events. Every page has a ``cursor``: on the last one, where to go on later."""

    def decode(self, reply: Reply) -> list[Event]:
        """Return the events of a page."""
        events = super().decode(reply)
        try:
            return [typed(event) for event in events]
        except UNDECODABLE as error:
            raise unexpected(reply, str(error)) from error

    def link(self, response: Response[list[Event]]) -> str | None:
        """Return the link to the next page, else to what comes later."""
        return super().link(response) or link_to("latest", response.headers)

    def after(self, call: Call[list[Event]], page: Page[Event]) -> Call[list[Event]] | None:
        """Return the call of the page after the one that ``call`` got, ``None`` at the end."""
        return super().after(call, page) if super().link(page.response) else None
