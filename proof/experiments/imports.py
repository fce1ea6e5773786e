"""Imports that are killed in the middle, and go on afterwards."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple, Protocol

import httpx

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.judging import judge_feed
from proof.processes import Program
from support.postgres import postgres_server
from support.visitor import cookies_of_administrator, issue_for_console
from support.waiting import within

_SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
_PAUSE_SECONDS = 0.05


class Importer(Protocol):
    """Imports a file. It can be stopped at any point, and starts again where it was."""

    def start(self) -> None:
        """Begin, or go on."""
        ...

    def stop(self) -> None:
        """Stop at once, in the middle of whatever it does."""
        ...

    def is_done(self) -> bool:
        """Return whether all of the file is imported."""
        ...


def by_command(deployment: Deployment, file: Path) -> Importer:
    """Return ``petstore pets import``; the service may have moved to another port."""
    return _command(deployment, file, "pets", "import", str(file))


def _command(deployment: Deployment, file: Path, *words: str) -> Program:
    return Program(
        deployment.folder,
        file.with_suffix(".log"),
        {**os.environ, "PETSTORE_KEY": deployment.token},
        lambda: ("-m", "petstore", *words, "--url", f"{deployment.server.url}/v1"),
    )


class Person:
    """Somebody who sends a file in the console, and then sends the form that adds the next rows."""

    def __init__(self, deployment: Deployment, file: Path) -> None:
        self._deployment = deployment
        self._file = file
        self._page, self._action = "", "run"
        self._cookies = httpx.Cookies()
        self._is_leaving = Event()
        self._is_done = False

    def start(self) -> None:
        """Open a browser, with the cookie and the page of the one before."""
        self._is_leaving.clear()
        self._thread = Thread(target=self._visit)
        self._thread.start()

    def stop(self) -> None:
        self._is_leaving.set()
        self._thread.join()

    def is_done(self) -> bool:
        return self._is_done

    def undone(self) -> "Person":
        """Send the form that undoes the import from now on: only its owner may."""
        self._action, self._is_done = "undo", False
        return self

    def _visit(self) -> None:
        while not (self._is_done or self._is_leaving.wait(_PAUSE_SECONDS)):
            with suppress(httpx.TransportError):
                self._send()

    def _send(self) -> None:
        """Send what comes next: the key, the file, or the form that goes on.

        Raises:
            httpx.TransportError: there was no response; nobody knows what was done.
        """
        url = f"{self._deployment.server.url}/console"
        with httpx.Client(headers=_SAME_ORIGIN, cookies=self._cookies, timeout=10) as browser:
            if not self._cookies:
                server = self._deployment.server
                self._cookies = cookies_of_administrator(server, issue_for_console(server))
            elif not self._page:
                file = ("pets.csv", self._file.read_bytes(), "text/csv")
                sent = browser.post(f"{url}/import", files={"file": file})
                self._page = sent.headers.get("location", "").removeprefix("/console")
            else:
                form = {"Content-Type": "application/x-www-form-urlencoded"}
                # The page of an import with rows to add is 200, and leads back once all are added.
                page = browser.post(f"{url}{self._page}/{self._action}", headers=form)
                self._is_done = page.is_redirect


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
    importer = way.importer(deployment, file)
    _disturb(trial, deployment, importer, moments)
    times = Counter(pet.tag for pet in deployment.rows().pets if pet.tag.startswith(way.name))
    wrong = [(name, times[name]) for name in {*names, *times} if times[name] != 1]
    trial.expect(not wrong, f"{way.name}: {len(wrong)} rows not there once, such as {wrong[:5]}")
    trial.count("rows imported", len(times))
    trial.count(f"imports {way.name}")
    undoing: Importer = _command(deployment, file, "imports", "undo", "1")
    if isinstance(importer, Person):
        undoing = importer.undone()
    moments = [there + way.rows - trial.random.randrange(way.rows) for _ in range(_KILLS)]
    _disturb(trial, deployment, undoing, moments, is_undo=True)
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
