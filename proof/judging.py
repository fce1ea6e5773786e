"""Compares a store with the traders' responses, and adds their counts to a trial."""

import time

import httpx

from proof.deployments import Deployment
from proof.experiment import Trial
from proof.ledger import inventory_of
from proof.traders import Traders

_SETTLE_SECONDS = 5.0


def judge_store(trial: Trial, deployment: Deployment, traders: Traders, when: str) -> None:
    """Expect the rows and the inventory to match the traders' responses.

    Nobody trades meanwhile. A database server may still finish what a killed process had sent: then
    the inventory is read again.
    """
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        rows, told = deployment.rows(), _inventory(deployment)
        counted = inventory_of(rows)
        if counted == told or time.monotonic() > deadline:
            break
    trial.expect(counted == told, f"{when}: the inventory is {told}, and the rows are {counted}")
    for contradiction in traders.ledger.contradictions(rows):
        trial.note_broken(f"{when}: {contradiction}")
    trial.count("comparisons of the whole store")
    trial.count("rows compared", len(rows.pets) + len(rows.orders))


def _inventory(deployment: Deployment) -> dict[str, int] | None:
    """Return the inventory, or ``None`` if the service does not return it."""
    try:
        return deployment.inventory()
    except httpx.HTTPError:
        return None


def judge_traders(trial: Trial, traders: Traders) -> None:
    """Add what the traders saw to the trial."""
    for unexpected in traders.unexpected:
        trial.note_broken(unexpected)
    trial.count("acknowledged changes", traders.acknowledged)
    trial.count("refused requests", sum(traders.statuses[status] for status in (400, 404, 409)))
    trial.count("503", traders.statuses[503])
    trial.count("requests without a response", traders.lost)
    trial.count("retries with an Idempotency-Key", traders.retried)
    trial.count("replays compared", traders.replayed)
