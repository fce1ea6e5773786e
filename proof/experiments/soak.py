"""A long load: memory, open files and threads stay as they were, and so does every promise."""

import asyncio
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import uvloop

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.judging import judge_store, judge_traders
from proof.ledger import Ledger
from proof.traders import Traders
from servers import memory_megabytes

_WARM_UP = 0.25  # of the time, which is too short below so many seconds
_LONG = 300
_SAMPLES = 60
_MORE_MEMORY = 1.10
_MORE_FILES = 4


class _Sample(NamedTuple):
    megabytes: float
    files: int
    threads: int


def _sample(deployment: Deployment) -> _Sample:
    worker = Path(f"/proc/{deployment.server.worker}")
    files, threads = (len(list((worker / name).iterdir())) for name in ("fd", "task"))
    return _Sample(memory_megabytes(int(worker.name)), files, threads)


def _run(trial: Trial) -> None:
    with deployed(trial.folder / "soak") as deployment:
        uvloop.run(_load(trial, deployment))


async def _load(trial: Trial, deployment: Deployment) -> None:
    traders = Traders(deployment.port, deployment.token, Ledger(), trial.random, callers=160)
    traders.start()
    started, samples = time.monotonic(), []
    await asyncio.sleep(trial.seconds * _WARM_UP)
    while time.monotonic() < started + trial.seconds:
        samples.append(_sample(deployment))
        await asyncio.sleep(max(1, trial.seconds * (1 - _WARM_UP) / _SAMPLES))
    await traders.stop()
    third = max(1, len(samples) // 3)
    first, last = samples[:third], samples[-third:]
    before, after = (median(one.megabytes for one in some) for some in (first, last))
    trial.note_max("memory of the first third, MB", before)
    trial.note_max("memory of the last third, MB", after)
    trial.note_max("open files", max(one.files for one in samples))
    if trial.seconds >= _LONG:  # fewer are too few trials: memory still warms up
        trial.count("samples of the process", len(samples))
        trial.expect(after <= before * _MORE_MEMORY, f"memory: {before:.1f}, then {after:.1f} MB")
    for name in ("files", "threads"):
        low, high = (
            pick(getattr(one, name) for one in some) for pick, some in ((min, first), (max, last))
        )
        trial.expect(high <= low + _MORE_FILES, f"{name} grew from {low} to {high}")
    trial.note_max("longest response, s", traders.slowest)
    trial.count("reads", traders.reads)
    await asyncio.to_thread(judge_store, trial, deployment, traders, "after the soak")
    judge_traders(trial, traders)


EXPERIMENTS = [
    Experiment(
        "soak",
        "Under endless load, memory, open files and threads stay the same, and the store matches"
        " the responses.",
        "160 clients send requests to one process on SQLite. After a quarter of the time the"
        " process is sampled 60 times, or once a second; the last third may have 10 % more memory"
        " than the first, and four more files or threads.",
        _run,
        7,
        min_seconds=20,
    )
]
