"""A peer: a service that implements interface.md with other tools.

A peer is a folder beside this file with programs of a few lines:

- ``build`` makes it ready to start, inside its folder, from locked versions. Running it again is
  quick. It is not there if there is nothing to build.
- ``start`` becomes the server (``exec``): one process that listens on HOST and PORT. It works on
  DATABASE, the path of a SQLite file or a postgresql:// URL; with REDIS, a redis:// URL, it counts
  there. WORKERS is 1. ``GET /healthz`` returns 200 once it is ready; SIGTERM stops it.
- ``versions`` prints in one line the versions of its parts.

Tables, indexes and triggers are those of ``src/petstore/databases/migrations``. The file is filled
by this service's own commands and has keys in it.
"""

import os
import shutil
import subprocess
import sys
from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from servers import Server, free_port, running
from stage import Environment

_FOLDER = Path(__file__).parent
EVERYTHING = ("list", "get", "create", "inventory", "order", "keys", "limits")


class Peer(NamedTuple):
    """A peer: its folder, what to call it, the programs it needs and what it does.

    ``needs`` maps a program, or a path, to the Debian package that has it. With ``shared`` it can
    work on PostgreSQL and Redis too.
    """

    name: str
    title: str
    needs: dict[str, str]
    does: tuple[str, ...] = EVERYTHING
    shared: bool = False

    def build(self) -> None:
        """Make it ready to start.

        Raises:
            CalledProcessError: it cannot be built; standard error has said why.
        """
        if (program := _FOLDER / self.name / "build").exists():
            subprocess.run([program], cwd=program.parent, env=_environment(), check=True)

    @property
    def versions(self) -> str:
        """The versions of its parts."""
        program = _FOLDER / self.name / "versions"
        output = subprocess.run(
            [program], cwd=program.parent, env=_environment(), check=True, stdout=subprocess.PIPE
        ).stdout
        return output.decode().strip()

    @contextmanager
    def started(self, environment: Environment, core: str | None = None) -> Iterator[Server]:
        """Run it until the block ends, on the processor core ``core`` if that is given.

        Raises:
            RuntimeError: it ended or did not get ready; the message has what it logged.
        """
        port = free_port()
        env = {
            **_environment(),
            "HOST": "127.0.0.1",
            "PORT": str(port),
            "WORKERS": "1",
            "DATABASE": environment.database,
            "REDIS": environment.redis,
        }
        program = _FOLDER / self.name / "start"
        with running([program], port, environment.log, env=env, core=core) as server:
            yield server


_GO = "/usr/share/gocode/src/github.com"
_GO_PACKAGES = {
    f"{_GO}/mattn/go-sqlite3": "golang-github-mattn-go-sqlite3-dev",
    f"{_GO}/jackc/pgx/v4": "golang-github-jackc-pgx-v4-dev",
    f"{_GO}/gomodule/redigo": "golang-github-gomodule-redigo-dev",
}

PEERS = (
    Peer("petstore", "Petstore", {}, shared=True),
    Peer("fastapi", "FastAPI + SQLAlchemy + slowapi", {}, shared=True),
    Peer("fastify", "Fastify + better-sqlite3", {"node": "nodejs", "npm": "npm"}),
    Peer("go", "Go net/http", {"go": "golang-go", "gcc": "gcc", **_GO_PACKAGES}, shared=True),
    Peer("nginx", "nginx, the same bytes", {"nginx": "nginx-light"}, ("list",)),
)


def peer(name: str) -> Peer:
    """Return the peer of that name.

    Raises:
        ValueError: no peer has this name.
    """
    for one in PEERS:
        if one.name == name:
            return one
    msg = f"there is no peer {name!r}, only {', '.join(one.name for one in PEERS)}"
    raise ValueError(msg)


def missing_packages(*needs: dict[str, str]) -> list[str]:
    """Return the Debian packages of the programs and paths that this machine does not have."""
    path = _environment()["PATH"]
    return sorted(
        package
        for part, package in ChainMap(*needs).items()
        if not Path(part).exists() and shutil.which(part, path=path) is None
    )


def _environment() -> dict[str, str]:
    """Return the environment of a peer's programs: this Python's commands come first."""
    own = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{own}:{os.environ.get('PATH', '')}:/usr/sbin"}
