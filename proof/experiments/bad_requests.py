"""Requests that are wrong in many ways: each gets a proper refusal, and none does any harm."""

import asyncio
import json
import time
from contextlib import suppress

import httpx
import msgspec
import uvloop

from proof.bad_requests import bad_request
from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.wire import LONGEST, Response, read_response
from support.memory_folder import folder_in_memory

_CONNECTIONS = 48
_AT_ONCE = 8
_NO_LIMITS = ("--anonymous-per-minute", "2000000000", "--usage-per-minute", "2000000000")
_ERROR_MEMBERS = {"code", "message", "status"}
_SCOPES = ("pets:read", "pets:write", "orders:read", "orders:write", "keys:admin")


def _run(trial: Trial) -> None:
    with folder_in_memory() as folder, deployed(folder / "store", *_NO_LIMITS) as deployment:
        scopes = [word for scope in _SCOPES for word in ("--scope", scope)]
        token = deployment.server.issue("enterprise", *scopes)
        deployment.server.issue("free")  # the second key, which requests about keys are about
        uvloop.run(_send(trial, deployment, token))
        ready = httpx.get(f"{deployment.server.url}/readyz", timeout=10).status_code
        trial.expect(ready == 200, f"afterwards /readyz says {ready}")
        faults = [
            line
            for line in deployment.server.log_path.read_text().splitlines()
            if "Traceback" in line or '"level":"error"' in line
        ]
        trial.expect(not faults, f"the log has {len(faults)} errors: {faults[:1]}")


async def _send(trial: Trial, deployment: Deployment, token: str) -> None:
    ends = time.monotonic() + trial.seconds
    async with asyncio.TaskGroup() as group:
        for _ in range(_CONNECTIONS):
            group.create_task(_call(trial, deployment, token, ends))


async def _call(trial: Trial, deployment: Deployment, token: str, ends: float) -> None:
    """Send bad requests, some at once, on one connection after the other."""
    while time.monotonic() < ends:
        reader, writer = await asyncio.open_connection("127.0.0.1", deployment.port())
        with suppress(EOFError, OSError):  # what is refused below the interface ends it
            while time.monotonic() < ends:
                requests = [bad_request(trial.random, token) for _ in range(_AT_ONCE)]
                writer.write(b"".join(requests))
                if not await _judge_responses(trial, reader, requests):
                    return
        writer.transport.abort()


async def _judge_responses(
    trial: Trial, reader: asyncio.StreamReader, requests: list[bytes]
) -> bool:
    """Judge the response to each; return whether all arrived.

    Raises:
        EOFError: the connection was closed before all responses arrived.
        OSError: it was reset.
    """
    try:
        async with asyncio.timeout(LONGEST):
            for one in requests:
                judge_response(trial, one, await read_response(reader))
    except TimeoutError:
        trial.note_broken(f"no response in time to one of {requests!r}")
        return False
    return True


def judge_response(trial: Trial, one: bytes, response: Response) -> None:
    """Expect a success, or a refusal with exactly the members of an error."""
    trial.count("messages")
    if response.status < 400:
        trial.count("messages that were taken")
        return
    trial.count("messages that were refused")
    trial.count(f"refused with {response.status}")
    trial.expect(response.status < 500 or response.status == 501, f"{response.status} to {one!r}")
    try:
        error = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        error = None
    is_error = (
        isinstance(error, dict)
        and error.keys() == _ERROR_MEMBERS
        and error["status"] == response.status
        and b"\r\ncontent-type: application/json" in response.head
        and b"\r\nx-request-id: " in response.head
    )
    trial.expect(is_error, f"no proper error to {one!r}: {json.dumps(str(response.body[:300]))}")


EXPERIMENTS = [
    Experiment(
        "bad requests",
        "No request makes the service fail: each gets a response, none is 5xx, every refusal has"
        " exactly `code`, `message` and `status`, and no traceback is logged.",
        "Requests for every operation in the table, each with one to three mistakes in its"
        " method, path, query, fields or body, in pipelines on 48 connections, with a key that has"
        " every scope.",
        _run,
        10.5,
    )
]
