"""Steps of the clock under load: nothing is lost, and nobody gets fresh quota by a step back."""

import asyncio

import httpx
import uvloop

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.faulty_disk import FaultyClock
from proof.judging import judge_feed, judge_store, judge_traders
from proof.ledger import Ledger
from proof.traders import Traders

_HOURS = 6  # less than a reservation or an idempotency record lasts
_RECOVERY_SECONDS = 20.0
_A_MINUTE = 60  # requests of a free key
_STEPS_OF_A_STORE = 8


def _run(trial: Trial) -> None:
    for number in trial.rounds():
        clock = FaultyClock(trial.folder)
        with deployed(trial.folder / str(number), env=clock.env) as deployment:
            uvloop.run(_step_again_and_again(trial, deployment, clock))


async def _step_again_and_again(trial: Trial, deployment: Deployment, clock: FaultyClock) -> None:
    token = await asyncio.to_thread(lambda: deployment.token)
    traders = Traders(deployment.port, token, Ledger(), trial.random, callers=24)
    now = 0
    for _ in range(_STEPS_OF_A_STORE):
        traders.start()
        await traders.acknowledge_more(20, _RECOVERY_SECONDS)
        limited = await asyncio.to_thread(deployment.server.issue, "free")
        await asyncio.to_thread(_ask, deployment, limited, _A_MINUTE)
        later = trial.random.randint(-_HOURS * 3600, _HOURS * 3600)
        clock.step_to(later)
        when = "after a step back" if later < now else "after a step ahead"
        goes_on = await traders.acknowledge_more(20, _RECOVERY_SECONDS)
        trial.expect(goes_on, f"{when}: nothing was acknowledged")
        statuses = await asyncio.to_thread(_ask, deployment, limited, 2)
        if later < now:
            trial.expect(statuses == [429, 429], f"{when}: a key at its limit got {statuses}")
        elif later > now + _A_MINUTE:
            trial.expect(statuses == [200, 200], f"{when}: a key in a new minute got {statuses}")
        now = later
        await traders.stop()
        trial.expect(not traders.statuses[503], f"{when}: {traders.statuses[503]} requests got 503")
        await asyncio.to_thread(judge_store, trial, deployment, traders, when)
        await judge_feed(trial, deployment, [], when)
        trial.count(f"times: {when.removeprefix('after ')}")
    judge_traders(trial, traders)


def _ask(deployment: Deployment, token: str, times: int) -> list[int]:
    """Return the statuses of so many requests, one after the other."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{deployment.server.url}/v1", headers=headers, timeout=20) as http:
        return [http.get("/pets?limit=1").status_code for _ in range(times)]


EXPERIMENTS = [
    Experiment(
        "steps of the clock",
        "If the clock of the machine steps, no request fails and no acknowledged change is lost,"
        " the feed stays in order, and the sales still add up. A step back gives nobody fresh"
        " quota.",
        f"A preloaded library sets the clock of the service to a random time up to {_HOURS} hours"
        " away, while 24 clients send requests. Before each step a key uses up its minute. After a"
        " step back it must be refused, after one ahead be admitted. Then the rows, the sales and"
        " the events are compared with the responses.",
        _run,
        1,
        min_seconds=8,
    )
]
