"""The supervisor: of a process that hangs before it can serve, and in a storm of signals."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

PROGRAM = """
import os, signal, sys, time
from petstore.server import supervisor
from petstore.server.lifecycle import Lifecycle

supervisor._START_TIMEOUT = 3
supervisor._RESTART_SECONDS = 0.1
starts_left, signals = map(int, sys.argv[1:])


def work(worker_id, link):
    if starts > starts_left:
        time.sleep(60)
    link.send_bytes(supervisor.READY)
    while link.recv_bytes() != supervisor.LEAVE:
        pass


class Counted(supervisor._Worker):
    def __init__(self, *arguments):
        global starts
        starts += 1
        super().__init__(*arguments)


class Told(Lifecycle):
    def started(self):
        print("started", flush=True)
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGHUP)
        if signals:
            os.kill(os.getpid(), signal.SIGTERM)

    def reload_failed(self, reason):
        print("failed", reason.partition(": ")[2], len(main._workers), flush=True)

    def stopped(self, status):
        print("starts", starts, flush=True)


starts = 0
supervisor._Worker = Counted
main = supervisor.Supervisor([work], 1, 1, lambda: None, Told(1, None))
sys.exit(main.run())
"""


@pytest.fixture
def supervised(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A supervisor of one process, with so many starts that do not hang and signals to itself."""
    arguments = map(str, request.param)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("supervised", [(1, 0)], indirect=True)
def test_a_next_process_that_hangs_ends_the_reload(supervised: subprocess.Popen[str]) -> None:
    assert supervised.stdout is not None
    assert supervised.stdout.readline() == "started\n"
    supervised.send_signal(signal.SIGHUP)
    killed = supervised.stdout.readline()
    assert killed.endswith(" did not start in time and was killed\n")
    lines = iter(supervised.stdout.readline, "failed killed by signal 9 1\n")
    assert all(" exited unexpectedly: " in line for line in lines)
    with pytest.raises(subprocess.TimeoutExpired):
        supervised.wait(0.5)
    supervised.terminate()
    assert supervised.stdout.read() == "starts 2\n"  # no third for a reload that has failed
    assert supervised.wait() == 0


@pytest.mark.parametrize("supervised", [(0, 0)], indirect=True)
def test_a_service_whose_only_process_hangs_ends(supervised: subprocess.Popen[str]) -> None:
    assert supervised.wait() == 1


@pytest.mark.parametrize("supervised", [(9, 5000)], indirect=True)
def test_a_stop_signal_is_not_lost_among_many_others(supervised: subprocess.Popen[str]) -> None:
    assert supervised.stdout is not None
    assert supervised.stdout.read() == "started\nstarts 1\n"
    assert supervised.wait() == 0
