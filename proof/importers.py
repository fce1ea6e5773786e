"""Ways to import a file of pets: the command, and a person in the console. Each goes on anew."""

import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

import httpx

from proof.deployments import Deployment
from proof.processes import Program
from support.staff import cookies_of_administrator, issue_for_console

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


def undone(deployment: Deployment, file: Path, import_id: int) -> Importer:
    """Return ``petstore imports undo``."""
    return _command(deployment, file, "imports", "undo", str(import_id))


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
        self._page = ""
        self._cookies = httpx.Cookies()
        self._is_leaving = Event()
        self._is_done = False

    def start(self) -> None:
        """Open a browser, with the cookie and the page of the one before."""
        self._is_leaving.clear()
        self._thread = Thread(target=self._visit)
        self._thread.start()

    def stop(self) -> None:
        """Close the browser."""
        self._is_leaving.set()
        self._thread.join()

    def is_done(self) -> bool:
        """Return whether the page says that all rows were added."""
        return self._is_done

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
                page = browser.post(f"{url}{self._page}/run", headers=form)
                self._is_done = page.is_redirect
