"""Restarts with a socket of systemd: nobody is refused, and no request fails."""

import asyncio
import socket
import time
from functools import partial

import uvloop

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.judging import judge_store, judge_traders
from proof.ledger import Ledger
from proof.traders import Traders
from support.redis_server import redis_server

_CLIENTS = 32
_BACKLOG = 4096
_RECOVERY_SECONDS = 30.0
_SERVED_SECONDS = 0.5


def _run(workers: int, trial: Trial) -> None:
    with (
        redis_server() as redis,
        socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as listener,
        deployed(
            trial.folder / "store", workers=workers, redis=redis, listener=listener
        ) as deployment,
    ):
        uvloop.run(restart_again_and_again(trial, deployment))


async def restart_again_and_again(trial: Trial, deployment: Deployment) -> None:
    """Restart a service under load until the time is over, and expect nobody to notice."""
    token = await asyncio.to_thread(lambda: deployment.token)
    fresh = _CLIENTS // 2
    traders = Traders(deployment.port, token, Ledger(), trial.random, _CLIENTS, fresh=fresh)
    traders.start()
    ends = time.monotonic() + trial.seconds
    while time.monotonic() < ends:
        serves = await traders.acknowledge_more(_CLIENTS, _RECOVERY_SECONDS)
        trial.expect(serves, "nothing was acknowledged after a start")
        await asyncio.sleep(_SERVED_SECONDS)
        began = time.monotonic()
        status = await asyncio.to_thread(deployment.stop)
        trial.expect(status == 0, f"a stop ended with status {status}")
        await asyncio.to_thread(deployment.start)
        trial.count("restarts")
        trial.note_max("longest restart, s", time.monotonic() - began)
    await traders.acknowledge_more(_CLIENTS, _RECOVERY_SECONDS)
    await traders.stop()
    failures = {
        "requests had no response": traders.lost,
        "connections failed": traders.unconnected,
        "responses were 503": traders.statuses[503],
    }
    for what, number in failures.items():
        trial.expect(not number, f"{number} {what}")
    trial.count("requests", traders.statuses.total())
    trial.count("failed connections", traders.unconnected)
    trial.note_max("longest response, s", traders.slowest)
    await asyncio.to_thread(judge_store, trial, deployment, traders, "after all restarts")
    judge_traders(trial, traders)


EXPERIMENTS = [
    Experiment(
        f"restarts, {name}",
        "With a socket that systemd keeps open, a restart refuses no client and fails no request,"
        " and every acknowledged change is there afterwards.",
        f"{_CLIENTS} clients trade without a pause, half of them on a new connection for each"
        " request. Again and again the service is stopped with SIGTERM and started with the same"
        " listening socket (`LISTEN_FDS`). A refused or reset connection, a request without a"
        " response and a 503 break the promise. At the end all rows are compared with a model that"
        " knows only the responses.",
        partial(_run, workers),
        share=1,
        min_seconds=10,
    )
    for name, workers in (("one worker", 1), ("two workers", 2))
]
