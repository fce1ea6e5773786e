"""Leases of webhooks: each is delivered to by one process at a time.

A process that delivers leases webhooks. It alone makes deliveries of new events, attempts those
that are due and saves the outcomes, until it releases the lease or has not renewed it in time.
"""

from collections.abc import Collection
from typing import NamedTuple

from petstore.clock import SECOND, Milliseconds
from petstore.databases.contract import Reader, Statement, Unit, placeholder_list
from petstore.events.model import EventType, readable_types
from petstore.keys.model import ROLES, Environment, Scope
from petstore.webhooks.model import wanted_types

LEASE: Milliseconds = 15 * SECOND
"""How long a lease lasts unless it is renewed."""

_LEASED_AT_ONCE = 50
_SCOPES = " ".join(
    (
        "CASE coalesce(k.role, '') WHEN '' THEN k.scopes",
        *(f"WHEN '{role}' THEN '{' '.join(sorted(scopes))}'" for role, scopes in ROLES.items()),
        "END",
    )
)


class LeasedWebhook(NamedTuple):
    """An enabled webhook of a key or a person who may have webhooks.

    Deliveries exist for the events up to ``position``. The next one is due at ``due_at``. A
    recovery, if one is under way, has looked at the events up to ``recovered_to``.
    """

    id: int
    key_id: int
    scopes: str
    url: str
    types: str
    secret_version: int
    previous_secret_ends_at: Milliseconds | None
    position: int
    paused_until: Milliseconds | None
    recovered_to: int | None
    leased_by: str | None
    leased_until: Milliseconds | None
    due_at: Milliseconds | None

    @property
    def readable(self) -> frozenset[EventType]:
        """The types of the events that its key may read now."""
        return readable_types(self._scopes)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The types of the events that it gets."""
        return tuple(sorted(wanted_types(self.types.split(), self._scopes)))

    @property
    def _scopes(self) -> frozenset[Scope]:
        return frozenset(self.scopes.split())  # type: ignore[arg-type]


async def active_webhooks(
    store: Reader, environment: Environment, now: Milliseconds
) -> list[LeasedWebhook]:
    """Return the webhooks to deliver to: they and their keys are active."""
    rows = await store.read(
        Statement(
            f"SELECT w.id, w.key_id, {_SCOPES}, w.url, w.types, w.secret_version,"  # noqa: S608
            " w.previous_secret_ends_at, w.position, w.paused_until, w.recovered_to,"
            " w.leased_by, w.leased_until,"
            " (SELECT d.due_at FROM webhook_deliveries d WHERE d.state = 'pending' AND"
            "  /*sqlite*/ d.webhook_id = w.id ORDER BY d.due_at /*end*/"
            "  /*pg d.webhook_id >= w.id AND d.webhook_id <= w.id"
            "  ORDER BY d.webhook_id, d.due_at */ LIMIT 1)"
            " FROM webhooks w JOIN api_keys k ON k.id = w.key_id"
            " WHERE w.enabled = 1 AND k.environment = ?1 AND k.revoked_at IS NULL"
            " AND (k.expires_at IS NULL OR k.expires_at > ?2)"
            f" AND {_SCOPES} LIKE '%webhooks:write%' ORDER BY w.id",
            (environment, now),
            name="select_active_webhooks",
        )
    )
    return [LeasedWebhook(*row) for row in rows]


def take_leases(
    owner: str, webhooks: Collection[LeasedWebhook], now: Milliseconds
) -> Unit[set[int]]:
    """Renew the leases of ``owner`` and take up to 50 that are free; return the ids of both."""
    # A lease that ends later than any could is one from before a clock was set back.
    never = now + 2 * LEASE
    free = [hook.id for hook in webhooks if not now < (hook.leased_until or 0) <= never]
    own = [hook.id for hook in webhooks if hook.leased_by == owner]
    ids = sorted({*own, *free[:_LEASED_AT_ONCE]})
    rows = yield Statement(
        "UPDATE webhooks SET leased_by = ?1, leased_until = ?2 WHERE id IN ("  # noqa: S608
        f" SELECT id FROM webhooks WHERE id IN ({placeholder_list(5, ids)})"
        " AND (leased_by = ?1 OR leased_until IS NULL OR leased_until <= ?3 OR leased_until > ?4)"
        " /*pg FOR UPDATE SKIP LOCKED */) RETURNING id",
        (owner, now + LEASE, now, never, *ids),
        name="lease_webhooks",
    )
    return {webhook_id for (webhook_id,) in rows}


def release_leases(owner: str) -> Unit[None]:
    """Let others lease the webhooks of ``owner`` at once."""
    yield Statement(
        "UPDATE webhooks SET leased_by = NULL, leased_until = NULL WHERE leased_by = ?1",
        (owner,),
        name="release_webhooks",
    )
