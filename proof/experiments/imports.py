"""Imports that are killed in the middle, and go on afterwards."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from proof.deployments import Deployment, deployed, postgres_server
from proof.experiment import Experiment, Trial
from proof.importers import Importer, Person, into_database, over_http
from proof.judging import judge_feed
from support.waiting import within

_KILLS = 3
_RECOVERY_SECONDS = 30.0


class _Way(NamedTuple):
    """A way to import a file of so many rows."""

    name: str
    importer: Callable[[Deployment, Path], Importer]
    rows: int


_WAYS = (
    _Way("into the database", into_database, 5_000),
    _Way("over HTTP", over_http, 150),
    _Way("in the console", Person, 4_000),
)


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
    there = _animals(deployment)
    with _importing(way.importer(deployment, file)) as importer:
        for _ in range(_KILLS):
            _wait_until(deployment, importer, there + trial.random.randrange(way.rows))
            if not importer.is_done():
                _kill(trial, deployment, importer)
        is_done = within(_RECOVERY_SECONDS, importer.is_done)
    trial.expect(is_done, f"{way.name}: the import did not go on to its end")
    times = Counter(pet.tag for pet in deployment.rows().pets if pet.tag.startswith(way.name))
    wrong = {name: times[name] for name in {*names, *times} if times[name] != 1}
    some = dict(list(wrong.items())[:5])
    trial.expect(not wrong, f"{way.name}: {len(wrong)} rows are not there once, such as {some}")
    trial.count("rows imported", len(times))
    trial.count(f"imports {way.name}")


def _wait_until(deployment: Deployment, importer: Importer, animals: int) -> None:
    """Wait until there are so many animals, or the import has ended."""
    within(_RECOVERY_SECONDS, lambda: importer.is_done() or _animals(deployment) >= animals)


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


def _animals(deployment: Deployment) -> int:
    """Return how many animals there are, 0 if the service does not tell."""
    try:
        return sum(deployment.inventory().values())
    except httpx.HTTPError:
        return 0


EXPERIMENTS = [
    Experiment(
        "killed imports",
        "An import that is killed, or whose service is killed, goes on when it is started again:"
        " each row of the file is added exactly once, and has its event.",
        "Files are imported into the database and over HTTP by `petstore pets import`, and in the"
        " console; on SQLite and on PostgreSQL. Three times, at a random row, the import is killed"
        " and started again, at times with the service. At the end, the names in the database are"
        " compared with the file, and the events with the rows.",
        _run,
        1,
        min_seconds=60,
    )
]
