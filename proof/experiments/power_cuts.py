"""Power cuts under load: the store has every acknowledged change, though only fsync counts."""

import asyncio
import time
from itertools import count

import uvloop

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.faulty_disk import FaultyDisk
from proof.followers import Follower
from proof.judging import judge_feed, judge_store, judge_traders
from proof.ledger import Ledger
from proof.traders import Traders

_CUTS_OF_A_STORE = 12
_RECOVERY_SECONDS = 30.0
_WAIT_SECONDS = 5


def _run(trial: Trial) -> None:
    ends = time.monotonic() + trial.seconds
    for number in count():
        folder = trial.folder / str(number)
        disk = FaultyDisk(trial.folder, folder / "petstore.db", keeps_synced=True)
        with deployed(folder, env=disk.env) as deployment:
            uvloop.run(_cut_again_and_again(trial, deployment, disk, ends))
        if time.monotonic() > ends:
            return


async def _cut_again_and_again(
    trial: Trial, deployment: Deployment, disk: FaultyDisk, ends: float
) -> None:
    token = await asyncio.to_thread(lambda: deployment.token)
    traders = Traders(deployment.port, token, Ledger(), trial.random)
    follower = Follower(deployment.port, token, _WAIT_SECONDS)
    following = asyncio.create_task(follower.follow())
    for _ in range(_CUTS_OF_A_STORE):
        traders.start()
        started = await traders.acknowledge_more(1, _RECOVERY_SECONDS)
        trial.expect(started, "nothing was acknowledged before a cut")
        await asyncio.sleep(trial.random.uniform(0.1, 1))
        deployment.kill()
        trial.count("pages lost", disk.cut_power(trial.random))
        trial.count("times: the power was cut")
        await asyncio.to_thread(deployment.start)
        await traders.acknowledge_more(1, _RECOVERY_SECONDS)
        await traders.stop()
        await asyncio.to_thread(judge_store, trial, deployment, traders, "after a cut")
        await judge_feed(trial, deployment, [follower], "after a cut")
        trial.expect(deployment.is_sound(), "SQLite finds damage in the file")
        if time.monotonic() > ends:
            break
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    judge_traders(trial, traders)


EXPERIMENTS = [
    Experiment(
        "power cuts",
        "After a power cut every acknowledged change is there, and every event that anybody has"
        " read. The file is sound.",
        "48 clients send requests to one process on SQLite, and one follows the events. A"
        " preloaded library keeps what each fsync confirms. After 0.1 to 1 s all processes are"
        " killed. Of the pages written since, none or a random half survive, as on a disk that"
        " writes in any order. Then the service starts, and the rows, the sales and the events are"
        " compared with the responses.",
        _run,
        1.5,
        min_seconds=5,
    )
]
