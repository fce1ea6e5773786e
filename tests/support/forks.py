"""Runs ``petstore`` in forks of one process that has imported it, for ``stage/petstore``.

Most of what a command costs is Python that starts and imports. The pages of docs/ have a hundred.
"""

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
from socketserver import BaseRequestHandler, ForkingMixIn, UnixStreamServer

_MAX_CALL = 2**20
_NEEDED = ("petstore.cli.main", "petstore.samples.demo", "petstore.server.service")
"""What commands import, some of it when they need it."""


class _Command(BaseRequestHandler):
    def handle(self) -> None:
        """Become like the process that wants a command, run it, and tell that how it ended."""
        call, files, _, _ = socket.recv_fds(self.request, _MAX_CALL, 3)
        wanted = json.loads(call)
        os.setpgid(0, wanted["group"])
        os.chdir(wanted["folder"])
        os.umask(wanted["umask"])
        os.environ.clear()
        os.environ.update(wanted["environment"])
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        try:
            import_module("petstore.cli.main").main(wanted["arguments"], "petstore")
        except SystemExit as ended:
            with suppress(BrokenPipeError):  # no one reads or waits now
                sys.stdout.flush()
                self.request.send(str(ended.code or 0).encode())


class _Forks(ForkingMixIn, UnixStreamServer):
    socket_type = socket.SOCK_SEQPACKET
    block_on_close = False
    timeout = 0.05  # after which it looks for commands that have ended


@contextmanager
def forks(folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Run commands until the block ends; give the address for ``FORKS_OF_PETSTORE``.

    ``environment`` has what Python reads when it starts.
    """
    address = folder / "forks"
    with subprocess.Popen(
        [sys.executable, __file__, address],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield address
        finally:
            process.communicate()  # which closes its standard input


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in _NEEDED:
        import_module(name)
    with _Forks(sys.argv[1], _Command) as server:
        print("ready", flush=True)  # noqa: T201
        while not select.select([0], [], [], 0)[0]:
            server.handle_request()
