"""Webhooks of a deployment: what delivers, who receives, and whether all of it arrived."""

import asyncio
import socket
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
from standardwebhooks import WebhookVerificationError

from proof.deployments import Deployment
from proof.experiment import Trial
from proof.processes import Program
from proof.receiver import Received, read_received
from support.receivers import Request
from support.waiting import within

_SCOPES = ("--scope", "pets:read", "--scope", "orders:read", "--scope", "webhooks:write")
# A killed process keeps its lease for 15 s, and a failure is repeated after 5 s; twice for luck.
_DELIVERY_SECONDS = 45.0
_LOOK_SECONDS, _START_SECONDS = 0.2, 30.0


class Webhooks:
    """A webhook of a deployment, the process that delivers to it, and the one that receives.

    Both processes can be killed, and come back. The socket of the receiver stays open meanwhile, so
    requests wait until it is back, and only those that it had begun to read fail.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        token = deployment.server.issue("enterprise", *_SCOPES)
        self._http = httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=10)
        self._id, self._secret = self._create()
        self._file = deployment.folder / f"received-{self._id}.jsonl"
        self._file.touch()
        self._receiver = self._start_receiver()
        self._log = deployment.folder / "deliver.jsonl"
        self._deliverer = Program(
            deployment.folder,
            self._log,
            deployment.server.environment(),
            lambda: (
                *("-m", "petstore", "deliver", "--log-format", "json"),
                *("--database", deployment.server.database, *deployment.webhook_options),
            ),
        )
        self._starts = 0
        self._start_deliverer()

    def _start_deliverer(self) -> None:
        self._deliverer.start()
        self._starts += 1
        delivers = within(
            _START_SECONDS,
            lambda: self._log.read_text().count("deliveries_started") == self._starts,
        )
        assert delivers, self._log.read_text()

    @property
    def url(self) -> str:
        """Where the receiver listens."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def _create(self) -> tuple[int, bytes]:
        created = self._http.post(self._target, json={"url": self.url}).raise_for_status().json()
        return created["id"], b64decode(created["secret"].removeprefix("whsec_"))

    @property
    def _target(self) -> str:
        return f"{self._deployment.server.url}/v1/webhooks"

    def _start_receiver(self) -> subprocess.Popen[bytes]:
        number = self._listener.fileno()
        return subprocess.Popen(
            [sys.executable, "-m", "proof.receiver", str(number), str(self._file)],
            pass_fds=(number,),
        )

    def kill_deliverer(self) -> None:
        """Kill the deliverer, and start it again."""
        self._deliverer.stop()
        self._start_deliverer()

    def kill_receiver(self) -> None:
        """Kill the receiver, and start it again."""
        _end(self._receiver)
        self._receiver = self._start_receiver()

    def targets(self) -> dict[str, Callable[[], None]]:
        """Return what can be killed, by name."""
        return {"the deliverer": self.kill_deliverer, "the receiver": self.kill_receiver}

    def start_deliverer_again(self, seconds: float) -> bool:
        """Start the deliverer again once it has ended; return whether it did so by itself."""
        has_ended = within(seconds, lambda: not self._deliverer.is_running)
        self.kill_deliverer()
        return has_ended

    def close(self) -> None:
        """End both processes."""
        self._deliverer.stop()
        _end(self._receiver)
        self._listener.close()
        self._http.close()

    def received(self) -> list[Received]:
        """Return the requests that have arrived so far."""
        return read_received(self._file)

    def verify(self, one: Received) -> dict[str, Any]:
        """Return the event of a request.

        Raises:
            WebhookVerificationError: its signature is wrong.
        """
        return Request("", one.headers, one.body).verified(self._secret)

    def pending(self) -> list[dict[str, Any]]:
        """Return the deliveries that are still to be made, as far as the service tells them.

        All pages are read: one may be empty.
        """
        pending: list[dict[str, Any]] = []
        page: str | None = f"{self._target}/{self._id}/deliveries?state=pending&limit=100"
        with suppress(httpx.HTTPError):
            while page:
                response = self._http.get(page).raise_for_status()
                pending += response.json()
                page = response.links.get("next", {}).get("url")
        return pending


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@contextmanager
def delivering(deployment: Deployment) -> Iterator[Webhooks]:
    """Deliver the events of a deployment to a webhook until the block ends."""
    webhooks = Webhooks(deployment)
    try:
        yield webhooks
    finally:
        webhooks.close()


async def judge_deliveries(
    trial: Trial, webhooks: Webhooks, feed: list[dict[str, Any]], when: str
) -> None:
    """Expect every event of the feed to have arrived, signed, and in order for each resource.

    Nobody trades meanwhile. What has failed may still have to be repeated.
    """
    started = time.monotonic()
    while True:
        received = await asyncio.to_thread(webhooks.received)
        accepted = {one.headers["webhook-id"] for one in received if one.is_accepted}
        missing = [event for event in feed if event["id"] not in accepted]
        pending = await asyncio.to_thread(webhooks.pending) if missing else []
        # What has failed twice is tried again minutes later, and so is what waits for it.
        waiting = {one["resource"] for one in pending if one["attempts"] > 1}
        missing = [event for event in missing if event["resource"] not in waiting]
        if not missing or time.monotonic() > started + _DELIVERY_SECONDS:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    trial.note_max("longest wait for the last delivery, s", time.monotonic() - started)
    trial.expect(
        not missing,
        f"{when}: {len(missing)} of {len(feed)} events did not arrive, such as {missing[:1]};"
        f" pending are {pending[:3]}",
    )
    for contradiction in wrong_deliveries(webhooks.verify, received, feed):
        trial.note_broken(f"{when}: {contradiction}")
    trial.count("deliveries compared", len(received))
    trial.count("deliveries refused or reset", sum(not one.is_accepted for one in received))
    trial.count("resources that wait for a third attempt", len(waiting))


def wrong_deliveries(
    verify: Callable[[Received], dict[str, Any]],
    received: list[Received],
    feed: list[dict[str, Any]],
) -> Iterator[str]:
    """Yield what is wrong with the requests of a receiver, by what the feed tells."""
    told = {event["id"]: event for event in feed}
    last: dict[str, int] = {}
    arrived: set[str] = set()
    for one in received:
        event_id = one.headers["webhook-id"]
        try:
            event = verify(one)
        except WebhookVerificationError as error:
            yield f"the delivery of {event_id} is not verified: {error}"
            continue
        if event_id not in told or event != told[event_id]:
            yield f"{event_id} arrived as {event}, and the feed has {told.get(event_id)}"
            continue
        if not one.is_accepted or event_id in arrived:
            continue
        arrived.add(event_id)
        resource, sequence = event["resource"], event["sequence"]
        if sequence < last.get(resource, 0):
            yield f"{resource}: event {sequence} arrived after event {last[resource]}"
        last[resource] = sequence
