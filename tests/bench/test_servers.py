"""A server starts, or its log says why not, and it is always stopped."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from servers import free_port, running
from support.waiting import within

BENCH = Path(__file__).parent.parent.parent / "bench"
BEGIN_AND_WAIT = """
import sys
from pathlib import Path
from servers import running

port = int(sys.argv[1])
command = (sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port))
with running(command, port, Path("log"), "/"):
    print("ready", flush=True)
    sys.stdin.read()
"""


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_that_ends_at_once_fails_with_what_it_said(tmp_path: Path) -> None:
    command = ("sh", "-c", "echo 'no such table'; exit 3")
    with (
        pytest.raises(RuntimeError, match="no such table"),
        running(command, free_port(), tmp_path / "log"),
    ):
        pass


def test_a_server_ends_with_the_bench_though_that_is_killed(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-c", BEGIN_AND_WAIT, str(port)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(BENCH)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as bench:
        assert bench.stdout is not None
        assert bench.stdout.readline() == "ready\n"
        assert listens(port)
        bench.kill()
    assert within(30, lambda: not listens(port))
