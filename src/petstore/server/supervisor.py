"""The main process: it starts the workers, replaces them and stops them."""

import ctypes
import itertools
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, connection, get_context
from typing import TypeAlias

from petstore.server.lifecycle import Lifecycle

Link: TypeAlias = connection.Connection
"""A pipe between the supervisor and a worker, for messages in both directions."""

Work: TypeAlias = Callable[[int, Link], None]
"""Runs a worker, given its id and its end of the link.

No two workers run under one id at a time. The worker prepares, and sends ``READY`` or the reason
why it cannot serve. It serves after ``SERVE``, and exits some time after ``LEAVE`` or a stop
signal.
"""

READY, SERVE, LEAVE = b"ready", b"serve", b"leave"

_STOPS = frozenset({signal.SIGINT, signal.SIGTERM})
_HANDLED = (signal.SIGHUP, *_STOPS)
# A worker that is not ready by then hangs, at a file or at a server that does not respond.
_START_TIMEOUT = 60
# A worker that exits is replaced this long after its own start, so a failing one does not spin.
_RESTART_SECONDS = 1
_PR_SET_PDEATHSIG = 1
_LOG = logging.getLogger(__name__)
_fork = get_context("fork")


class Supervisor:
    """Keeps one worker running for each of ``works`` until a stop signal (SIGINT or SIGTERM).

    The first ``serving`` of them serve clients: the service has started once they are ready, and
    ends if none of them can start. A worker that exits unexpectedly is replaced. SIGHUP replaces
    all, one after another: the next worker prepares, the old one is asked to leave, and once it has
    exited the next one works. So no two do the same work at a time, and if the next one cannot
    start, the old one stays. A worker is killed if it has not exited ``shutdown_timeout`` seconds
    after it was asked to, or if it hangs while it prepares.
    """

    def __init__(
        self,
        works: Sequence[Work],
        serving: int,
        shutdown_timeout: float,
        on_stop: Callable[[], None],
        lifecycle: Lifecycle,
    ) -> None:
        self._works = works
        self._serving = serving
        self._shutdown_timeout = shutdown_timeout
        self._on_stop = on_stop
        self._lifecycle = lifecycle
        self._workers: list[_Worker] = []
        self._starts_at = 0.0
        self._has_started = False
        self._is_reloading = False
        self._is_stopping = False
        self._status = 0
        self._signals: set[int] = set()

    def run(self) -> int:
        """Supervise until a stop signal and the exit of all workers; return the exit status."""
        with _received_signals(self._signals) as woken:
            self._lifecycle.starting()
            while self._step():
                connection.wait([woken.fileno(), *self._awaited()], self._seconds_until_due())
                with suppress(BlockingIOError):
                    woken.recv(4096)
        self._lifecycle.stopped(self._status)
        return self._status

    def _step(self) -> bool:
        """Do what is due now, and return whether to continue.

        Messages are read here alone, before anything depends on them: one that arrives later wakes
        the supervisor, and so does one that arrived while it could not run.
        """
        # Signals are read after this: a worker that exited by a stop signal to all was asked to.
        exited = [worker for worker in self._workers if worker.has_exited]
        for worker in self._workers:
            worker.receive()
        if self._signals & _STOPS:
            self._stop()
        elif signal.SIGHUP in self._signals and not self._is_stopping:
            self._signals.discard(signal.SIGHUP)
            self._reload()
        for worker in exited:
            self._workers.remove(worker)
            self._handle_exit(worker)
        for worker in self._workers:
            worker.kill_if_late()
        if self._is_stopping:
            return self._workers != []
        self._retire_next()
        if self._missing() and time.monotonic() >= self._starts_at:
            self._start_missing()
        self._let_serve()
        self._report_progress()
        return True

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._lifecycle.stopping()
            self._on_stop()
            for worker in self._workers:
                worker.stop(self._shutdown_timeout)

    def _reload(self) -> None:
        self._is_reloading = True
        for worker in self._workers:
            worker.is_outdated = True
        self._lifecycle.reload_requested()

    def _fail_reload(self, reason: str) -> None:
        self._is_reloading = False
        for worker in self._workers:
            worker.is_outdated = False
        self._lifecycle.reload_failed(reason)

    def _missing(self) -> list[int]:
        """Return the places of the workers to start: in a reload, that of one outdated too."""
        present = {worker.place for worker in self._workers}
        missing = [place for place in range(len(self._works)) if place not in present]
        outdated = self._first_outdated()
        if outdated and not missing and self._replacement_of(outdated) is None:
            return [outdated.place]
        return missing

    def _first_outdated(self) -> "_Worker | None":
        return next((worker for worker in self._workers if worker.is_outdated), None)

    def _replacement_of(self, outdated: "_Worker") -> "_Worker | None":
        # It may be outdated as well: then it is replaced in turn, so no place has a crowd.
        others = (worker for worker in self._workers if worker is not outdated)
        return next((worker for worker in others if worker.place == outdated.place), None)

    def _handle_exit(self, worker: "_Worker") -> None:
        if self._is_stopping:
            return
        if worker.is_leaving:
            self._lifecycle.worker_replaced(worker.pid)
            return
        serves = worker.place < self._serving
        self._lifecycle.worker_ended(worker.pid, worker.outcome, serves=serves)
        self._starts_at = worker.started + _RESTART_SECONDS
        if worker.is_ready:
            return
        if serves and not any(
            other.is_ready and other.place < self._serving for other in self._workers
        ):
            _LOG.error("no process can serve; the service ends")
            self._status = 1
            self._stop()
        elif self._is_reloading:
            self._fail_reload(f"process {worker.pid} did not start: {worker.outcome}")

    def _retire_next(self) -> None:
        are_well = all(worker.is_ready and not worker.is_leaving for worker in self._workers)
        outdated = self._first_outdated()
        if outdated and are_well and self._replacement_of(outdated):
            outdated.leave(self._shutdown_timeout)

    def _start_missing(self) -> None:
        used = {worker.worker_id for worker in self._workers}
        free = (number for number in itertools.count() if number not in used)
        try:
            for place in self._missing():
                self._workers.append(_Worker(self._works[place], next(free), place))
        except OSError as error:  # such as too little memory; try again later
            _LOG.error("no process can be started: %s", error)
            self._starts_at = time.monotonic() + _RESTART_SECONDS
            if self._is_reloading:
                self._fail_reload(f"no process can be started: {error}")

    def _let_serve(self) -> None:
        serving = {worker.place for worker in self._workers if worker.may_serve}
        for worker in self._workers:
            if worker.place not in serving:
                serving.add(worker.place)
                worker.serve()

    def _report_progress(self) -> None:
        serving = [worker for worker in self._workers if worker.place < self._serving]
        if len(serving) != self._serving or not all(worker.is_ready for worker in serving):
            return
        if any(worker.is_outdated or worker.is_leaving for worker in self._workers):
            return
        if not self._has_started:
            self._has_started = True
            self._lifecycle.started()
        if self._is_reloading:
            self._is_reloading = False
            self._lifecycle.reload_ended()

    def _awaited(self) -> Iterator[int | Link]:
        for worker in self._workers:
            yield worker.sentinel
            if not worker.is_ready:
                yield worker.link

    def _seconds_until_due(self) -> float | None:
        due = min((worker.deadline for worker in self._workers), default=math.inf)
        if not self._is_stopping and self._missing():
            due = min(due, self._starts_at)
        return None if due == math.inf else max(0, due - time.monotonic())


class _Worker:
    """A worker process that does the work at a ``place`` among all works.

    It is killed at its ``deadline`` if it is not ready by then, or was asked to exit and has not.
    """

    def __init__(self, work: Work, worker_id: int, place: int) -> None:
        self.worker_id = worker_id
        self.place = place
        self.started = time.monotonic()
        self.deadline = self.started + _START_TIMEOUT
        self.is_outdated = False
        self.is_leaving = False
        self.may_serve = False
        self.is_ready = False
        self._failure = ""
        self.link, other_end = Pipe()
        with other_end:
            arguments = work, worker_id, other_end, os.getpid()
            self._process = _fork.Process(target=_run_worker, args=arguments, daemon=True)
            # The worker inherits the signal handlers: none must run before it has its own.
            signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
            try:
                self._process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        self.sentinel = self._process.sentinel
        self.pid = self._process.pid or 0

    def receive(self) -> None:
        """Read whether it has reported that it can serve, or why it cannot."""
        if self.is_ready or not self.link.poll():
            return
        with suppress(EOFError, ConnectionError):  # it exited before
            message = self.link.recv_bytes()
            self.is_ready = message == READY
            self._failure = "" if self.is_ready else message.decode()
            if self.is_ready and not self.is_leaving:
                self.deadline = math.inf

    @property
    def has_exited(self) -> bool:
        return not self._process.is_alive()

    @property
    def outcome(self) -> str:
        if self._failure:
            return self._failure
        status = self._process.exitcode or 0
        return f"exit status {status}" if status >= 0 else f"killed by signal {-status}"

    def serve(self) -> None:
        self.may_serve = True
        self._send(SERVE)

    def leave(self, timeout: float) -> None:
        """Ask it to exit because another worker takes its place."""
        self._expect_exit(timeout)
        self._send(LEAVE)

    def stop(self, timeout: float) -> None:
        """Ask it to exit because the service stops."""
        self._expect_exit(timeout)
        self._process.terminate()

    def kill_if_late(self) -> None:
        if time.monotonic() >= self.deadline:
            self.deadline = math.inf
            action = "end" if self.is_ready or self.is_leaving else "start"
            _LOG.warning("process %d did not %s in time and was killed", self.pid, action)
            self._process.kill()

    def _expect_exit(self, timeout: float) -> None:
        self.is_leaving = True
        self.deadline = time.monotonic() + timeout

    def _send(self, message: bytes) -> None:
        with suppress(ConnectionError):  # it has just exited
            self.link.send_bytes(message)


def _run_worker(work: Work, worker_id: int, link: Link, supervisor: int) -> None:
    """Run a worker in its new process, without the signal handlers of the ``supervisor``."""
    if sys.platform == "linux":
        # If the supervisor is killed, its workers must not keep the port.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:  # it was killed before
        return
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
    work(worker_id, link)


@contextmanager
def _received_signals(numbers: set[int]) -> Iterator[socket.socket]:
    """Add signals to ``numbers`` until the block ends, and ignore them afterwards.

    The system writes a byte to the socket for each, which wakes the supervisor. Among very many
    signals, some bytes do not fit, so they do not tell which signals came.
    """
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0)
        writer.settimeout(0)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in _HANDLED:
            signal.signal(number, lambda number, _: numbers.add(number))
        try:
            yield reader
        finally:
            signal.set_wakeup_fd(-1)
            for number in _HANDLED:
                signal.signal(number, signal.SIG_IGN)
