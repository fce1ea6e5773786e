"""The console under a crowd that has one free key, or none, and a good client beside it."""

import asyncio
import time
from itertools import count, cycle
from pathlib import Path
from typing import NamedTuple

import httpx

from attackers import Caller, Kind, again
from good_client import request_steadily
from proof.crowd import judge_good_client, request_beside, target_of
from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from servers import Server
from support.process import petstore
from support.waiting import within

_SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
_SECONDS = 3
_FILE = 8 * 2**20 - 1024
_ROWS = 19_600
_ANIMALS = 20_000
_SEPARATORS = 15_000
_MAX_MEGABYTES = 200
_BUSY_SECONDS = 2
_SETTLE_SECONDS = 30
_RESET_PEAK = "5"  # proc_pid_clear_refs(5): VmHWM becomes VmRSS
_LONGEST = 0.25  # s, of 99 % of the good client's requests, or
_TIMES_LONGER = 10  # this many times what they take without a crowd: the machine may be busy


class _Crowd(NamedTuple):
    """So many callers that send one request again and again."""

    name: str
    request: bytes
    callers: int


def _table(width: int, rows: int) -> bytes:
    """Return a table of so many empty rows."""
    return b"name,categoryId\n" + (b"," * width + b"\n") * rows


_FILES = {
    "wide rows": _table(_FILE // _ROWS - 1, _ROWS),
    "one row of commas": _table(_FILE, 1),
    "a long line": b"name,categoryId\n" + b"x" * _FILE + b",1\n",
    "blank lines": b"name,categoryId\n" + b"\n" * _FILE,
}


def _run(trial: Trial) -> None:
    ends = time.monotonic() + trial.seconds
    for number in count():
        with deployed(trial.folder / str(number)) as deployment:
            _fill(deployment)
            _stand_beside(trial, deployment)
        if time.monotonic() > ends:
            return


def _fill(deployment: Deployment) -> None:
    """Add animals, so that an export has something to do."""
    file = deployment.folder / "animals.csv"
    rows = "".join(f"Animal {number},{number}\n" for number in range(_ANIMALS))
    file.write_text(f"name,categoryId\n{rows}")
    imported = petstore(
        *("pets", "import", str(file), "--database", deployment.server.database),
        cwd=deployment.folder,
    )
    assert imported.returncode == 0, imported.stderr


def _stand_beside(trial: Trial, deployment: Deployment) -> None:
    alone = asyncio.run(request_steadily(deployment.port(), deployment.token, _SECONDS))
    judge_good_client(trial, "nobody", alone, _BUSY_SECONDS)
    longest = max(_LONGEST, _TIMES_LONGER * alone.percentile(0.99) / 1e3)
    for crowd in _crowds_of(deployment):
        _judge(trial, deployment, crowd, longest)


def _judge(trial: Trial, deployment: Deployment, crowd: _Crowd, longest: float) -> None:
    target, kind = target_of(deployment), _sending(crowd.request)
    settled = within(_SETTLE_SECONDS, lambda: _responds_quickly(deployment))
    trial.expect(settled, f"before {crowd.name}: the service still works for those who have left")
    worker = deployment.server.worker
    Path(f"/proc/{worker}/clear_refs").write_text(_RESET_PEAK)
    beside = request_beside(target, deployment.token, kind, crowd.callers, _SECONDS, addresses=1)
    judge_good_client(trial, crowd.name, beside.good, longest)
    trial.count("requests of the crowds", sum(_statuses(beside.seen)))
    failed = {status: n for status, n in beside.seen.items() if status.startswith("5")}
    trial.expect(failed.keys() <= {"503"}, f"{crowd.name}: {failed}")
    peak = Server(worker, deployment.port(), 0).peak_megabytes
    trial.note_max(f"largest resident set beside {crowd.name}, MB", peak)
    trial.expect(peak < _MAX_MEGABYTES, f"{crowd.name}: the process had {peak:.0f} MB")


def _responds_quickly(deployment: Deployment) -> bool:
    """Return whether the service has nothing left to do for a crowd."""
    started = time.monotonic()
    httpx.get(f"{deployment.server.url}/healthz", timeout=_SETTLE_SECONDS).raise_for_status()
    return time.monotonic() - started < _BUSY_SECONDS / 10


def _statuses(seen: dict[str, int]) -> list[int]:
    return [number for status, number in seen.items() if status.isdigit()]


def _crowds_of(deployment: Deployment) -> list[_Crowd]:
    """Return the crowds, which have a session of a new key."""
    token = deployment.server.issue("free")
    with httpx.Client(base_url=f"{deployment.server.url}/console", headers=_SAME_ORIGIN) as http:
        signed_in = http.post("/sign-in", data={"key": token})
        assert signed_in.status_code == 303, signed_in.text
        return _crowds(http)


def _crowds(http: httpx.Client) -> list[_Crowd]:
    """Return the crowds; those with a session have the one of ``http``."""
    uploads = [
        _Crowd(
            f"files of {name}", _bytes(http.build_request("POST", "/import", files=_form(file))), 8
        )
        for name, file in _FILES.items()
    ]
    refused = f"{_with_refused_rows(http)}/refused.csv"
    stranger = httpx.Client(base_url=http.base_url, headers=_SAME_ORIGIN)
    separators = {"Cookie": ";" * _SEPARATORS}
    return [
        *uploads,
        _Crowd("refused rows", _bytes(http.build_request("GET", refused)), 16),
        _Crowd("exports", _bytes(http.build_request("GET", "/export/pets.csv")), 16),
        _Crowd("pages", _bytes(http.build_request("GET", "/pets")), 32),
        _Crowd(
            "bad sign-ins",
            _bytes(stranger.build_request("POST", "/sign-in", data={"key": "ps_live_x"})),
            32,
        ),
        _Crowd(
            "cookies of separators",
            _bytes(stranger.build_request("GET", "/pets", headers=separators)),
            32,
        ),
    ]


def _with_refused_rows(http: httpx.Client) -> str:
    """Import a file of refused rows, as wide as the service takes it; return its page."""
    for width in (_FILE // _ROWS - 1, 40, 1):
        sent = http.post("/import", files=_form(_table(width, _ROWS)), timeout=60)
        if sent.status_code == 303:
            return sent.headers["location"].removeprefix("/console")
    msg = f"no file of refused rows was taken: {sent.status_code} {sent.text[:2000]}"
    raise AssertionError(msg)


def _form(content: bytes) -> dict[str, tuple[str, bytes, str]]:
    return {"file": ("animals.csv", content, "text/csv")}


def _bytes(request: httpx.Request) -> bytes:
    """Return a request as it is sent."""
    head = b"".join(b"%b: %b\r\n" % field for field in request.headers.raw)
    line = b"%b %b HTTP/1.1\r\n" % (request.method.encode("ascii"), request.url.raw_path)
    return line + head + b"\r\n" + request.read()


def _sending(request: bytes) -> Kind:
    """Return callers that send a request again as soon as they have a response."""

    @again
    async def sending(caller: Caller) -> None:
        await caller.ask(cycle([request]))

    return sending


EXPERIMENTS = [
    Experiment(
        "a crowd in the console",
        "Whatever people do in the console with a free key, or without one, does not disturb a good"
        " client of the interface, and the process stays below 200 MB.",
        "Sessions of one free key upload files of wide rows, of one row of commas, of a long line"
        " and of blank lines, and request refused rows, exports and pages as fast as they can;"
        " others send wrong keys and cookies of 15,000 separators. A good client sends 100 requests"
        " a second beside each. Its p99 must be under 0.25 s, or under ten times what it is without"
        " a crowd.",
        _run,
        1,
        min_seconds=45,
    )
]
