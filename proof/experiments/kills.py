"""kill -9 of every part under load; then the store must match the responses."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import uvloop

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.followers import Follower
from proof.judging import judge_feed, judge_store, judge_traders
from proof.ledger import Ledger
from proof.traders import Traders
from proof.webhooks import Webhooks, delivering, judge_deliveries
from support.postgres import postgres_server
from support.redis_server import redis_server

_KILLS_OF_A_STORE = 12
_RECOVERY_SECONDS = 30.0
_WAIT_SECONDS = 5
_PROMISE = (
    "After the kill every acknowledged change is there, and no refused one. A change without a"
    " response was made once or not at all, and a retry with an `Idempotency-Key` makes it once."
    " No pet has two buyers. The inventory matches the rows. A client that follows the events"
    " sees each change exactly once and in order. The service recovers automatically."
)
_METHOD = (
    "48 clients add, change, order, sell and delete pets; several want the same one. After 0.2"
    " to 1 s one part is killed. Once it is back, all rows in the database are compared with a"
    " model that knows only the responses. Two clients follow the events through all kills, one of"
    " them by long polls. Each event must begin with what the one before left, the last ones must"
    " end with the rows, and both clients must have read what a fresh walk reads."
)
_WEBHOOK_PROMISE = (
    "Every event reaches its webhook at least once: signed, as the feed has it, and in order for"
    " each resource, whatever was killed. All that holds after other kills holds too."
)
_WEBHOOK_METHOD = (
    "As above, with 12 slower clients and a webhook. `petstore deliver` delivers, and a receiver in"
    " a process of its own notes what it accepts. It refuses, resets or delays 5 % of the events,"
    " and closes some connections without a word after it has accepted. The deliverer and the"
    " receiver are killed like all the other parts. At the end the receiver must have every event"
    " of the feed, except those of resources with a delivery that failed twice: the third attempt"
    " comes 5 minutes later."
)


class _Form(NamedTuple):
    """A form of the service, and whether a webhook delivers; then there are fewer changes."""

    name: str
    delivers: bool = False

    @property
    def load(self) -> dict[str, Any]:
        """How many clients trade, and how fast."""
        return {"callers": 12, "pause": 0.04} if self.delivers else {}

    @property
    def tail_seconds(self) -> float:
        """How long the last deliveries take: a killed process keeps its lease for 15 s."""
        return 18 if self.delivers else 0


@contextmanager
def _parts(form: _Form) -> Iterator[dict[str, Any]]:
    """Run what a form needs beside the service until the block ends."""
    with ExitStack() as stack:
        parts: dict[str, Any] = {"webhooks": form.delivers}
        if form.name != "SQLite":
            parts |= {"redis": stack.enter_context(redis_server()), "workers": 2}
        if form.name == "PostgreSQL and Redis":
            parts["postgres"] = stack.enter_context(postgres_server())
        yield parts


def _run(form: _Form, trial: Trial) -> None:
    ends = time.monotonic() + trial.seconds - form.tail_seconds
    with _parts(form) as parts:
        for number in count():
            with deployed(trial.folder / str(number), **parts) as deployment:
                with delivering(deployment) if form.delivers else nullcontext() as webhooks:
                    uvloop.run(_kill_again_and_again(trial, deployment, webhooks, form.load, ends))
                if deployment.postgres is None:
                    trial.expect(deployment.is_sound(), "SQLite finds damage in the file")
            if time.monotonic() > ends:
                return


async def _kill_again_and_again(
    trial: Trial,
    deployment: Deployment,
    webhooks: Webhooks | None,
    load: dict[str, Any],
    ends: float,
) -> None:
    token = await asyncio.to_thread(lambda: deployment.token)
    traders = Traders(deployment.port, token, Ledger(), trial.random, **load)
    followers = [Follower(deployment.port, token, wait) for wait in (0, _WAIT_SECONDS)]
    following = [asyncio.create_task(follower.follow()) for follower in followers]
    targets = deployment.targets() | (webhooks.targets() if webhooks else {})
    for _ in range(_KILLS_OF_A_STORE):
        name = trial.random.choice(list(targets))
        traders.start()
        started = await traders.acknowledge_more(1, _RECOVERY_SECONDS)
        trial.expect(started, f"nothing was acknowledged before a kill of {name}")
        await asyncio.sleep(trial.random.uniform(0.2, 1))
        killed = time.monotonic()
        await asyncio.to_thread(targets[name])
        trial.count(f"kills of {name}")
        trial.count("kills")
        has_recovered = await traders.acknowledge_more(1, _RECOVERY_SECONDS)
        trial.expect(has_recovered, f"nothing was acknowledged after a kill of {name}")
        trial.note_max("longest recovery, s", time.monotonic() - killed)
        await traders.stop()
        await asyncio.to_thread(judge_store, trial, deployment, traders, f"after a kill of {name}")
        feed = await judge_feed(trial, deployment, followers, f"after a kill of {name}")
        if time.monotonic() > ends:
            break
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    if webhooks:
        await judge_deliveries(trial, webhooks, feed, "after all kills of a store")
    judge_traders(trial, traders)


EXPERIMENTS = [
    *(
        Experiment(f"kill -9, {name}", _PROMISE, _METHOD, partial(_run, _Form(name)), share, 5)
        for name, share in (("SQLite", 4), ("SQLite and Redis", 2.4), ("PostgreSQL and Redis", 6))
    ),
    *(
        Experiment(
            f"kill -9 of webhooks, {name}",
            _WEBHOOK_PROMISE,
            _WEBHOOK_METHOD,
            partial(_run, _Form(name, delivers=True)),
            share,
            30,
        )
        for name, share in (("SQLite", 2), ("PostgreSQL and Redis", 3))
    ),
]
