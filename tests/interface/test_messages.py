"""What responses have in common: the coding of their content and the headers of limits."""

import io
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from petstore.app import create_app
from petstore.backends import database_of
from petstore.clock import DAY, SECOND, utc_second
from petstore.domain.plans import UNLIMITED, Limits
from petstore.http.messages import Request
from petstore.interface.messages import limit_reached, rate_limit_headers, takes_gzip
from petstore.keys.store import get_key
from petstore.limits.admission import KEY
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import NEVER, Decision
from petstore.logs import RequestLog
from petstore.settings import Settings
from support.cases import case
from support.keys import issue
from support.manual_clock import ManualClock
from support.redis_limiters import TimedClient, redis_limiter
from support.redis_server import RedisServer
from support.service import InProcess, Service, running_service

pytestmark = pytest.mark.anyio


ACCEPTED = {
    False: (
        *(None, "", "identity", "br", "gzip;q=0", "gzip;q=0.000, zstd; q=0", "*;q=0"),
        *("*, gzip;q=0", "gzip;level=9", "gzip zstd", "gz\xefp", ";q=1"),
    ),
    True: (
        *("gzip", "GZip", "gzip, deflate, br, zstd", "gzip;q=1.0, zstd;q=0.8", "*"),
        *("gzip ; Q=0.001", "zstd;q=0, *;q=0.5", ", gzip,,", "nonsense;, gzip"),
    ),
}


def test_a_client_gets_gzip_unless_it_does_not_name_or_refuses_it() -> None:
    for is_taken, accepted in ((each, it) for each, group in ACCEPTED.items() for it in group):
        with case(accepted):
            fields = {} if accepted is None else {b"accept-encoding": accepted.encode("latin-1")}
            assert takes_gzip(Request("GET", "/", b"", "127.0.0.1", fields)) is is_taken


# The headers of limits, and which clock they use


TODAY = 20_788
NOON = TODAY * DAY + DAY // 2
MINUTE_POLICY, DAY_POLICY = '"minute";q=5;w=60', '"day";q=9;w=86400'
MINUTE_LEFT, DAY_LEFT = '"minute";r=3;t=60', '"day";r=7;t=43200'


def decided(limits: Limits, minute_used: int, day_used: int, now: int = NOON) -> Decision:
    """Return what was decided at ``now`` in a minute that began at noon."""
    return Decision("limited", limits, NOON, minute_used, TODAY, day_used, NEVER, now)


def told(decision: Decision) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in rate_limit_headers(decision).decode().split("\r\n"))


@pytest.mark.parametrize(
    ("limits", "policy", "state"),
    [
        (Limits(5, 9), f"{MINUTE_POLICY}, {DAY_POLICY}", f"{MINUTE_LEFT}, {DAY_LEFT}"),
        (Limits(5, UNLIMITED), MINUTE_POLICY, MINUTE_LEFT),
        (Limits(UNLIMITED, 9), DAY_POLICY, DAY_LEFT),
        (Limits(UNLIMITED, UNLIMITED), None, None),
    ],
)
def test_a_window_without_a_limit_has_no_policy(
    limits: Limits, policy: str | None, state: str | None
) -> None:
    headers = told(decided(limits, 2, 2))
    assert (headers.get("ratelimit-policy"), headers.get("ratelimit")) == (policy, state)
    if policy is None:
        assert headers["x-ratelimit-limit"] == headers["x-ratelimit-remaining"] == str(UNLIMITED)


@pytest.mark.parametrize(("late", "seconds"), [(0, 60), (1, 60), (1_000, 59), (59_999, 1)])
def test_waiting_times_are_counted_from_the_decision(late: int, seconds: int) -> None:
    decision = decided(Limits(5, UNLIMITED), 5, 5, NOON + late)
    assert limit_reached(decision, KEY).headers == {"Retry-After": str(seconds)}
    assert told(decision)["ratelimit"] == f'"minute";r=0;t={60 - -(-late // SECOND)}'
    # None is longer than the window, whenever that began.
    ahead = msgspec.structs.replace(decision, minute_started=NOON + late)
    assert limit_reached(ahead, KEY).headers == {"Retry-After": "60"}


# If the clocks of Redis and the service differ


MIDNIGHT = (TODAY + 1) * DAY


@pytest.mark.parametrize(
    ("start", "ahead", "counted"),
    [(MIDNIGHT, -60, "2026-12-02"), (MIDNIGHT - SECOND, 60, "2026-12-01")],
)
async def test_the_clock_of_redis_decides_what_a_day_is_and_when_to_come_back(
    database: Path, redis: RedisServer, start: int, ahead: int, counted: str
) -> None:
    there, here = ManualClock(start), ManualClock(start + ahead * SECOND)
    settings = Settings(database=f"sqlite:///{database}")
    store = database_of(settings)
    store.migrate()
    redis.call("FLUSHALL")
    states, timed = StoredRateLimits(store), TimedClient(redis.url, there)
    async with redis_limiter(redis.url, states, here, client=timed) as limiter:
        log = RequestLog(io.BytesIO(), here, for_person=False)
        app = create_app(settings, store, limiter, log, here)
        async with (
            app.lifespan(),
            httpx.AsyncClient(
                transport=InProcess(app), base_url="http://petstore.test/v1"
            ) as client,
        ):
            key = await issue(store, here, plan="enterprise", per_minute=1)
            client.headers["Authorization"] = f"Bearer {key.token}"
            await client.get("/pets")
            usage = (await client.get("/usage")).json()
            assert usage["days"][-1] == {"date": counted, "requests": 1}
            assert usage["day"]["reset"] == there() // DAY * DAY // SECOND + DAY // SECOND
            for _ in range(30):  # more than there are strikes before a ban
                refused = await client.get("/pets")
                assert refused.status_code == 429
                wait = int(refused.headers["Retry-After"])
                assert wait == 60
                assert refused.headers["RateLimit"] == '"minute";r=0;t=60'
                assert int(refused.headers["X-RateLimit-Reset"]) == there() // SECOND + wait
                there.advance(wait)
                here.advance(wait)
                assert (await client.get("/pets")).status_code == 200


async def test_the_seconds_to_a_reset_are_counted_from_the_decision(database: Path) -> None:
    """It is older than the headers where a body took its time; so nobody comes too early."""
    async with running_service(database) as service:
        key = await service.issue("free")

        async def slow_body() -> Any:
            yield b'{"name": "Bella",'
            service.clock.advance(90)
            yield b'"categoryId": 1}'

        response = await service.request("POST", "/v1/pets", key.token, content=slow_body())
        assert response.status_code == 201
        assert response.headers["RateLimit"].startswith('"minute";r=59;t=60, ')


async def test_a_usage_request_updates_the_last_use_of_the_key(service: Service) -> None:
    key = await service.issue("free")
    await service.request("GET", "/v1/usage", key.token)
    await service.limiter.save()
    seen = await get_key(service.store, key.id, None, service.clock)
    assert seen.last_used_at == utc_second(service.clock())
