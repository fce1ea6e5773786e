"""Parts that say nothing any more: processes that are stopped, and networks that swallow."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import uvloop

from proof.black_hole import BlackHole
from proof.deployments import Deployment, deployed, postgres_server
from proof.experiment import Experiment, Trial
from proof.judging import judge_store, judge_traders
from proof.ledger import Ledger
from proof.traders import Traders
from support.redis_server import RedisServer, redis_server

_SILENCE_SECONDS = 3.0
_RECOVERY_SECONDS = 20.0
_BUSY_SECONDS = 3.0  # more than is promised: the machine is busy, and this is no test of its speed


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
        BlackHole(redis.port).running() as way_to_redis,
        BlackHole(postgres.port).running() as way_to_postgres,
    ):
        for number in trial.rounds():
            database = postgres.new_store().replace(
                f":{postgres.port}/", f":{way_to_postgres.port}/"
            )
            with deployed(
                trial.folder / str(number),
                *("--redis", f"redis://127.0.0.1:{way_to_redis.port}"),
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
    traders = Traders(deployment.port, token, Ledger(), trial.random, callers=24)
    for case in cases:
        traders.start()
        trial.expect(await traders.acknowledge_more(20, _RECOVERY_SECONDS), f"{case.name}: start")
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
        trial.expect(traders.slowest < case.longest + _BUSY_SECONDS, late)
        trial.count(f"times: {case.name}")
        await asyncio.to_thread(judge_store, trial, deployment, traders, case.name)
    judge_traders(trial, traders)


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
        " one serves. Everything recovers by itself, and no acknowledged change is lost.",
        "24 clients send requests. Meanwhile, for 3 s each, PostgreSQL, Redis or one of two"
        " processes gets SIGSTOP, or a proxy in front of PostgreSQL or Redis swallows everything;"
        " connections that have lost bytes stay silent for ever. A response may take 3 s longer"
        " than promised, because the machine is busy.",
        _run,
        0.9,
        min_seconds=20,
    )
]
