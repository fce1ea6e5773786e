"""The pages of keys, for administrators: find, create, change, rotate, revoke and unban them."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from petstore.clock import DAY
from petstore.console import charts
from petstore.console.edits import Edit, unchanged
from petstore.console.forms import Problem, problem_of
from petstore.console.key_changes import action_in_words, changes_in_words
from petstore.console.key_fields import (
    LABELS,
    SCOPE_WORDS,
    body_of,
    fields_of,
    limit_hint,
    new_fields,
    offered_plans,
    offered_scopes,
    typed_edit,
    typed_fields,
    undo_of,
)
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import HOME, Page, Result, Visit
from petstore.console.rotation import GRACES, rotate
from petstore.console.templates import isolated
from petstore.domain.api_keys import check_rights
from petstore.errors import (
    BeyondOwnRights,
    Conflict,
    InvalidBody,
    PetstoreError,
    PreconditionFailed,
    ResponseSealed,
)
from petstore.http.messages import Response
from petstore.store.console_sessions import create_link
from petstore.store.key_alerts import EXPIRING, MAX_ALERTS, KeyUse, find_alerts, find_use
from petstore.store.key_status import Key, found, select_key

_LOG = logging.getLogger(__name__)
_ON_A_PAGE = 50
_REFUSED = (InvalidBody, BeyondOwnRights, Conflict)
_SENT_BEFORE = Problem(
    "",
    "This form was sent before, and the key is there. Its token was shown then and cannot be shown"
    " again. Find the key in the list and rotate it to get another one.",
)


async def _list(visit: Visit) -> Response:
    query = {"limit": _ON_A_PAGE, "cursor": visit.form.text("cursor") or None}
    keys = await visit.call("listKeys", query=query)
    services = visit.services
    alerts = await find_alerts(services.store, visit.key.environment, services.clock())
    return visit.page(
        "keys.html",
        keys=keys,
        alerts=alerts,
        windows=_windows,
        most=MAX_ALERTS,
        days=EXPIRING // DAY,
    )


async def _new(visit: Visit) -> Response:
    return _new_form(visit, new_fields(visit.key))


async def _create(visit: Visit) -> Response:
    typed = typed_fields(visit.form)
    body = body_of(typed, visit.key)
    try:
        created = await visit.call("createKey", body=body, once=visit.form.text("once"))
    except ResponseSealed as error:
        return _new_form(visit, typed, error.status, _SENT_BEFORE)
    except _REFUSED as error:
        return _new_form(visit, typed, error.status, _problem(error))
    return visit.page("key_token.html", 201, key=created.value)


async def _show(visit: Visit) -> Response:
    return await _page(visit)


async def _update(visit: Visit) -> Response:
    edit, before = typed_edit(visit.form), await _get(visit)
    try:
        # The form has no version: a key that is used has another one every minute.
        _require_unchanged(edit, before.value)
        changed = await visit.call(
            "updateKey",
            path_id=visit.path_id,
            body=body_of(edit.changes, visit.key),
            if_match=before.tag,
        )
    except (*_REFUSED, PreconditionFailed) as error:
        return await _page(visit, edit, error)
    key: Key = changed.value
    if key.id == visit.key.id and "keys:admin" not in key.scopes:
        return await visit.redirect("")  # these pages are no longer for this person
    undo = Undo(_path(visit), undo_of(before.value, key))
    name = isolated(key.name)
    notice = change_notice(name, f"{name} is changed.", undo, visit.form.text("undo"))
    return await visit.redirect(_path(visit), notice)


def _require_unchanged(edit: Edit, key: Key) -> None:
    """Refuse to change a key that is another one since its form was opened."""
    if key.state == "revoked" or edit.differences(fields_of(key)):
        msg = "somebody else changed this key since the form was opened"
        raise PreconditionFailed(msg)


async def _rotate(visit: Visit) -> Response:
    try:
        return await rotate(visit, visit.path_id, _path(visit))
    except _REFUSED as error:
        return await _page(visit, error=error)


async def _revoke(visit: Visit) -> Response:
    before = await _get(visit)
    try:
        await visit.call("revokeKey", path_id=visit.path_id)
    except _REFUSED as error:
        return await _page(visit, error=error)
    return await visit.redirect("/keys", Notice(f"{isolated(before.value.name)} is revoked."))


async def _unban(visit: Visit) -> Response:
    await visit.call("unbanKey", path_id=visit.path_id)
    return await visit.redirect(_path(visit), Notice("The ban is lifted."))


async def _rehearse(visit: Visit) -> Response:
    """Let a key rehearse the sunset, or end that."""
    wanted = visit.form.text("on") == "true"
    body = {"rehearseSunset": wanted}
    changed = await visit.call("updateKey", path_id=visit.path_id, body=body)
    name = isolated(changed.value.name)
    text = f"{name} gets the usual responses again."
    if wanted:
        text = f"Operations that will end respond to {name} as if they had ended."
    undo = Undo(f"{_path(visit)}/rehearse", {"on": "" if wanted else "true"})
    return await visit.redirect("/deprecations", Notice(text, undo))


async def _link(visit: Visit) -> Response:
    """Make a link that signs a person in with the key, if that gives no more than the own key."""
    services, key_id = visit.services, visit.path_id
    rows = await services.store.read(select_key(key_id))
    key = found(rows, key_id, visit.key.environment).key
    now = services.clock()
    try:
        check_rights(visit.key, key)
        unit = create_link(key_id, f"key {visit.key.id}", now, visit.session)
        secret = await services.store.write(unit)
    except _REFUSED as error:
        return await _page(visit, error=error)
    _LOG.info("key %d made a link to sign in with key %d", visit.key.id, key_id)
    return visit.page("key_link.html", key=key, link=f"{visit.root}{HOME}/link/{secret}")


async def _history(visit: Visit) -> Response:
    key = await _get(visit)
    query = {"limit": _ON_A_PAGE, "cursor": visit.form.text("cursor") or None}
    events = await visit.call("listKeyHistory", path_id=visit.path_id, query=query)
    return visit.page(
        "key_history.html",
        key=key.value,
        cursor=events.cursor,
        action_in_words=action_in_words,
        events=[(event, changes_in_words(event)) for event in events.value],
    )


async def _get(visit: Visit) -> Result:
    return await visit.call("getKey", path_id=visit.path_id)


async def _page(
    visit: Visit, edit: Edit | None = None, error: PetstoreError | None = None
) -> Response:
    """Return the page of a key as it is now, with what was typed and what is wrong with it."""
    key: Key = (await _get(visit)).value
    fields = fields_of(key)
    services, own = visit.services, visit.key
    use = await find_use(services.store, key, services.clock())
    is_conflict = isinstance(error, PreconditionFailed)
    form = unchanged(fields) if edit is None else edit.onto(fields)
    return visit.page(
        "key.html",
        200 if error is None else error.status,
        key=key,
        form=form,
        is_conflict=is_conflict,
        differences=() if edit is None else edit.differences(fields),
        problem=None if error is None or is_conflict else _problem(error),
        labels=LABELS,
        meters=[charts.meter(f"Used {name}", used, limit) for name, used, limit in _windows(use)],
        scope_words=SCOPE_WORDS,
        graces=GRACES,
        **_offered(visit, fields),
        is_own=key.id == own.id,
    )


def _new_form(
    visit: Visit, typed: Mapping[str, str], status: int = 200, problem: Problem | None = None
) -> Response:
    return visit.page("key_new.html", status, typed=typed, problem=problem, **_offered(visit, {}))


def _offered(visit: Visit, before: Mapping[str, str]) -> dict[str, Any]:
    """Return what the form of a key offers: what the own key can give, and what was there."""
    own = visit.key
    return {
        "plans": offered_plans(own, before.get("plan", "")),
        "scopes": offered_scopes(own, before.get("scopes", "")),
        "hints": [limit_hint(limit) for limit in own.limits],
        "own": own,
    }


def _windows(use: KeyUse) -> Sequence[tuple[str, int, int | None]]:
    """Return each window of a key in words, what is used of it, and its limit."""
    key = use.key
    return (("this minute", use.minute, key.perMinute), ("today", use.day, key.perDay))


def _problem(error: PetstoreError) -> Problem:
    problem = problem_of(error, LABELS)
    return problem._replace(text=problem.text.removesuffix(", or null"))


def _path(visit: Visit) -> str:
    return f"/keys/{visit.path_id}"


PAGES = (
    Page("GET", "/keys", _list, needs="listKeys"),
    Page("GET", "/keys/new", _new, needs="createKey"),
    Page("POST", "/keys", _create, needs="createKey"),
    Page("GET", "/keys/{keyId}", _show, needs="getKey"),
    Page("POST", "/keys/{keyId}", _update, needs="updateKey"),
    Page("POST", "/keys/{keyId}/rotate", _rotate, needs="rotateKey"),
    Page("POST", "/keys/{keyId}/revoke", _revoke, needs="revokeKey"),
    Page("POST", "/keys/{keyId}/unban", _unban, needs="unbanKey"),
    Page("POST", "/keys/{keyId}/rehearse", _rehearse, needs="updateKey"),
    Page("POST", "/keys/{keyId}/link", _link, needs="rotateKey"),
    Page("GET", "/keys/{keyId}/history", _history, needs="listKeyHistory"),
)
