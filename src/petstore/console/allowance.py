"""What files cost of the limits of a key: rows count like requests."""

from typing import NamedTuple

from petstore.clock import DAY, SECOND, Milliseconds
from petstore.console.page import PageRequest
from petstore.domain.plans import UNLIMITED

ROWS_A_REQUEST = 100
"""How many rows of a download cost a request, as many as a list has at most."""


class Allowance(NamedTuple):
    """What a key may still import and download before ``ends_at``.

    ``requests`` is ``None`` if its day has no limit. It is 0 during a ban.
    """

    requests: int | None
    ends_at: Milliseconds
    is_banned: bool = False


async def allowance_of(visit: PageRequest) -> Allowance:
    """Return what the key of a visit has left, charging nothing."""
    decision = await visit.services.limiter.look(visit.caller)
    if decision.verdict == "banned":
        return Allowance(0, decision.described.reset * SECOND, is_banned=True)
    is_unlimited = decision.limits.per_day == UNLIMITED
    return Allowance(
        None if is_unlimited else decision.day.remaining, (decision.day_number + 1) * DAY
    )


async def affordable(visit: PageRequest, requests: int) -> int:
    """Return how many of so many requests the key of a visit has left."""
    left = (await allowance_of(visit)).requests
    return requests if left is None else min(requests, left)


async def charge(visit: PageRequest, requests: int) -> bool:
    """Charge so many requests, and return whether the key of a visit had them left.

    HEAD gets no file, and is charged nothing.
    """
    if visit.is_head:
        left = (await allowance_of(visit)).requests
        return left is None or left >= requests
    decision = await visit.services.limiter.charge(visit.caller, requests)
    return decision.verdict == "admitted"


def requests_for(rows: int) -> int:
    """Return how many requests the download of so many rows costs."""
    return -(-rows // ROWS_A_REQUEST)
