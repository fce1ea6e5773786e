"""Start a server, wait for its first response, and read what its processes spend."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_TICK = os.sysconf("SC_CLK_TCK")
_LONGEST_START = 30
_LONGEST_STOP = 15


class Server(NamedTuple):
    """The first process of a server, its port, and the seconds until its first response."""

    pid: int
    port: int
    seconds_to_ready: float

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def cpu_seconds(self) -> float:
        """The CPU of its processes, including ended ones."""
        return tree_cpu_seconds(self.pid)

    @property
    def megabytes(self) -> float:
        """The resident sets of its processes; what two of them share counts twice."""
        return _tree_megabytes(self.pid, "VmRSS")

    @property
    def proportional_megabytes(self) -> float:
        """The proportional set sizes of its processes (PSS): what they share counts once."""
        return _tree_megabytes(self.pid, "Pss", "smaps_rollup")


@contextmanager
def running(
    command: Sequence[str | Path],
    port: int,
    log: Path,
    path: str = "/healthz",
    env: Mapping[str, str] | None = None,
    core: str | None = None,
) -> Iterator[Server]:
    """Run a server until the block ends; it is ready when ``path`` returns 200.

    It runs on the processor core ``core``, or where this process may; and ends with this process.

    Raises:
        RuntimeError: it ended or did not get ready; the message has what it logged.
    """
    pinned = ("taskset", "-c", core) if core else ()
    whole = ("setpriv", "--pdeathsig", "TERM", *pinned, *command)
    started = time.perf_counter()
    with log.open("wb") as out:
        process = subprocess.Popen(whole, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
    try:
        _wait_for_response(process, port, path, log)
        yield Server(process.pid, port, time.perf_counter() - started)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_LONGEST_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_response(process: subprocess.Popen[bytes], port: int, path: str, log: Path) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".encode()
    deadline = time.perf_counter() + _LONGEST_START
    while process.poll() is None and time.perf_counter() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
            probe.sendall(request)
            if b" 200 " in probe.recv(65536):
                return
        time.sleep(0.002)
    msg = f"no response on port {port}:\n{log.read_text(errors='replace')[-2000:]}"
    raise RuntimeError(msg)


def leave_one_core() -> str | None:
    """Keep this process and what it starts off the first core, and return that if there are two."""
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        return None
    os.sched_setaffinity(0, others)
    return str(first)


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tree_cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and all its descendants, including ended ones."""
    while True:
        own = sum(_ticks(pid))
        # A child that ends meanwhile counts with the ended ones.
        with suppress(FileNotFoundError, ProcessLookupError):
            return own / _TICK + sum(tree_cpu_seconds(child) for child in _children(pid))


def _tree_megabytes(pid: int, field: str, file: str = "status") -> float:
    return sum(memory_megabytes(each, field, file) for each in processes(pid))


def memory_megabytes(pid: int, field: str = "VmRSS", file: str = "status") -> float:
    """Return one measure of a process's memory (a ``file`` of proc(5), in /proc/pid) in megabytes.

    One that has ended, and whose end nobody has asked for yet, has none.
    """
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    line = next((line for line in lines if line.startswith(f"{field}:")), f"{field}: 0 kB")
    return int(line.split()[1]) / 1024


def processes(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    return [pid, *(one for child in _children(pid) for one in processes(child))]


def _children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


def _ticks(pid: int) -> list[int]:
    """Return the ticks of a process: user, system, and those of its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]
