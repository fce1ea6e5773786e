"""Parts that say nothing any more: processes that are stopped, and networks that swallow."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import uvloop
from anyio.from_thread import start_blocking_portal

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.judging import judge_store, judge_traders
from proof.ledger import Ledger
from proof.traders import Traders
from support.postgres import postgres_server
from support.redis_server import RedisServer, redis_server
from support.silent_server import way_to
from support.swarm import request_at_once
from support.waiting import eventually

_BASELINE_SECONDS = 1.0
_SILENCE_SECONDS = 3.0
_RECOVERY_SECONDS = 20.0
_SPARE_SECONDS = 0.5  # more than is promised, or
_TIMES_LONGER = 10  # this many times the longest response of the second before: a busy machine
_WORKERS = 2
_A_MINUTE = 60  # requests of a free key
_SAVE_SECONDS = 1.0  # twice what the limiter takes to copy its counts into the database


class _Case(NamedTuple):
    """A part that falls silent; the longest response in seconds, and whether changes go on."""

    name: str
    silence: AbstractContextManager[object]
    longest: float
    goes_on: bool


def _run(trial: Trial) -> None:
    with (
        redis_server() as redis,
        postgres_server() as postgres,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(way_to(redis.port)) as way_to_redis,
        portal.wrap_async_context_manager(way_to(postgres.port)) as way_to_postgres,
    ):
        for number in trial.rounds():
            database = postgres.new_store().replace(
                f":{postgres.port}/", f":{way_to_postgres.entrance}/"
            )
            with deployed(
                trial.folder / str(number),
                *("--redis", way_to_redis.url),
                workers=2,
                redis=redis,
                postgres=postgres,
                database=database,
            ) as deployment:
                cases = [
                    _Case("Redis stopped", _paused(redis), 1, goes_on=True),
                    _Case("Redis in a black hole", way_to_redis.swallowing(), 1, goes_on=True),
                    _Case(
                        "a worker stopped",
                        _stopped_worker(deployment),
                        _SILENCE_SECONDS,
                        goes_on=True,
                    ),
                    _Case("PostgreSQL stopped", postgres.stopped(), 2, goes_on=False),
                    # The last one: its connections are silent for ever, and each may cost a 503.
                    _Case(
                        "PostgreSQL in a black hole", way_to_postgres.swallowing(), 2, goes_on=False
                    ),
                ]
                uvloop.run(_fall_silent(trial, deployment, cases))


async def _fall_silent(trial: Trial, deployment: Deployment, cases: list[_Case]) -> None:
    token = await asyncio.to_thread(lambda: deployment.token)
    # Some with new connections: all lasting ones may be those of the process that hangs.
    traders = Traders(deployment.port, token, Ledger(), trial.random, callers=24, fresh=12)
    for case in cases:
        traders.start()
        traders.slowest = 0.0
        trial.expect(await traders.acknowledge_more(20, _RECOVERY_SECONDS), f"{case.name}: start")
        await asyncio.sleep(_BASELINE_SECONDS)
        spare = max(_SPARE_SECONDS, _TIMES_LONGER * traders.slowest)
        traders.slowest, failed = 0.0, traders.statuses[503]
        with case.silence:
            await asyncio.sleep(_SILENCE_SECONDS / 2)
            before = traders.acknowledged
            await asyncio.sleep(_SILENCE_SECONDS / 2)
            if case.goes_on:
                trial.expect(traders.acknowledged > before, f"{case.name}: changes did not go on")
                refused = traders.statuses[503] - failed
                trial.expect(not refused, f"{case.name}: {refused} requests got 503")
        ended = time.monotonic()
        recovered = await traders.acknowledge_more(20, _RECOVERY_SECONDS)
        trial.expect(recovered, f"{case.name}: nothing was acknowledged when it was over")
        trial.note_max("longest recovery, s", time.monotonic() - ended)
        await traders.stop()
        trial.note_max(f"longest response, {case.name}, s", traders.slowest)
        late = f"{case.name}: a response took {traders.slowest:.1f} s"
        trial.expect(traders.slowest < case.longest + spare, late)
        trial.count(f"times: {case.name}")
        await asyncio.to_thread(judge_store, trial, deployment, traders, case.name)
    judge_traders(trial, traders)


def _run_limits(trial: Trial) -> None:
    with (
        redis_server() as redis,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(way_to(redis.port)) as way,
    ):
        options = ("--redis", way.url, "--ban-strikes", "1000000")
        with deployed(
            trial.folder / "store", *options, workers=_WORKERS, redis=redis
        ) as deployment:
            for _ in trial.rounds():
                failures = {
                    "Redis killed": _killed(redis),
                    "Redis stopped": _paused(redis),
                    "Redis in a black hole": way.swallowing(),
                }
                for name, failure in failures.items():
                    asyncio.run(_use_up(trial, deployment, failure, name))


async def _use_up(
    trial: Trial, deployment: Deployment, failure: AbstractContextManager[object], name: str
) -> None:
    """Use up a key before, while and after Redis fails, and count what is admitted.

    On a busy machine Redis may be late at any moment. Then each process has a share of the limits,
    and what is counted proves nothing.
    """
    token = await asyncio.to_thread(deployment.server.issue, "free")
    await eventually(lambda: _outages(deployment, "back") == _outages(deployment, "unavailable"))
    lost, used = _outages(deployment, "unavailable"), trial.random.randrange(1, _A_MINUTE)
    before = await _admitted(trial, deployment, token, used, name)
    await asyncio.sleep(_SAVE_SECONDS)
    is_quiet = _outages(deployment, "unavailable") == lost
    with failure:
        meanwhile = await _admitted(trial, deployment, token, 90, name)
        await eventually(lambda: _outages(deployment, "unavailable") >= lost + _WORKERS)
    await eventually(lambda: _outages(deployment, "back") == _outages(deployment, "unavailable"))
    after = await _admitted(trial, deployment, token, 90, name)
    if not is_quiet or _outages(deployment, "unavailable") > lost + _WORKERS:
        trial.count("outages that the machine added")
        return
    left = _A_MINUTE - used
    told = f"{name}, {used} used: {before}, {meanwhile} and {after} were admitted"
    trial.expect(before == used and meanwhile <= left and after <= left, told)
    trial.expect(meanwhile >= left // _WORKERS - 1, f"{told}: no share")
    trial.count(f"times: {name}")


def _outages(deployment: Deployment, what: str) -> int:
    """Return how often a process logged that Redis is ``back`` or ``unavailable``."""
    return deployment.server.log_path.read_text().count(f'"event":"Redis is {what}')


async def _admitted(
    trial: Trial, deployment: Deployment, token: str, requests: int, name: str
) -> int:
    """Return how many of some requests at once were admitted; the others must get 429."""
    responses = await request_at_once(deployment.port(), token, requests, "/v1/pets")
    statuses = Counter(one.status for one in responses)
    failed = {status: number for status, number in statuses.items() if status not in (200, 429)}
    trial.expect(not failed, f"{name}: {failed}")
    trial.count("requests", requests)
    return statuses[200]


@contextmanager
def _killed(redis: RedisServer) -> Iterator[None]:
    redis.kill()
    try:
        yield
    finally:
        redis.start()


@contextmanager
def _paused(redis: RedisServer) -> Iterator[None]:
    redis.pause()
    try:
        yield
    finally:
        redis.resume()


@contextmanager
def _stopped_worker(deployment: Deployment) -> Iterator[None]:
    worker = deployment.server.workers()[0]
    os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(worker, signal.SIGCONT)


EXPERIMENTS = [
    Experiment(
        "silent parts",
        "While PostgreSQL is silent, every request gets a response: 503 within 2 s if it needs"
        " the database. While Redis is silent, nothing fails. While one process hangs, the other"
        " one serves. Everything recovers automatically, and no acknowledged change is lost.",
        "24 clients send requests, half of them each on a new connection. Meanwhile, for 3 s each,"
        " PostgreSQL, Redis or one of two processes gets SIGSTOP, or a proxy in front of PostgreSQL"
        " or Redis swallows everything; connections that have lost bytes stay silent for ever. A"
        " response may take half a second longer than promised, or ten times what it took before.",
        _run,
        0.9,
        min_seconds=20,
    ),
    Experiment(
        "limits while Redis fails",
        "While Redis fails, no request fails, and all processes together admit no more of a key"
        " than it has left. Around an outage it may get that once more, and no more.",
        "A free key uses some of its 60 requests. Then Redis is killed, gets SIGSTOP or is behind a"
        " proxy that swallows everything. The key sends 90 requests at once to two processes"
        " meanwhile, and 90 when Redis is back.",
        _run_limits,
        1,
        min_seconds=8,
    ),
]
