"""The page of a key's owner: what the key has used, what it may use, and its rotation."""

from collections.abc import Container, Sequence
from datetime import UTC, date, datetime
from http import HTTPStatus

from petstore.clock import DAY, utc, utc_second
from petstore.console.charts import ChartPart, Meter, Tone, bars, meter, stacked
from petstore.console.forms import problem_of
from petstore.console.page import ConsolePage, PageRequest, operation_in_words
from petstore.console.rotation import GRACES, rotate
from petstore.console.scopes import scopes_in_words
from petstore.domain.plans import UNLIMITED
from petstore.errors import PetstoreError
from petstore.http.messages import Response
from petstore.usage.operations import Usage, UsageWindow, list_statuses

_ENDS_SOON = 14 * DAY
_TOO_MANY = HTTPStatus.TOO_MANY_REQUESTS
_RESULTS: Sequence[tuple[str, Tone, Container[int]]] = (
    ("successful", "good", range(200, 300)),
    ("not changed since", "done", range(300, 400)),
    ("refused", "plain", {*range(400, 500)} - {_TOO_MANY}),
    ("too many requests", "wait", {_TOO_MANY}),
    ("failed here", "bad", range(500, 600)),
)


async def _rotate(visit: PageRequest) -> Response:
    return await rotate(visit, "rotateCurrentKey", "/usage")


async def _show(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    services, own = visit.services, visit.caller
    usage: Usage = (await visit.execute("getUsage")).value
    now = services.clock()
    statuses = await list_statuses(services, own.id)
    parts = [
        ChartPart(label, sum(each.requests for each in statuses if each.status in among), tone)
        for label, tone, among in _RESULTS
    ]
    days = [(_short(day.date), day.requests) for day in usage.days]
    return visit.page(
        "usage.html",
        error=error,
        problem=None if error is None else problem_of(error),
        usage=usage,
        now=utc(now),
        key=own,
        created_at=utc_second(own.created_at),
        # The end of the token of the session, which a rotation may have set.
        ends_at=None if own.expires_at is None else utc_second(own.expires_at),
        ends_soon=own.end - now <= _ENDS_SOON,
        may_do=scopes_in_words(own.scopes),
        windows=[_window("This minute", usage.minute), _window("Today", usage.day)],
        days=bars("days", "Requests on each of the last 30 days", "requests", "Day", days),
        responses=stacked("responses", "Responses", "requests", "Result", parts),
        statuses=statuses,
        too_many=next((each for each in statuses if each.status == _TOO_MANY), None),
        operation_in_words=operation_in_words,
        graces=GRACES,
    )


def _short(day: date) -> str:
    return f"{day.day} {day:%b}"


def _window(label: str, window: UsageWindow) -> tuple[Meter, datetime]:
    limit = None if window.limit == UNLIMITED else window.limit
    used = window.limit - window.remaining
    return meter(label, used, limit), datetime.fromtimestamp(window.reset, UTC)


PAGES = (
    ConsolePage("GET", "/usage", _show, "getUsage"),
    ConsolePage("POST", "/usage/rotate", _rotate, "rotateCurrentKey", _show),
)
