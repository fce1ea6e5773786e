"""Imports that are killed in the middle, and go on afterwards."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.importers import Importer, Person, by_command, undone
from proof.judging import judge_feed
from support.postgres import postgres_server
from support.waiting import within

_KILLS = 3
_RECOVERY_SECONDS = 30.0


class _Way(NamedTuple):
    """A way to import a file of so many rows."""

    name: str
    importer: Callable[[Deployment, Path], Importer]
    rows: int


_WAYS = (_Way("by the command", by_command, 4_000), _Way("in the console", Person, 4_000))


def _run(trial: Trial) -> None:
    with postgres_server() as postgres:
        for number in trial.rounds():
            for name, parts in (("SQLite", {}), ("PostgreSQL", {"postgres": postgres})):
                with deployed(trial.folder / f"{number}-{name}", **parts) as deployment:
                    for way in _WAYS:
                        import_by(trial, deployment, way)
                    asyncio.run(judge_feed(trial, deployment, [], f"{name}, after all imports"))


def import_by(trial: Trial, deployment: Deployment, way: _Way) -> None:
    """Kill an import or the service in the middle, a few times; then expect each row once."""
    names = [f"{way.name} {number}" for number in range(way.rows)]
    file = deployment.folder / f"{way.name}.csv"
    deployment.register_category()
    lines = "".join(f"{name},1,available\n" for name in names)
    file.write_text(f"name,categoryId,status\n{lines}")
    there = _pets(deployment)
    moments = [there + trial.random.randrange(way.rows) for _ in range(_KILLS)]
    _disturb(trial, deployment, way.importer(deployment, file), moments)
    times = Counter(pet.tag for pet in deployment.rows().pets if pet.tag.startswith(way.name))
    wrong = {name: times[name] for name in {*names, *times} if times[name] != 1}
    some = dict(list(wrong.items())[:5])
    trial.expect(not wrong, f"{way.name}: {len(wrong)} rows are not there once, such as {some}")
    trial.count("rows imported", len(times))
    trial.count(f"imports {way.name}")
    import_id = _WAYS.index(way) + 1
    moments = [there + way.rows - trial.random.randrange(way.rows) for _ in range(_KILLS)]
    _disturb(trial, deployment, undone(deployment, file, import_id), moments, is_undo=True)
    left = [pet.tag for pet in deployment.rows().pets if pet.tag.startswith(way.name)]
    trial.expect(not left, f"{way.name}: an undo left {len(left)} pets, such as {left[:5]}")
    trial.count("undos")


def _disturb(
    trial: Trial,
    deployment: Deployment,
    importer: Importer,
    moments: list[int],
    *,
    is_undo: bool = False,
) -> None:
    """Kill an import or an undo once there are so many pets, and expect that it ends."""

    def has_come(pets: int) -> bool:
        there = _pets(deployment)
        return importer.is_done() or (0 < there <= pets if is_undo else there >= pets)

    with _importing(importer):
        for pets in moments:
            within(_RECOVERY_SECONDS, lambda pets=pets: has_come(pets))  # type: ignore[misc]
            if not importer.is_done():
                _kill(trial, deployment, importer)
        is_done = within(_RECOVERY_SECONDS, importer.is_done)
    trial.expect(is_done, "an import or an undo did not go on to its end")


@contextmanager
def _importing(importer: Importer) -> Iterator[Importer]:
    importer.start()
    try:
        yield importer
    finally:
        importer.stop()


def _kill(trial: Trial, deployment: Deployment, importer: Importer) -> None:
    """Kill the import, or the service and the import, and let the import go on."""
    victim = trial.random.choice(("the import", "the service"))
    if victim == "the service":
        deployment.kill_service()
    importer.stop()
    importer.start()
    trial.count("kills")
    trial.count(f"kills of {victim}")


def _pets(deployment: Deployment) -> int:
    """Return how many pets there are, 0 if the service does not tell."""
    try:
        return sum(deployment.inventory().values())
    except httpx.HTTPError:
        return 0


EXPERIMENTS = [
    Experiment(
        "killed imports",
        "An import that is killed, or whose service is killed, resumes when it is started again:"
        " each row of the file is added exactly once, and has its event. So does its undo.",
        "Files are imported by `petstore pets import` and in the console, and undone; on SQLite and"
        " on PostgreSQL. Three times, at a random row, the import or the undo is killed and started"
        " again, at times with the service. At the end, the names in the database are compared with"
        " the file, and the events with the rows.",
        _run,
        1,
        min_seconds=60,
    )
]
