"""Compares a store with the traders' responses and its feed, and adds their counts to a trial."""

import asyncio
import time
from typing import Any

import httpx

from proof.deployments import Deployment
from proof.experiment import Trial
from proof.followers import Follower
from proof.ledger import Rows, numbers_of
from proof.traders import Traders
from support.history import Record, contradictions

_SETTLE_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_WALK_SECONDS = 60.0  # for all events; a follower itself would wait for ever


def judge_store(trial: Trial, deployment: Deployment, traders: Traders, when: str) -> None:
    """Expect the rows, the inventory and the sales to match the traders' responses."""
    rows = judge_numbers(trial, deployment, when)
    for contradiction in traders.ledger.contradictions(rows):
        trial.note_broken(f"{when}: {contradiction}")


def judge_numbers(trial: Trial, deployment: Deployment, when: str) -> Rows:
    """Expect the inventory and the sales to match the rows, and return these.

    Nobody trades meanwhile. A database server may still finish what a killed process had sent: then
    the numbers are read again.
    """
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        rows, told = deployment.rows(), _numbers(deployment)
        counted = numbers_of(rows)
        if counted == told or time.monotonic() > deadline:
            break
    trial.expect(counted == told, f"{when}: the service counts {told}, and the rows are {counted}")
    trial.count("comparisons of the whole store")
    trial.count("rows compared", len(rows.pets) + len(rows.orders))
    return rows


async def judge_feed(
    trial: Trial, deployment: Deployment, followers: list[Follower], when: str
) -> list[dict[str, Any]]:
    """Expect the feed to tell each change once and in order, and all followers to have read it.

    Nobody trades meanwhile. What was committed last may take a moment to appear. Returns the feed.
    """
    fresh = Follower(deployment.port, deployment.token, wait=0)
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        try:
            async with asyncio.timeout(_WALK_SECONDS):
                await fresh.read_to_the_end()
        except TimeoutError:
            trial.note_broken(f"{when}: the feed cannot be read to its end")
            return fresh.events
        rows = await asyncio.to_thread(deployment.rows)
        wrong = list(contradictions(fresh.events, _resources(rows)))
        have_read = [follower.events == fresh.events for follower in followers]
        if (all(have_read) and not wrong) or time.monotonic() > deadline:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    for contradiction in wrong:
        trial.note_broken(f"{when}: {contradiction}")
    trial.expect(all(have_read), f"{when}: a follower has read other events than a fresh one")
    for follower in (fresh, *followers):
        for unexpected in follower.unexpected:
            trial.note_broken(f"{when}: {unexpected}")
        follower.unexpected.clear()
    trial.count("events compared", len(fresh.events))
    return fresh.events


def _resources(rows: Rows) -> dict[str, Record]:
    """Return what the feed must end with, as far as the rows tell it."""
    resources: dict[str, Record] = {}
    for pet in rows.pets:
        members = {"name": pet.tag, "categoryId": pet.category_id, "status": pet.status}
        resources[f"pet/{pet.id}"] = members
    for order in rows.orders:
        resources[f"order/{order.id}"] = {"petId": order.pet_id, "status": order.status}
    for category in rows.categories:
        resources[f"category/{category.id}"] = {"name": category.name}
    return resources


def _numbers(deployment: Deployment) -> dict[str, dict[str, int]] | None:
    """Return the inventory and the sales, or ``None`` if the service does not return them."""
    try:
        return deployment.numbers()
    except httpx.HTTPError:
        return None


def judge_traders(trial: Trial, traders: Traders) -> None:
    """Add what the traders saw to the trial."""
    for unexpected in traders.unexpected:
        trial.note_broken(unexpected)
    trial.count("acknowledged changes", traders.acknowledged)
    for what, number in traders.special.items():
        trial.count(what, number)
    trial.count("refused requests", sum(traders.statuses[status] for status in (400, 404, 409)))
    trial.count("503", traders.statuses[503])
    trial.count("requests without a response", traders.lost)
    trial.count("retries with an Idempotency-Key", traders.retried)
    trial.count("replays compared", traders.replayed)
