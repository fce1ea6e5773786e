"""Load by wrk: so many connections, each sending its next request after the response.

wrk computes its percentiles as if a delayed request had delayed those after it too: a stall counts
for each request that it kept from being sent.
"""

import secrets
import subprocess
import tempfile
from pathlib import Path

import msgspec

NEEDS = {"wrk": "wrk", "taskset": "util-linux"}
_SCRIPT = Path(__file__).with_suffix(".lua")
_TIMEOUT = 60  # s


class Load(msgspec.Struct, frozen=True):
    """The result of a load: responses, its length, latencies in µs, and how many failed."""

    responses: int
    microseconds: int
    p50: int
    p99: int
    p999: int
    errors: int

    @property
    def rate(self) -> float:
        """Responses a second."""
        return self.responses / self.microseconds * 1e6


def put_load(url: str, requests: list[bytes], connections: int, seconds: int) -> Load:
    """Send one of ``requests`` after the other, on one thread, and again from the first.

    The byte 1 in a request becomes an ``X-Request-Id`` and a ``traceparent`` that no other request
    has. A load without a connection or a response counts as errors.
    """
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\0".join(requests))
        file.flush()
        wrk = ("wrk", "-t1", f"-c{connections}", f"-d{seconds}s", f"--timeout={_TIMEOUT}s")
        run = secrets.token_hex(12)
        ended = subprocess.run(
            [*wrk, "-s", _SCRIPT, url, "--", file.name, run], check=False, stdout=subprocess.PIPE
        )
    if not ended.returncode:
        load = msgspec.json.decode(ended.stdout.splitlines()[-1], type=Load)
        if load.responses:
            return load
    return Load(responses=0, microseconds=seconds * 10**6, p50=0, p99=0, p999=0, errors=connections)
