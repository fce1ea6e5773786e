"""The console under a crowd that has one free key, or none, and a good client beside it."""

import time
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import httpx

from proof.attackers import Caller, Kind, again
from proof.crowd import GoodClient, target_of
from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from servers import memory_megabytes
from stock import fill
from support.visitor import cookies_of_administrator, issue_for_console
from support.waiting import within

_SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
_SECONDS = 3
_FILE = 8 * 2**20 - 1024
_ROWS = 19_600
_PETS = 20_000
_SEPARATORS = 15_000
_LARGE = 64 * 1024
_MAX_MEGABYTES = 200
_BUSY_SECONDS = 2
_SETTLE_SECONDS = 30
_RESET_PEAK = "5"  # proc_pid_clear_refs(5): VmHWM becomes VmRSS
_LONGEST = 0.25  # s, of 99 % of the good client's requests on a quiet machine


class _Crowd(NamedTuple):
    """So many callers, each of which sends one of the requests again and again."""

    name: str
    requests: list[bytes]
    callers: int


def _table(width: int, rows: int) -> bytes:
    """Return a table of so many rows with a name alone."""
    return b"name,categoryId\n" + (b"x" + b"," * width + b"\n") * rows


def _files() -> dict[str, bytes]:
    header = b"name,categoryId\n"
    return {
        "files of wide rows": _table(_FILE // _ROWS - 2, _ROWS),
        "files of one row of commas": _table(_FILE, 1),
        "files of a long line": header + b"x" * _FILE + b",1\n",
        "files of blank lines": header + b"\n" * _FILE,
        "files of pets": header + b"Bella,1\n" * _ROWS,
    }


def _run(trial: Trial) -> None:
    for number in trial.rounds():
        with deployed(trial.folder / str(number)) as deployment:
            deployment.register_category()
            # An export has something to do.
            fill(deployment.folder, deployment.server.database, _PETS)
            _stand_beside(trial, deployment)


def _stand_beside(trial: Trial, deployment: Deployment) -> None:
    good = GoodClient(trial, target_of(deployment), deployment.token, _LONGEST)
    for crowd in _crowds_of(deployment):
        _judge(trial, deployment, crowd, good)


def _judge(trial: Trial, deployment: Deployment, crowd: _Crowd, good: GoodClient) -> None:
    settled = within(_SETTLE_SECONDS, lambda: _responds_quickly(deployment))
    trial.expect(settled, f"before {crowd.name}: the service still works for those who have left")
    worker = deployment.server.worker
    Path(f"/proc/{worker}/clear_refs").write_text(_RESET_PEAK)
    sending = _sending(crowd.requests)
    beside = good.stand_beside(crowd.name, sending, crowd.callers, _SECONDS, addresses=1)
    trial.count("requests of the crowds", sum(_statuses(beside.seen)))
    failed = {status: n for status, n in beside.seen.items() if status.startswith("5")}
    trial.expect(failed.keys() <= {"503"}, f"{crowd.name}: {failed}")
    peak = memory_megabytes(worker, "VmHWM")
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
    """Return the crowds. Those with a session are one person."""
    base = f"{deployment.server.url}/console"
    cookies = cookies_of_administrator(deployment.server, issue_for_console(deployment.server))
    with httpx.Client(base_url=base, headers=_SAME_ORIGIN, cookies=cookies, timeout=60) as http:
        signed_in = [_requests_of_a_session(http)] * 8
    crowds = {name: [requests[name] for requests in signed_in] for name in signed_in[0]}
    with httpx.Client(base_url=base, headers=_SAME_ORIGIN) as http:
        wrong = http.build_request("POST", "/sign-in", data={"key": "ps_live_x"})
        separators = http.build_request("GET", "/pets", headers={"Cookie": ";" * _SEPARATORS})
    crowds |= {"bad sign-ins": [_bytes(wrong)], "cookies of separators": [_bytes(separators)]}
    return [_Crowd(name, each, _callers(each)) for name, each in crowds.items()]


def _requests_of_a_session(http: httpx.Client) -> dict[str, bytes]:
    """Return what somebody who is signed in sends, by name."""
    uploads = {
        name: http.build_request("POST", "/import", files=_form(file))
        for name, file in _files().items()
    }
    reads = {
        "refused rows": f"{_with_refused_rows(http)}/refused.csv",
        "exports": "/export/pets.csv",
        "pages": "/pets",
    }
    requests = uploads | {name: http.build_request("GET", path) for name, path in reads.items()}
    return {name: _bytes(request) for name, request in requests.items()}


def _callers(requests: list[bytes]) -> int:
    """Return how many callers a crowd has: few if their requests are large."""
    return 8 if len(requests[0]) > _LARGE else 32


def _with_refused_rows(http: httpx.Client) -> str:
    """Import a file of refused rows, as wide as the service takes it; return its page."""
    for width in (_FILE // _ROWS - 2, 40, 1):
        sent = http.post("/import", files=_form(_table(width, _ROWS)))
        if sent.status_code == 303:
            return sent.headers["location"].removeprefix("/console")
    msg = f"no file of refused rows was taken: {sent.status_code} {sent.text[:2000]}"
    raise AssertionError(msg)


def _form(content: bytes) -> dict[str, tuple[str, bytes, str]]:
    return {"file": ("pets.csv", content, "text/csv")}


def _bytes(request: httpx.Request) -> bytes:
    """Return a request as it is sent."""
    head = b"".join(b"%b: %b\r\n" % field for field in request.headers.raw)
    line = b"%b %b HTTP/1.1\r\n" % (request.method.encode("ascii"), request.url.raw_path)
    return line + head + b"\r\n" + request.read()


def _sending(requests: list[bytes]) -> Kind:
    """Return callers that send their request again as soon as they have a response."""

    @again
    async def sending(caller: Caller) -> None:
        await caller.ask(cycle([requests[caller.number % len(requests)]]))

    return sending


EXPERIMENTS = [
    Experiment(
        "a crowd in the console",
        "Whatever people do in the console, or without a key at its door, does not disturb a good"
        " client of the interface, and the process stays below 200 MB.",
        "Clients with a session upload files of wide rows, of one row of commas, of a long line,"
        " of blank lines and of pets, and request refused rows, exports and pages as fast as"
        " they can. Seven in eight have the session of one free key, the others one of a key"
        " without limits. Others send wrong keys and cookies of 15,000 separators. The processes"
        " that read files have a limit of 200 MB of their own, and do not count. A good client"
        " sends 100 requests a second beside each. Its p99 must be under 0.25 s, or under ten"
        " times what it is in the same minute beside 32 clients that list pets.",
        _run,
        1,
        min_seconds=50,
    )
]
