"""A disk that fails, is slow or is full, and files that are deleted or replaced under load."""

import asyncio
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path

import httpx
import uvloop

from petstore.databases.sqlite_files import INDEX, LOG
from proof import faulty_disk
from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.faulty_disk import FaultyDisk
from proof.judging import judge_feed, judge_store, judge_traders
from proof.ledger import Ledger
from proof.traders import Traders
from proof.webhooks import Webhooks, delivering, judge_deliveries

_RECOVERY_SECONDS = 20.0
_REFUSAL_SECONDS = 5.0  # 2 on a quiet machine
_VERY_SLOW, _SLOW = 3_000, 100  # ms of an fsync
_DISK_BYTES = 32 * 1024 * 1024


async def _trade_through(
    trial: Trial,
    deployment: Deployment,
    fault: AbstractContextManager[object],
    name: str,
    seconds: float = 1.5,
    *,
    writes_go_on: bool = False,
) -> None:
    """Let callers trade before, during and after a fault, and judge the store after a kill."""
    traders = Traders(deployment.port, deployment.token, Ledger(), trial.random, callers=24)
    traders.start()
    trial.expect(await traders.acknowledge_more(20, _RECOVERY_SECONDS), f"{name}: no start")
    with fault:
        await asyncio.sleep(seconds)
        before = traders.acknowledged
        await asyncio.sleep(0.3)
        if writes_go_on:
            trial.expect(traders.acknowledged > before, f"{name}: changes were not confirmed")
        health = await asyncio.to_thread(httpx.get, f"{deployment.server.url}/healthz", timeout=10)
        trial.expect(health.status_code == 200, f"{name}: /healthz says {health.status_code}")
    ended = time.monotonic()
    recovered = await traders.acknowledge_more(20, _RECOVERY_SECONDS)
    trial.expect(recovered, f"{name}: nothing was acknowledged when it was over")
    trial.note_max("longest recovery, s", time.monotonic() - ended)
    await traders.stop()
    trial.note_max("longest response, s", traders.slowest)
    late = f"{name}: a response took {traders.slowest:.1f} s"
    trial.expect(traders.slowest < _REFUSAL_SECONDS, late)
    await asyncio.to_thread(deployment.kill_service)
    await asyncio.to_thread(judge_store, trial, deployment, traders, name)
    trial.expect(deployment.is_sound(), f"{name}: SQLite finds damage in the file")
    judge_traders(trial, traders)
    trial.count(f"times: {name}")


# Calls that fail

_FAULTS = {
    "writes fail (EIO)": (faulty_disk.WRITE_EIO, 0),
    "no space (ENOSPC)": (faulty_disk.WRITE_ENOSPC, 0),
    "fsync fails (EIO)": (faulty_disk.FSYNC_EIO, 0),
    "fsync takes 3 s": (faulty_disk.FSYNC_SLOW, _VERY_SLOW),
    "fsync takes 0.1 s": (faulty_disk.FSYNC_SLOW, _SLOW),
    "reads fail (EIO)": (faulty_disk.READ_EIO, 0),
}


def _run_faults(trial: Trial) -> None:
    for number in trial.rounds():
        for name, (fault, milliseconds) in _FAULTS.items():
            folder = trial.folder / f"{number}-{fault}-{milliseconds}"
            disk = FaultyDisk(trial.folder, folder / "petstore.db")
            with deployed(folder, env=disk.env) as deployment:
                _ = deployment.token
                failing = disk.failing(fault, milliseconds)
                is_just_slow = milliseconds == _SLOW
                through = _trade_through(
                    trial, deployment, failing, name, writes_go_on=is_just_slow
                )
                uvloop.run(through)
            trial.expect(disk.hits, f"{name}: no call had the fault")
            trial.count("calls with a fault", disk.hits)


# A disk without room


def _run_full_disk(trial: Trial) -> None:
    for number in trial.rounds():
        with _small_disk(trial, trial.folder / f"disk-{number}") as folder:
            if folder is not None:
                with deployed(folder / "store") as deployment:
                    filled = _filled(folder, deployment)
                    uvloop.run(_trade_through(trial, deployment, filled, "a full disk"))
        with deployed(trial.folder / f"limit-{number}") as deployment:
            limited = _file_size_limited(deployment)
            uvloop.run(_trade_through(trial, deployment, limited, "a limit on the size of files"))


@contextmanager
def _small_disk(trial: Trial, folder: Path) -> Iterator[Path | None]:
    """Mount a small file system in memory until the block ends, if this user may."""
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    options = ("-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(folder))
    mounted = mount and umount and _succeeds(mount, *options)
    if not (mount and umount and mounted):
        reason = "a full tmpfs: mounting one needs root"
        if reason not in trial.skipped:
            trial.skipped.append(reason)
        yield None
        return
    try:
        yield folder
    finally:
        _succeeds(umount, "--lazy", str(folder))


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@contextmanager
def _filled(folder: Path, deployment: Deployment) -> Iterator[None]:
    """Leave no room on the disk of ``folder`` until the block ends."""
    _ = deployment.token
    ballast = folder / "ballast"
    # Without a buffer: what one keeps when a write fails, it would write once more at the end.
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(2**16))
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def _file_size_limited(deployment: Deployment) -> Iterator[None]:
    """Let no file of the service grow any further, until the block ends."""
    workers = deployment.server.workers()
    soft, hard = resource.prlimit(workers[0], resource.RLIMIT_FSIZE)
    for worker in workers:
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        for worker in workers:
            resource.prlimit(worker, resource.RLIMIT_FSIZE, (soft, hard))


# Files that are deleted or replaced


def _delete(database: Path, *endings: str) -> None:
    for ending in endings:
        Path(f"{database}{ending}").unlink()


def _replace(path: Path) -> None:
    Path(shutil.copy(path, path.with_name("copy"))).replace(path)


def _move_away_and_back(database: Path) -> None:
    aside = database.rename(database.with_name("aside.db"))
    time.sleep(_AWAY_SECONDS)
    aside.rename(database)


_LOSSES: dict[str, Callable[[Path], object]] = {
    "-wal deleted": lambda database: _delete(database, LOG),
    "-shm deleted": lambda database: _delete(database, INDEX),
    "-wal and -shm deleted": lambda database: _delete(database, LOG, INDEX),
    "-wal replaced": lambda database: _replace(Path(f"{database}{LOG}")),
    "the database moved away and back": _move_away_and_back,
}
_AWAY_SECONDS, _TAIL_SECONDS = 0.5, 20.0


def _run_losses(trial: Trial) -> None:
    ends = time.monotonic() + trial.seconds - _TAIL_SECONDS
    for number in count():
        with (
            deployed(trial.folder / str(number), webhooks=True) as deployment,
            delivering(deployment) as webhooks,
        ):
            uvloop.run(_lose_again_and_again(trial, deployment, webhooks, ends))
            trial.expect(deployment.is_sound(), "SQLite finds damage in the file")
        if time.monotonic() > ends:
            return


async def _lose_again_and_again(
    trial: Trial, deployment: Deployment, webhooks: Webhooks, ends: float
) -> None:
    """Lose files while two processes write, and start both again each time."""
    token = await asyncio.to_thread(lambda: deployment.token)
    traders = Traders(deployment.port, token, Ledger(), trial.random, callers=12, pause=0.2)
    traders.start()
    trial.expect(await traders.acknowledge_more(20, _RECOVERY_SECONDS), "no start")
    losses = trial.random.sample(list(_LOSSES.items()), len(_LOSSES))
    for name, lose in losses:
        lost = time.monotonic()
        await asyncio.to_thread(lose, deployment.file)
        await asyncio.to_thread(_start_again, trial, deployment, webhooks, name)
        recovered = await traders.acknowledge_more(1, _RECOVERY_SECONDS)
        trial.expect(recovered, f"{name}: nothing was acknowledged after the restart")
        trial.note_max("longest pause, s", time.monotonic() - lost)
        trial.count(f"times: {name}")
        await asyncio.sleep(trial.random.uniform(0.1, 1))
        if time.monotonic() > ends:
            break
    await traders.stop()
    feed = await judge_feed(trial, deployment, [], "after the losses")
    await judge_deliveries(trial, webhooks, feed, "after the losses")
    await asyncio.to_thread(judge_store, trial, deployment, traders, "after the losses")
    judge_traders(trial, traders)


def _start_again(trial: Trial, deployment: Deployment, webhooks: Webhooks, name: str) -> None:
    """Do what the supervisor of a system does."""
    status = deployment.server.process.wait(_RECOVERY_SECONDS)
    trial.expect(status == 1, f"{name}: the service ended with status {status}")
    has_ended = webhooks.start_deliverer_again(_RECOVERY_SECONDS)
    trial.expect(has_ended, f"{name}: petstore deliver did not end")
    deployment.start()


_PROMISE = (
    "No acknowledged change is lost, and no refused one is made. A change that the disk does not"
    " confirm gets 503 with `Retry-After` in about 2 s. The service needs no restart afterwards."
)
_METHOD = (
    "24 clients send requests before, during and until 20 changes after the fault. Then the"
    " service is killed with -9 and started again, and all rows are compared with the model. "
)

EXPERIMENTS = [
    Experiment(
        "disk faults",
        _PROMISE,
        _METHOD
        + "A preloaded library of a few lines of C makes the calls fail: EIO and ENOSPC on writes,"
        " EIO on reads, an fsync that fails or takes 0.1 or 3 s.",
        _run_faults,
        1,
        min_seconds=18,
    ),
    Experiment(
        "a full disk",
        _PROMISE,
        _METHOD + "Once on a full tmpfs (as root), once with a limit on the size of files"
        " (`RLIMIT_FSIZE`).",
        _run_full_disk,
        0.5,
        min_seconds=6,
    ),
    Experiment(
        "deleted and replaced files",
        "If the `-wal` or the `-shm` of the database is deleted or replaced while several processes"
        " write, or the database is moved away and back, all of them end with status 1 by"
        " themselves. Once they are started again, no acknowledged change is lost, the file is"
        " sound, and every event is in the feed once, in order, and reaches its webhook.",
        "12 clients send requests, and `petstore deliver` delivers the events, so two processes"
        " write. A file is taken away under them again and again, and they are started again, as"
        " systemd does it. The pause is from the loss to the next acknowledged change. At the end"
        " the rows, the events and the deliveries are compared with the model.",
        _run_losses,
        2.8,
        min_seconds=40,
    ),
]
