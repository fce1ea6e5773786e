"""The supervisor: of a process that hangs before it can serve, and late."""

import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.process import UNREACHABLE

TIMEOUT = 30  # seconds, for what should happen at once
PROGRAM = """
import logging, os, signal, sys, time
from pathlib import Path
from petstore.server import supervisor

starts_left, after_fork = int(sys.argv[1]), int(sys.argv[2])
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
    time.sleep(60)


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


class Told(logging.Handler):
    def emit(self, record):
        if record.msg.name == "worker_ended":
            print(str(record.msg).partition(": ")[2], flush=True)
        elif record.msg.name != "stop_started":
            print("started" if record.msg.name == "started" else f"starts {starts}", flush=True)


starts = 0
supervisor._Worker, supervisor._run_worker = Counted, run_late
supervisor._LOG.addHandler(Told())
supervisor._LOG.setLevel(logging.INFO)
supervisor._LOG.addFilter(lambda record: isinstance(record.msg, supervisor.LogEvent))
main = supervisor.Supervisor([work], 1, 1, lambda: None, "")
sys.exit(main.run())
"""

INTERRUPTED_IN_A_FINALIZER = f"""
from petstore.server import supervisor

{UNREACHABLE}

Unreachable()
main = supervisor.Supervisor([lambda worker_id, link: None], 1, 1, lambda: None, "")
raise SystemExit(main.run())
"""


@pytest.fixture
def supervised(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A supervisor of one process, with so many starts that do not hang.

    After each fork it sends itself a signal, if that is not 0. One that stops it lasts until the
    new process is ready; one that kills it comes before the new process does anything.
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
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], TIMEOUT)
    assert readable, "it stands still"
    return process.stdout.readline()


@pytest.mark.parametrize("supervised", [(0, 0)], indirect=True)
def test_a_service_whose_only_process_hangs_ends(supervised: subprocess.Popen[str]) -> None:
    assert supervised.wait() == 1


@pytest.mark.parametrize("supervised", [(9, signal.SIGSTOP)], indirect=True)
def test_a_process_that_is_ready_early_is_neither_overlooked_nor_killed(
    supervised: subprocess.Popen[str],
) -> None:
    assert supervised.stdout is not None
    assert next_line(supervised) == "started\n"
    supervised.terminate()
    assert supervised.stdout.read() == "starts 1\n"


@pytest.mark.parametrize("supervised", [(9, signal.SIGKILL)], indirect=True)
def test_a_process_that_starts_after_its_supervisor_ended_does_not_serve(
    supervised: subprocess.Popen[str],
) -> None:
    said, _ = supervised.communicate(timeout=TIMEOUT)  # both have ended, and closed their output
    assert said == ""


def test_ctrl_c_while_garbage_is_collected_at_the_start_stops_the_service() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IN_A_FINALIZER],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
