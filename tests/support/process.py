"""The service as a user runs it: the command, as a process of its own, on a real socket."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from click.testing import CliRunner

from petstore.cli.main import main
from support.waiting import within

UNREACHABLE = """
import os, signal


class Unreachable:
    # Interrupts its process once it is collected as garbage.

    def __init__(self):
        self.itself = self

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        bool()  # where the interpreter looks for signals
"""

_STARTS = 3
# Becomes a command, with a socket as systemd passes it: file descriptor 3, for this process alone.
_WITH_SOCKET = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.argv[2], sys.argv[2:])
"""


# Below those that Linux gives to whoever asks for any, apart from those of other workers. Each
# process begins elsewhere: else two suites on one machine take the same ones at the same time.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_FIRST_PORT = 10_000 + 1_000 * (_WORKER % 22)
_PORTS = cycle(_FIRST_PORT + (os.getpid() + number) % 1_000 for number in range(1_000))


def free_port() -> int:
    """Return a free port, which no other test gets meanwhile."""
    return next(port for port in _PORTS if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def petstore(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "petstore", *arguments],
        cwd=cwd,
        env={**os.environ, "PETSTORE_LOG_FORMAT": "text", **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def is_ready(url: str) -> bool:
    # It is asked a hundred times a second, and httpx takes ten times as long.
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


class ServerProcess:
    """``petstore serve`` in ``folder``, on a free port of the loopback address.

    Its ``database`` is a SQLite file there, unless another is given. It logs to ``log_path``, or to
    the file descriptor ``stderr``. Unless it ``delivers``, it has no process for webhooks. It
    listens on ``listener`` if that is given, as systemd does it.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        database: str = "",
        env: dict[str, str] | None = None,
        stderr: int | None = None,
        delivers: bool = False,
        listener: socket.socket | None = None,
    ) -> None:
        self.folder = folder
        self.database = database or f"sqlite:///{folder / 'petstore.db'}"
        self.arguments = arguments
        self._env = {**os.environ, **(env or {})}
        self._stderr = stderr
        self._delivers = delivers
        self._listener = listener
        self._starts = 0
        self._start()

    def _start(self) -> None:
        self._starts += 1
        self.port = self._listener.getsockname()[1] if self._listener else free_port()
        self.log_path = self.folder / f"log-{self.port}.jsonl"
        passed = [self._listener.fileno()] if self._listener else []
        prefix = [sys.executable, "-IS", "-c", _WITH_SOCKET, *map(str, passed)] if passed else []
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*prefix, *self.command()],
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log if self._stderr is None else self._stderr,
                text=True,
                start_new_session=True,
                pass_fds=passed,
            )

    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "petstore", "serve", "--port", str(self.port)),
            *("--database", self.database, "--log-format", "json"),
            *(() if self._delivers else ("--no-deliveries",)),
            *self.arguments,
        ]

    def environment(self) -> dict[str, str]:
        return self._env

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def worker(self) -> int:
        (worker,) = self.workers()
        return worker

    def workers(self) -> list[int]:
        """Return the ids of all worker processes, including starting and ending ones."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        children = (thread / "children" for thread in threads)
        return sorted(int(pid) for file in children for pid in file.read_text().split())

    def wait_until_ready(self, seconds: float = 30) -> None:
        assert within(seconds, self._is_ready), "the service did not get ready"

    def _is_ready(self) -> bool:
        if self.process.poll() is not None:
            said = self.log_path.read_text()
            # A port that was free a moment ago may have been given to somebody else.
            assert "cannot listen" in said, said
            assert self._starts < _STARTS, said
            self._close()
            self._start()
        return is_ready(self.url)

    def issue(self, plan: str = "enterprise", *arguments: str) -> str:
        """Issue a key by the command, run in this process, and return its token."""
        words = ["keys", "create", "--name", "test", "--plan", plan, *arguments]
        with ThreadPoolExecutor(1) as thread:  # beside the loop of an asynchronous test
            issued = thread.submit(
                CliRunner().invoke, main, [*words, "--database", self.database]
            ).result()
        assert issued.exit_code == 0, issued.output
        return issued.stdout.strip()

    def log_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]

    def stop(self, seconds: float = 30) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(seconds)
        self._close()
        return status

    def restart(self, *arguments: str) -> None:
        assert self.stop() == 0
        self.arguments = arguments or self.arguments
        self._start()

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        self._close()

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()


class GranianProcess(ServerProcess):
    """Granian with ``petstore.asgi:app``, with the options of ``petstore serve`` as variables."""

    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "granian", "--interface", "asgi", "--port", str(self.port)),
            *("--no-log", "--workers-kill-timeout", "5", "petstore.asgi:app"),
        ]

    def environment(self) -> dict[str, str]:
        options = dict(zip(self.arguments[::2], self.arguments[1::2], strict=True))
        options = {"--database": self.database, "--log-format": "json"} | options
        variables = {
            f"PETSTORE_{name.removeprefix('--').replace('-', '_').upper()}": value
            for name, value in options.items()
        }
        return super().environment() | variables


@contextmanager
def serving(
    folder: Path, *arguments: str, kind: type[ServerProcess] = ServerProcess, **options: Any
) -> Iterator[ServerProcess]:
    """Run a service until the block ends, on a store of its own unless ``database`` is given."""
    server = kind(folder, *arguments, **options)
    try:
        server.wait_until_ready()
        yield server
    finally:
        try:
            server.stop()
        except subprocess.TimeoutExpired:
            server.kill()
            raise


Serve: TypeAlias = Callable[..., AbstractContextManager[ServerProcess]]
"""Takes a folder and options; runs a service with a store of its own until the block ends."""
StartServer: TypeAlias = Callable[..., ServerProcess]
"""Takes options of ``petstore serve``; returns the service once it is ready."""


@contextmanager
def servers_in(folder: Path) -> Iterator[StartServer]:
    """Give a function that starts services on one database in ``folder``, until the block ends."""
    with ExitStack() as started:
        yield lambda *arguments, **options: started.enter_context(
            serving(folder, *arguments, **options)
        )
