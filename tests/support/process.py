"""The service as a user runs it: the command, as a process of its own, on a real socket."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def petstore(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command ``petstore`` to its end and return its exit status and output."""
    return subprocess.run(
        [sys.executable, "-m", "petstore", *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


class ServerProcess:
    """``petstore serve`` in ``folder``, on a free port of the loopback address."""

    def __init__(self, folder: Path, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self.database = f"sqlite:///{folder / 'petstore.db'}"
        self.log_path = folder / f"log-{self.port}.jsonl"
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "petstore", "serve", "--port", str(self.port)),
                    *("--database", self.database, "--log-format", "json", *arguments),
                ],
                cwd=folder,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        """The address of the service, without ``/v1``."""
        return f"http://127.0.0.1:{self.port}"

    def wait_until_ready(self, seconds: float = 20) -> None:
        """Wait until ``/readyz`` answers 200."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if httpx.get(f"{self.url}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            assert self.process.poll() is None, self.log_path.read_text()
            assert time.monotonic() < deadline, "the service did not get ready"
            time.sleep(0.01)

    def issue(self, plan: str = "enterprise", *arguments: str) -> str:
        """Issue a key on the command line and return its token."""
        issued = petstore(
            *("keys", "create", "--name", "test", "--plan", plan, *arguments),
            *("--database", self.database),
            cwd=self.folder,
        )
        assert issued.returncode == 0, issued.stderr
        return issued.stdout.strip()

    def log_lines(self) -> list[dict[str, Any]]:
        """Return what was logged so far."""
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]

    def stop(self, seconds: float = 15) -> int:
        """Send the stop signal, wait for the end and return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(seconds)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def kill(self) -> None:
        """End every process of the service at once, as a power cut would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()
