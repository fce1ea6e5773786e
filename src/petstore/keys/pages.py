"""The pages of keys, for administrators: find, create, change, rotate, revoke and unban them."""

import logging
from collections.abc import Sequence
from typing import Any

from petstore.console import charts
from petstore.console.fields import Field, FieldSet
from petstore.console.forms import Problem
from petstore.console.history import history_of
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import (
    HOME,
    ConsolePage,
    PageRequest,
    again_if_used,
    operation_in_words,
)
from petstore.console.rotation import GRACES, rotate
from petstore.console.scopes import scopes_in_words
from petstore.console.templates import isolated
from petstore.domain.cursors import BY_ID
from petstore.errors import InvalidParameter, PetstoreError, PreconditionFailed, SecretAlreadyShown
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.keys.alerts import MAX_ALERTS, find_alerts
from petstore.keys.form import (
    key_form,
    new_fields,
    undo_of,
)
from petstore.keys.model import check_rights
from petstore.keys.status import Key, found, select_key
from petstore.keys.uses import KeyUse, find_keys, find_use
from petstore.sessions.store import create_link

_LOG = logging.getLogger(__name__)
_ON_A_PAGE = 50
_SEARCH = FieldSet(Field("name", "Name or number", type="search"))
_SENT_BEFORE = Problem(
    "",
    "This form was sent before, and the key is there. Its token was shown then and cannot be shown"
    " again. Find the key in the list and rotate it to get another one.",
)


async def _list(visit: PageRequest) -> Response:
    services, environment = visit.services, visit.caller.environment
    store, now, typed = services.store, services.clock(), _SEARCH.typed(visit.form)
    after = _start(visit.form.text("cursor"))
    keys = await find_keys(store, environment, typed["name"], after, _ON_A_PAGE, now)
    return visit.page(
        "keys.html",
        form=_SEARCH.new(visit.form, None),
        uses=keys.items,
        cursor="" if keys.next_after is None else BY_ID.encode(keys.next_after),
        kept=typed if typed["name"] else {},
        alerts=await find_alerts(store, environment, now),
        most=MAX_ALERTS,
    )


def _start(cursor: str) -> int | None:
    """Return the id that a page of the list starts after.

    Raises:
        InvalidParameter: the cursor is not one of the list.
    """
    try:
        return BY_ID.decode(cursor) if cursor else None
    except ValueError:
        msg = "cursor: expected the one of a link to the next page"
        raise InvalidParameter(msg) from None


async def _new(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    form = key_form(visit.caller).new(visit.form, error, new_fields(visit.caller))
    problem = _SENT_BEFORE if isinstance(error, SecretAlreadyShown) else form.problem
    return visit.page("key_new.html", error=error, form=form, problem=problem)


async def _create(visit: PageRequest) -> Response:
    fields = key_form(visit.caller)
    body = fields.body(fields.typed(visit.form))
    created = await visit.execute("createKey", body)
    return visit.page("key_token.html", 201, key=created.value)


async def _show(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    """Return the page of a key as it is now, with what was typed and what is wrong with it."""
    key: Key = (await _get(visit)).value
    texts = key_form(visit.caller).texts(key)
    form = key_form(visit.caller, texts).shown(texts, "", visit.form, error)
    use = await find_use(visit.services.store, key, visit.services.clock())
    return visit.page(
        "key.html",
        error=error,
        key=key,
        form=form,
        history=await history_of(visit, f"key/{key.id}"),
        meters=[charts.meter(f"Used {name}", used, limit) for name, used, limit in _windows(use)],
        refused=await visit.services.refusals.of_key(key.id),
        operation_in_words=operation_in_words,
        may_do=scopes_in_words(key.scopes),
        graces=GRACES,
        is_own=key.id == visit.caller.id,
    )


@again_if_used
async def _update(visit: PageRequest) -> Response:
    before, fields = await _get(visit), key_form(visit.caller)
    # The form has no version: a key that is used has another one every minute.
    fields.require_unchanged(visit.form, before.value)
    if before.value.state == "revoked":
        msg = "somebody else revoked this key"
        raise PreconditionFailed(msg)
    changed = await visit.execute("updateKey", fields.patch(visit.form), if_match=before.version)
    key: Key = changed.value
    if key.id == visit.caller.id and "keys:admin" not in key.scopes:
        return await visit.redirect("")  # these pages are no longer for this person
    undo = Undo(_path(visit), undo_of(before.value, key, visit.caller))
    name = isolated(key.name)
    notice = change_notice(name, f"{name} is changed.", undo, visit.form.text("undo"))
    return await visit.redirect(_path(visit), notice)


async def _rotate(visit: PageRequest) -> Response:
    return await rotate(visit, "rotateKey", _path(visit))


async def _revoke(visit: PageRequest) -> Response:
    before = await _get(visit)
    await visit.execute("revokeKey")
    return await visit.redirect("/keys", Notice(f"{isolated(before.value.name)} is revoked."))


async def _unban(visit: PageRequest) -> Response:
    await visit.execute("unbanKey")
    return await visit.redirect(_path(visit), Notice("The ban is lifted."))


async def _link(visit: PageRequest) -> Response:
    """Make a link that signs a person in with the key, if that gives no more than the own key."""
    services, key_id = visit.services, visit.path_id
    rows = await services.store.read(select_key(key_id))
    key = found(rows, key_id, visit.caller.environment).key
    now = services.clock()
    check_rights(visit.caller, key)
    unit = create_link(key_id, now, visit.session)
    secret = await services.store.write(unit)
    _LOG.info("key %d made a link to sign in with key %d", visit.caller.id, key_id)
    return visit.page("key_link.html", key=key, link=f"{visit.root}{HOME}/link/{secret}")


async def _get(visit: PageRequest) -> Result[Any]:
    return await visit.execute("getKey")


async def _deprecations(visit: PageRequest) -> Response:
    """Show the calls of deprecated operations, by key."""
    return visit.page("deprecations.html", uses=await visit.list_page("listDeprecations"))


def _windows(use: KeyUse) -> Sequence[tuple[str, int, int | None]]:
    """Return each window of a key in words, what is used of it, and its limit."""
    key = use.key
    return (("this minute", use.minute, key.per_minute), ("today", use.day, key.per_day))


def _path(visit: PageRequest) -> str:
    return f"/keys/{visit.path_id}"


PAGES = (
    ConsolePage("GET", "/keys", _list, "listKeys"),
    ConsolePage("GET", "/keys/new", _new, "createKey"),
    ConsolePage("POST", "/keys", _create, "createKey", _new),
    ConsolePage("GET", "/keys/{keyId}", _show, "getKey"),
    ConsolePage("POST", "/keys/{keyId}", _update, "updateKey", _show),
    ConsolePage("POST", "/keys/{keyId}/rotate", _rotate, "rotateKey", _show),
    ConsolePage("POST", "/keys/{keyId}/revoke", _revoke, "revokeKey", _show),
    ConsolePage("POST", "/keys/{keyId}/unban", _unban, "unbanKey"),
    ConsolePage("POST", "/keys/{keyId}/link", _link, "rotateKey", _show),
    ConsolePage("GET", "/deprecations", _deprecations, "listDeprecations"),
)
