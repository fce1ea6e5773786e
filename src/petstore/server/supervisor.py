"""The main process: it starts the workers, replaces them and stops them."""

import ctypes
import gc
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

from petstore.logs import LogEvent

Link: TypeAlias = connection.Connection  # the end of a pipe from a worker to the supervisor
Work: TypeAlias = Callable[[int, Link], None]
"""Runs a worker, given its id and its end of the link, until a stop signal.

It sends ``READY`` or the reason why it cannot work, and later ``NEEDS_OTHERS`` if workers that do
not serve are to start. No two workers run under one id at a time.
"""

READY = b"ready"
NEEDS_OTHERS = b"needs others"

ENDS_SERVICE = 3  # exit status of a worker that must not be replaced before all others have exited
_STOPS = frozenset({signal.SIGINT, signal.SIGTERM})
# A worker that is not ready by then hangs, at a file or at a server that does not respond.
_START_TIMEOUT = 60
# A worker that exits is replaced this long after its own start, so a failing one does not spin.
_RESTART_SECONDS = 1
_PR_SET_PDEATHSIG = 1
_LOG = logging.getLogger(__name__)
_fork = get_context("fork")


def notify(*assignments: str) -> None:
    """Tell the service manager, if there is one (sd_notify(3)): never wait, ignore failures."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # an abstract name
        address = f"\0{address[1:]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender, suppress(OSError):
        sender.settimeout(0)
        sender.sendto("\n".join(assignments).encode(), address)


class Supervisor:
    """Keeps one worker running for each of ``works`` until a stop signal (SIGINT or SIGTERM).

    The first ``serving`` of them serve clients: the service has started once they are ready, and
    ends if none of them can start. The others start once one of these needs them. A worker that
    exits unexpectedly is replaced, unless its status is ``ENDS_SERVICE``. A worker is killed if it
    has not exited ``shutdown_timeout`` seconds after it was asked to, or if it hangs while it
    prepares. The log and the service manager learn of each of these events, and of the ``url``.
    """

    def __init__(
        self,
        works: Sequence[Work],
        serving: int,
        shutdown_timeout: float,
        on_stop: Callable[[], None],
        url: str,
    ) -> None:
        self._works = works
        self._serving = self._wanted = serving
        self._shutdown_timeout = shutdown_timeout
        self._on_stop = on_stop
        self._url = url
        self._workers: list[_Worker] = []
        self._starts_at = 0.0
        self._has_started = False
        self._is_stopping = False
        self._status = 0
        self._signals: set[int] = set()

    def run(self) -> int:
        with _received_signals(self._signals) as woken:
            # A worker shares the memory of what is loaded until its garbage collector writes there.
            # A KeyboardInterrupt in a finalizer would be lost, so signals are received before.
            gc.collect()
            gc.freeze()
            while self._step():
                connection.wait([woken.fileno(), *self._awaited()], self._seconds_until_due())
                with suppress(BlockingIOError):
                    woken.recv(4096)
        _LOG.info(LogEvent("stopped", "the service has stopped", status=self._status))
        return self._status

    def _step(self) -> bool:
        """Do what is due now, and return whether to continue.

        Messages are read here alone, before anything depends on them: one that arrives later wakes
        the supervisor, and so does one that arrived while it could not run.
        """
        # Signals are read after this: a worker that exited by a stop signal to all was asked to.
        exited = [worker for worker in self._workers if not worker.process.is_alive()]
        for worker in self._workers:
            if worker.receive() == NEEDS_OTHERS:
                self._wanted = len(self._works)
        if self._signals:
            self._stop()
        for worker in exited:
            self._workers.remove(worker)
            self._handle_exit(worker)
        for worker in self._workers:
            worker.kill_if_late()
        if self._is_stopping:
            return self._workers != []
        if self._missing() and time.monotonic() >= self._starts_at:
            self._start_missing()
        if not self._has_started and len(self._serving_workers()) == self._serving:
            self._has_started = True
            count, url = self._serving, self._url
            _LOG.info(LogEvent("started", "the service has started", workers=count, url=url))
            notify("READY=1", f"STATUS=Serving at {url}, processes: {count}")
        return True

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            event = LogEvent("stop_started", "the service is stopping", workers=self._serving)
            _LOG.info(event)
            notify("STOPPING=1", "STATUS=Stopping")
            self._on_stop()
            for worker in self._workers:
                worker.stop(self._shutdown_timeout)

    def _missing(self) -> list[int]:
        present = {worker.worker_id for worker in self._workers}
        return [worker_id for worker_id in range(self._wanted) if worker_id not in present]

    def _serving_workers(self) -> "list[_Worker]":
        return [w for w in self._workers if w.is_ready and w.worker_id < self._serving]

    def _handle_exit(self, worker: "_Worker") -> None:
        if self._is_stopping:
            return
        serves = worker.worker_id < self._serving
        role = "" if serves else ", which delivers to webhooks,"
        message = f"process {worker.pid}{role} exited unexpectedly: {worker.outcome}"
        _LOG.error(LogEvent("worker_ended", message, pid=worker.pid))
        self._starts_at = worker.started + _RESTART_SECONDS
        is_useless = serves and not worker.is_ready and not self._serving_workers()
        if is_useless or worker.process.exitcode == ENDS_SERVICE:
            _LOG.error("no process can serve; the service ends")
            self._status = 1
            self._stop()

    def _start_missing(self) -> None:
        try:
            for worker_id in self._missing():
                self._workers.append(_Worker(self._works[worker_id], worker_id))
        except OSError as error:  # such as too little memory; try again later
            _LOG.error("no process can be started: %s", error)
            self._starts_at = time.monotonic() + _RESTART_SECONDS

    def _awaited(self) -> Iterator[int | Link]:
        for worker in self._workers:
            yield from (worker.sentinel, worker.link)

    def _seconds_until_due(self) -> float | None:
        due = min((worker.deadline for worker in self._workers), default=math.inf)
        if not self._is_stopping and self._missing():
            due = min(due, self._starts_at)
        return None if due == math.inf else max(0, due - time.monotonic())


class _Worker:
    """It is killed at its ``deadline``: if it is not ready, or was asked to exit and has not."""

    def __init__(self, work: Work, worker_id: int) -> None:
        self.worker_id = worker_id
        self.started = time.monotonic()
        self.deadline = self.started + _START_TIMEOUT
        self.is_ready = False
        self._is_stopping = False
        self._failure = ""
        self.link, other_end = Pipe(duplex=False)
        with other_end:
            arguments = work, worker_id, other_end, os.getpid()
            self.process = _fork.Process(target=_run_worker, args=arguments, daemon=True)
            # The worker inherits the signal handlers: none must run before it has its own.
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
            try:
                self.process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
        self.sentinel = self.process.sentinel
        self.pid = self.process.pid or 0

    def receive(self) -> bytes:
        message = b""
        if self.link.poll():
            with suppress(EOFError, ConnectionError):  # it exited before
                message = self.link.recv_bytes()
        if message and not self.is_ready:
            self.is_ready = message == READY
            self._failure = "" if self.is_ready else message.decode()
            if self.is_ready and not self._is_stopping:
                self.deadline = math.inf
        return message

    @property
    def outcome(self) -> str:
        if self._failure:
            return self._failure
        status = self.process.exitcode or 0
        return f"exit status {status}" if status >= 0 else f"killed by signal {-status}"

    def stop(self, timeout: float) -> None:
        self._is_stopping = True
        self.deadline = time.monotonic() + timeout
        self.process.terminate()

    def kill_if_late(self) -> None:
        if time.monotonic() >= self.deadline:
            self.deadline = math.inf
            action = "end" if self.is_ready or self._is_stopping else "start"
            _LOG.warning("process %d did not %s in time and was killed", self.pid, action)
            self.process.kill()


def _run_worker(work: Work, worker_id: int, link: Link, supervisor: int) -> None:
    if sys.platform == "linux":
        # If the supervisor is killed, its workers must not keep the port.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:  # it was killed before
        return
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    work(worker_id, link)


@contextmanager
def _received_signals(numbers: set[int]) -> Iterator[socket.socket]:
    """Add stop signals to ``numbers`` until the block ends, and ignore them afterwards."""
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0)
        writer.settimeout(0)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in _STOPS:
            signal.signal(number, lambda number, _: numbers.add(number))
        try:
            yield reader
        finally:
            signal.set_wakeup_fd(-1)
            for number in _STOPS:
                signal.signal(number, signal.SIG_IGN)
