"""The pages of keys, for administrators: find, create, change, rotate, revoke and unban them."""

from typing import Any

from petstore.console.fields import Field, FieldSet
from petstore.console.forms import Problem
from petstore.console.history import history_of
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import ConsolePage, PageRequest, again_if_used
from petstore.console.rotation import GRACES, rotate
from petstore.console.scopes import scopes_in_words
from petstore.console.templates import isolated
from petstore.domain.names import MAX_SEARCHED
from petstore.errors import PetstoreError, PreconditionFailed, SecretAlreadyShown
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.keys.form import key_form, new_fields, undo_of
from petstore.keys.model import Key
from petstore.usage.pages import usage_shown

_SEARCH = FieldSet(
    Field(
        "name",
        "Name, number, or end of a token",
        type="search",
        attributes={"maxlength": MAX_SEARCHED},
    )
)
_SENT_BEFORE = Problem(
    "",
    "This form was sent before, and the key is there. Its token was shown then and cannot be shown"
    " again. Find the key in the list and rotate it to get another one.",
)


async def _list(visit: PageRequest) -> Response:
    typed = _SEARCH.typed(visit.form)
    found = await visit.list_page("listKeys", name=typed["name"] or None)
    return visit.page(
        "keys.html",
        form=_SEARCH.new(visit.form, None),
        keys=found.value,
        cursor=found.next,
        kept=typed if typed["name"] else {},
    )


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
    usage = await usage_shown(visit, (await visit.execute("getKeyUsage")).value, key.id)
    return visit.page(
        "key.html",
        error=error,
        key=key,
        form=form,
        history=await history_of(visit, f"key/{key.id}"),
        may_do=scopes_in_words(key.scopes),
        graces=GRACES[:-1],
        is_own=key.id == visit.caller.id,
        **usage,
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


async def _get(visit: PageRequest) -> Result[Any]:
    return await visit.execute("getKey")


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
)
