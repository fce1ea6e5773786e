"""Webhooks in the database, and which process has leased them to make their deliveries."""

from collections.abc import Collection
from operator import itemgetter
from secrets import randbits
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from petstore.clock import SECOND, Milliseconds, utc_second
from petstore.databases.contract import Reader, Row, Statement, Unit, found, placeholder_list
from petstore.databases.pages import Page, read_page
from petstore.domain.fields import given_fields
from petstore.errors import NotOwner, TooManyWebhooks, WebhookDisabled
from petstore.events.model import EventType, NewEvent, readable_types
from petstore.events.store import Change
from petstore.keys.model import ROLES, Caller, Environment, Scope
from petstore.webhooks.model import (
    MAX_WEBHOOKS,
    NOTICED_FAILURES,
    Webhook,
    WebhookCreate,
    WebhookOwner,
    WebhookPatch,
    WebhookTest,
    in_order,
    wanted_types,
)

COLUMNS = (
    "id, url, types, description, enabled, disabled_reason, created_at, last_success_at,"  # noqa: S608 - only names
    f" CASE WHEN failures >= {NOTICED_FAILURES} THEN failing_since END, key_id,"
    " (SELECT kind FROM callers WHERE callers.id = webhooks.key_id)"
)

LEASE: Milliseconds = 15 * SECOND  # how long a lease lasts unless it is renewed
_SELECT = f"SELECT {COLUMNS} FROM webhooks"  # noqa: S608 - only names
_FAILING = f"(failures >= {NOTICED_FAILURES} OR disabled_reason IS NOT NULL)"
_NEWEST = "(SELECT coalesce(max(sequence), 0) FROM events)"
_DISABLE = WebhookPatch(enabled=False)
_VERSION_BITS = 62
_LEASED_AT_ONCE = 50
_SCOPES = " ".join(
    (
        "CASE p.role",
        *(f"WHEN '{role}' THEN '{' '.join(sorted(scopes))}'" for role, scopes in ROLES.items()),
        "ELSE k.scopes END",
    )
)


class LeasedWebhook(NamedTuple):
    """Deliveries exist up to ``position``; recovery has looked at events up to ``recovered_to``."""

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
        return readable_types(self._scopes)

    @property
    def wanted(self) -> tuple[str, ...]:
        return tuple(sorted(wanted_types(self.types.split(), self._scopes)))

    @property
    def _scopes(self) -> frozenset[Scope]:
        return frozenset(self.scopes.split())  # type: ignore[arg-type]


class IssuedSecret(NamedTuple):
    webhook: Webhook
    version: int


def _seen_by(caller: Caller) -> tuple[str, int | str]:
    sees_all = "keys:admin" in caller.scopes
    return ("environment", caller.environment) if sees_all else ("key_id", caller.id)


async def list_webhooks(
    store: Reader, caller: Caller, after: int | None, limit: int, *, failing: bool = False
) -> Page[Webhook]:
    column, value = _seen_by(caller)
    table = f"(SELECT * FROM webhooks WHERE {_FAILING}) AS webhooks" if failing else "webhooks"  # noqa: S608 - only names
    select = f"SELECT {COLUMNS} FROM {table}"  # noqa: S608 - only names
    return await read_page(
        store, "select_webhooks", select, {column: value}, after, limit, webhook_of
    )


async def get_webhook(store: Reader, webhook_id: int, caller: Caller) -> Webhook:
    column, value = _seen_by(caller)
    sql = f"{_SELECT} WHERE id = ?1 AND {column} = ?2"
    rows = await store.read(Statement(sql, (webhook_id, value), name="select_webhook"))
    return found(rows, webhook_of, "webhook", webhook_id)


async def has_webhooks(store: Reader) -> bool:
    select = Statement("SELECT max(id) FROM webhooks", name="select_last_webhook")
    return await store.read(select) != [(None,)]


def create_webhook(new: WebhookCreate, key_id: int, now: Milliseconds) -> Unit[IssuedSecret]:
    # So two requests at once cannot both create the last one.
    rows = yield Statement(
        "SELECT coalesce(k.environment, p.environment) FROM callers c"
        " LEFT JOIN api_keys k ON k.id = c.id LEFT JOIN people p ON p.id = c.id"
        " WHERE c.id = ?1 /*pg FOR NO KEY UPDATE OF c */",
        (key_id,),
        name="lock_key",
    )
    environment = found(rows, itemgetter(0), "key", key_id)
    ((count,),) = yield Statement(
        "SELECT count(*) FROM webhooks WHERE key_id = ?1", (key_id,), name="count_webhooks"
    )
    if count >= MAX_WEBHOOKS:
        raise TooManyWebhooks(f"this key has {count} webhooks, the maximum; delete one first")
    # Its start is random: the id of a webhook that a restored backup does not have is given again,
    # and must not come with the secret of the one before.
    version = randbits(_VERSION_BITS)
    rows = yield Statement(
        "INSERT INTO webhooks (key_id, url, types, description, created_at, enabled,"  # noqa: S608
        " secret_version, environment, failures, position)"
        f" VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, 0, {_NEWEST}) RETURNING {COLUMNS}",
        (
            *(key_id, new.url, " ".join(in_order(new.types)), new.description, now, version),
            environment,
        ),
        name="insert_webhook",
    )
    return IssuedSecret(webhook_of(rows[0]), version)


def require_own(webhook: Webhook, caller: Caller | None) -> None:
    """Reject all but disabling the webhook of another caller."""
    owner = webhook.owner
    if caller is not None and owner.id != caller.id:
        raise NotOwner(
            f"webhook {webhook.id} belongs to {owner.type} {owner.id}, which alone can do this;"
            " you can disable it"
        )


def change_webhook(change: Change, webhook_id: int, patch: WebhookPatch) -> Unit[Webhook]:
    """Enabled again, it resumes from now. An event says that an administrator has disabled it."""
    webhook = yield from _locked(change, webhook_id, only_disables=patch == _DISABLE)
    given = given_fields(patch)
    if patch.types is not UNSET:
        given["types"] = in_order(patch.types)
    changed = replace(webhook, **given)
    if changed == webhook:
        return webhook
    if changed.enabled and not webhook.enabled:
        changed = replace(changed, disabled_reason=None, failing_since=None)
    yield Statement(
        "UPDATE webhooks SET url = ?2, types = ?3, description = ?4, enabled = ?5,"
        " disabled_reason = ?6,"
        # Another endpoint has not asked to wait.
        " paused_until = CASE WHEN url = ?2 THEN paused_until END WHERE id = ?1",
        (
            *(webhook_id, changed.url, " ".join(changed.types), changed.description),
            *(int(changed.enabled), changed.disabled_reason),
        ),
        name="update_webhook",
    )
    if changed.enabled and not webhook.enabled:
        yield Statement(
            "UPDATE webhooks SET failures = 0, failing_since = NULL, paused_until = NULL,"  # noqa: S608 - only names
            f" position = {_NEWEST} WHERE id = ?1",
            (webhook_id,),
            name="resume_webhook",
        )
    if change.caller is not None and webhook.owner.id != change.caller.id:
        yield change.record(_own_event("webhook.disabled", changed, {"enabled": True}))
    return changed


def rotate_webhook(change: Change, webhook_id: int, grace: Milliseconds) -> Unit[IssuedSecret]:
    webhook = yield from _locked(change, webhook_id)
    ((version,),) = yield Statement(
        "UPDATE webhooks SET secret_version = secret_version + 1, previous_secret_ends_at = ?2"
        " WHERE id = ?1 RETURNING secret_version",
        (webhook_id, change.now + grace),
        name="rotate_webhook",
    )
    return IssuedSecret(webhook, version)


def delete_webhook(change: Change, webhook_id: int) -> Unit[None]:
    yield from _locked(change, webhook_id)
    yield Statement("DELETE FROM webhooks WHERE id = ?1", (webhook_id,), name="delete_webhook")


def record_test(change: Change, webhook_id: int) -> Unit[WebhookTest]:
    insert = change.record(
        _own_event("webhook.test", (yield from lock_enabled(change, webhook_id)))
    )
    yield insert
    return WebhookTest(str(insert.parameters[0]))


def lock_enabled(change: Change, webhook_id: int) -> Unit[Webhook]:
    webhook = yield from _locked(change, webhook_id)
    if not webhook.enabled:
        raise WebhookDisabled(f"webhook {webhook.id} is disabled; enable it first")
    return webhook


async def active_webhooks(
    store: Reader, environment: Environment, now: Milliseconds
) -> list[LeasedWebhook]:
    rows = await store.read(
        Statement(
            f"SELECT w.id, w.key_id, {_SCOPES}, w.url, w.types, w.secret_version,"  # noqa: S608
            " w.previous_secret_ends_at, w.position, w.paused_until, w.recovered_to,"
            " w.leased_by, w.leased_until,"
            " (SELECT d.due_at FROM webhook_deliveries d WHERE d.state = 'pending' AND"
            "  /*sqlite*/ d.webhook_id = w.id ORDER BY d.due_at /*end*/"
            "  /*pg d.webhook_id >= w.id AND d.webhook_id <= w.id"
            "  ORDER BY d.webhook_id, d.due_at */ LIMIT 1)"
            " FROM webhooks w LEFT JOIN api_keys k ON k.id = w.key_id"
            " LEFT JOIN people p ON p.id = w.key_id"
            " WHERE w.enabled = 1 AND w.environment = ?1"
            " AND coalesce(k.revoked_at, p.disabled_at) IS NULL"
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
    yield Statement(
        "UPDATE webhooks SET leased_by = NULL, leased_until = NULL WHERE leased_by = ?1",
        (owner,),
        name="release_webhooks",
    )


def webhook_of(row: Row) -> Webhook:
    webhook_id, url, types, description, enabled, reason, *moments, key_id, kind = row
    values: list[Any] = [webhook_id, url, types.split(), description, bool(enabled), reason]
    values += (None if at is None else utc_second(at) for at in moments)
    values.append(WebhookOwner(kind, key_id))
    return Webhook(*values)


def _own_event(
    kind: EventType, webhook: Webhook, previous: dict[str, Any] | None = None
) -> NewEvent:
    return NewEvent(kind, f"webhook/{webhook.id}", webhook, previous, webhook.owner.id)


def _locked(change: Change, webhook_id: int, *, only_disables: bool = False) -> Unit[Webhook]:
    column, value = _seen_by(change.caller) if change.caller else ("id", webhook_id)
    rows = yield Statement(
        f"{_SELECT} WHERE id = ?1 AND {column} = ?2 /*pg FOR UPDATE */",
        (webhook_id, value),
        name="lock_webhook",
    )
    webhook = found(rows, webhook_of, "webhook", webhook_id)
    if not only_disables:
        require_own(webhook, change.caller)
    change.check(webhook)
    return webhook
