"""The memory of a server is that of all its processes."""

import subprocess
import sys

from servers import Server

# Both end when nobody holds their standard input any more.
_TWO_PROCESSES = """
import os
shared = os.urandom(50 << 20)
if os.fork():
    print(flush=True)
os.read(0, 1)
"""


def test_a_page_that_two_processes_share_counts_once() -> None:
    command = (sys.executable, "-c", _TWO_PROCESSES)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        server = Server(process.pid, port=0, seconds_to_ready=0)
        counted, resident = server.proportional_megabytes, server.megabytes
    assert 50 < counted < 90
    assert resident > 100
