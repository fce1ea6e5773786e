"""Load by wrk: so many connections, each sending its next request after the answer.

wrk reckons its percentiles as if a request that was held up had held up those behind it too: a
stall counts for each request that it kept from being sent.
"""

import subprocess
import tempfile
from pathlib import Path

import msgspec

NEEDS = {"wrk": "wrk", "taskset": "util-linux"}
_SCRIPT = Path(__file__).with_suffix(".lua")
_PATIENCE = 60  # s; what takes longer is an error


class Load(msgspec.Struct, frozen=True):
    """What came of a load: answers, its length, latencies in µs, and how many answers failed."""

    answers: int
    microseconds: int
    p50: int
    p99: int
    p999: int
    errors: int

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.microseconds * 1e6


def put_load(url: str, requests: list[bytes], connections: int, seconds: int) -> Load:
    """Send one of ``requests`` after the other, on one thread, and again from the first.

    Where nobody takes a connection, or nobody answers, that is an error.
    """
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\0".join(requests))
        file.flush()
        wrk = ("wrk", "-t1", f"-c{connections}", f"-d{seconds}s", f"--timeout={_PATIENCE}s")
        ended = subprocess.run(
            [*wrk, "-s", _SCRIPT, url, "--", file.name], check=False, stdout=subprocess.PIPE
        )
    if not ended.returncode:
        load = msgspec.json.decode(ended.stdout.splitlines()[-1], type=Load)
        if load.answers:
            return load
    return Load(answers=0, microseconds=seconds * 10**6, p50=0, p99=0, p999=0, errors=connections)
