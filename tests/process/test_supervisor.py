"""The supervisor: of a process that hangs before it can serve, in a storm of signals, and late."""

import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

TIMEOUT = 30  # seconds, for what should happen at once
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from petstore.server import supervisor
from petstore.server.lifecycle import Lifecycle

starts_left, signals, after_fork = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
# A supervisor that stands still is always too late for the start of a process.
supervisor._START_TIMEOUT = 0 if after_fork else 3
supervisor._RESTART_SECONDS = 0.1
run_worker, supervisor_id = supervisor._run_worker, os.getpid()


def state_of_supervisor():
    return Path(f"/proc/{supervisor_id}/stat").read_text().rpartition(")")[2].split()[0]


def until(condition):
    while not condition():
        time.sleep(0.005)


def work(worker_id, link):
    if starts > starts_left:
        time.sleep(60)
    if after_fork:
        until(lambda: state_of_supervisor() == "T")
    link.send_bytes(supervisor.READY)
    if after_fork:
        os.kill(supervisor_id, signal.SIGCONT)
    while link.recv_bytes() != supervisor.LEAVE:
        pass


def run_late(*arguments):
    if after_fork == signal.SIGKILL:
        until(lambda: os.getppid() != supervisor_id)
    run_worker(*arguments)


class Counted(supervisor._Worker):
    def __init__(self, *arguments):
        global starts
        starts += 1
        super().__init__(*arguments)
        if after_fork:
            os.kill(supervisor_id, after_fork)


class Told(Lifecycle):
    def started(self):
        print("started", flush=True)
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGHUP)
        if signals:
            os.kill(os.getpid(), signal.SIGTERM)

    def reload_ended(self):
        print("reloaded", flush=True)

    def reload_failed(self, reason):
        print("failed", reason.partition(": ")[2], len(main._workers), flush=True)

    def stopped(self, status):
        print("starts", starts, flush=True)


starts = 0
supervisor._Worker, supervisor._run_worker = Counted, run_late
main = supervisor.Supervisor([work], 1, 1, lambda: None, Told(1, None))
sys.exit(main.run())
"""


@pytest.fixture
def supervised(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A supervisor of one process, with so many starts that do not hang and signals to itself.

    After each fork it sends itself a last signal, if that is not 0. One that stops it lasts until
    the new process is ready; one that kills it comes before the new process does anything.
    """
    arguments = (str(int(number)) for number in request.param)
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


def next_line(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], TIMEOUT)
    assert readable, "it stands still"
    return process.stdout.readline()


@pytest.mark.parametrize("supervised", [(1, 0, 0)], indirect=True)
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


@pytest.mark.parametrize("supervised", [(0, 0, 0)], indirect=True)
def test_a_service_whose_only_process_hangs_ends(supervised: subprocess.Popen[str]) -> None:
    assert supervised.wait() == 1


@pytest.mark.parametrize("supervised", [(9, 5000, 0)], indirect=True)
def test_a_stop_signal_is_not_lost_among_many_others(supervised: subprocess.Popen[str]) -> None:
    assert supervised.stdout is not None
    assert supervised.stdout.read() == "started\nstarts 1\n"
    assert supervised.wait() == 0


@pytest.mark.parametrize("supervised", [(9, 0, signal.SIGSTOP)], indirect=True)
def test_a_process_that_is_ready_before_the_supervisor_looks_is_neither_overlooked_nor_killed(
    supervised: subprocess.Popen[str],
) -> None:
    assert supervised.stdout is not None
    said = [next_line(supervised)]
    for _ in range(5):
        supervised.send_signal(signal.SIGHUP)
        said.append(next_line(supervised))
    supervised.terminate()
    assert [*said, supervised.stdout.read()] == ["started\n", *["reloaded\n"] * 5, "starts 6\n"]


@pytest.mark.parametrize("supervised", [(9, 0, signal.SIGKILL)], indirect=True)
def test_a_process_whose_supervisor_has_ended_before_it_began_does_not_serve(
    supervised: subprocess.Popen[str],
) -> None:
    said, _ = supervised.communicate(timeout=TIMEOUT)  # both have ended, and closed their output
    assert said == ""
