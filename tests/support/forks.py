"""Runs ``petstore`` in forks of one process that has imported it, for ``stage/petstore``.

Most of what a command costs is Python that starts and imports. The pages of docs/ have a hundred.
"""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

_MAX_CALL = 2**20
_NEEDED = ("petstore.samples.demo", "petstore.server.service", "petstore_client")
"""What commands import themselves when they need it."""


def _imitate(call: bytes, files: list[int]) -> list[str]:
    """Become like the process that wants a command; return the arguments of the command."""
    wanted = json.loads(call)
    os.setpgid(0, wanted["group"])
    os.chdir(wanted["folder"])
    os.umask(wanted["umask"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    arguments: list[str] = wanted["arguments"]
    return arguments


def _exit_code(pid: int) -> int:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code  # as a shell says that a signal ended it


def _run(listener: socket.socket) -> None:
    """Run each command that is wanted, until standard input is closed."""
    for name in _NEEDED:
        import_module(name)
    from petstore.cli.main import main

    gc.freeze()  # a fork that ends takes its memory apart, unless it is frozen
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for ready in select.select([0, listener.fileno(), *running], [], [])[0]:
            if ready == 0:
                return
            if ready in running:
                pid, caller = running.pop(ready)
                with suppress(BrokenPipeError):  # nobody waits for it any more
                    caller.send(str(_exit_code(pid)).encode())
                caller.close()
                os.close(ready)
                continue
            caller, _ = listener.accept()
            call, files, _, _ = socket.recv_fds(caller, _MAX_CALL, 3)
            if (pid := os.fork()) == 0:
                for each in (listener, caller, *(caller for _, caller in running.values())):
                    each.close()
                main(_imitate(call, files), "petstore")
            running[os.pidfd_open(pid)] = (pid, caller)
            for file in files:
                os.close(file)


@contextmanager
def forks(folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Run commands until the block ends; give the address for ``FORKS_OF_PETSTORE``.

    ``environment`` has what Python reads when it starts.
    """
    address = folder / "forks"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen()
        process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            env=environment,
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            process_group=0,
        )
    try:
        yield address
    finally:
        process.communicate()  # which closes its standard input


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _run(socket.socket(fileno=int(sys.argv[1])))
