"""The pages of keys for administrators, and of the usage of a key for its owner."""

import re
from functools import partial
from typing import Any
from urllib.parse import urlencode

from petstore.clock import DAY, SECOND, Milliseconds, milliseconds, rfc3339, utc
from petstore.console.forms import GRACES, Field, FieldSet, choice, isolated, problem_of, words
from petstore.console.history import history_of
from petstore.console.numbers import Bars, chart_day
from petstore.console.page import ConsolePage, Notice, PageRequest, executes, operation_in_words
from petstore.console.templates import SCOPE_WORDS
from petstore.domain.decoding import number_or_text
from petstore.domain.names import MAX_SEARCHED
from petstore.domain.plans import PLANS, UNLIMITED, Limits
from petstore.errors import PreconditionFailed
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.keys.model import PREFIXES, Key
from petstore.usage.operations import Usage, UsageWindow, list_statuses

_SEARCH = FieldSet(
    Field(
        "name",
        "Name, number, or end of a token",
        type="search",
        attributes={"maxlength": MAX_SEARCHED},
    )
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _limits_in_words(limits: Limits) -> str:
    if limits.per_minute == UNLIMITED:
        return "limits of its own"
    return f"{limits.per_minute:,} a minute, {limits.per_day:,} a day"


def _limit_field(name: str, window: str) -> Field:
    def show(key: Key) -> str:
        limit = key.per_minute if name == "perMinute" else key.per_day
        return "" if limit is None or key.plan != "enterprise" else str(limit)

    return Field(
        *(name, f"Own limit: requests a {window}"),
        show=show,
        parse=lambda text: number_or_text(text) if text else None,
        hint="Only for the plan enterprise. Leave empty for no limit.",
        attributes={"inputmode": "numeric"},
    )


_FORM = FieldSet(
    Field(
        *("name", "Name"),
        hint="What the key is for, such as Till 2.",
        attributes={"maxlength": 100, "aria-required": "true"},
    ),
    choice(
        *("plan", "Plan"),
        *((plan, f"{plan}: {_limits_in_words(limits)}") for plan, limits in PLANS.items()),
    ),
    _limit_field("perMinute", "minute"),
    _limit_field("perDay", "day"),
    Field(
        *("scopes", "Permissions"),
        show=lambda key: words(key.scopes),
        parse=str.split,
        control="boxes",
        options=[*SCOPE_WORDS.items()],
    ),
    Field(
        *("allowedNetworks", "Allowed networks"),
        show=lambda key: words(key.allowed_networks),
        parse=str.split,
        control="lines",
        hint="One a line, such as 203.0.113.0/24. Leave empty for any network.",
    ),
    Field(
        *("expiresAt", "Last day (UTC)"),
        show=lambda key: f"{key.expires_at:%Y-%m-%d}" if key.expires_at else "",
        # A day ends in UTC; an undo has the very second.
        parse=lambda text: f"{text}T23:59:59Z" if _DATE.fullmatch(text) else text or None,
        hint="Leave empty for no expiry.",
        type="date",
    ),
)
_NEW_KEY = {**dict.fromkeys(_FORM.labels, ""), "plan": "free", "scopes": "orders:read pets:read"}


async def _list(request: PageRequest) -> Response:
    typed = _SEARCH.typed(request.form)
    found = await request.list_page("listKeys", name=typed["name"] or None)
    deprecated = Result[list[Any]]([])
    if not (typed["name"] or request.form.text("cursor")):
        deprecated = await request.execute("listDeprecations", query={"limit": 50})
    return request.page(
        "keys.html",
        deprecated=deprecated,
        form=_SEARCH.new(request.form, None),
        keys=found.value,
        cursor=found.next,
        kept=typed if typed["name"] else {},
    )


async def _find(request: PageRequest) -> Response:
    """Lead to what is searched for. Of a token, the address has the end alone: logs keep it."""
    name = request.form.text("name").strip()
    if name.startswith((*PREFIXES.values(),)):
        name = name[-4:]
    return await request.redirect(f"/keys?{urlencode({'name': name})}" if name else "/keys")


async def _new(request: PageRequest) -> Response:
    form = _FORM.new(request.form, request.error, _NEW_KEY)
    return request.page("key_new.html", form=form)


async def _create(request: PageRequest) -> Response:
    key = (await request.execute("createKey", _FORM.body(_FORM.typed(request.form)))).value
    return request.page("key_token.html", 201, key=key, back=f"/keys/{key.id}")


async def _show(request: PageRequest) -> Response:
    key: Key = (await request.execute("getKey")).value
    usage = await _usage_shown(request, (await request.execute("getKeyUsage")).value, key.id)
    return request.page(
        "key.html",
        key=key,
        form=_FORM.shown(_FORM.texts(key), "", request.form, request.error),
        history=await history_of(request, f"key/{key.id}"),
        graces=GRACES[:-1],
        **usage,
    )


async def _update(request: PageRequest) -> Response:
    if (await request.execute("getKey")).value.state == "revoked":
        raise PreconditionFailed("another user revoked this key")
    before, key = await request.change("Key", _FORM)
    texts = _FORM.texts(before)
    if before.expires_at not in (None, key.expires_at):
        texts["expiresAt"] = rfc3339(milliseconds(before.expires_at))
    return await request.tell_change(isolated(key.name), texts, _FORM.texts(key))


async def _revoke(request: PageRequest) -> Response:
    key: Key = (await request.execute("getKey")).value
    await request.execute("revokeKey")
    return await request.redirect("/keys", Notice(f"{isolated(key.name)} is revoked."))


# The usage of a key

_ENDS_SOON = 14 * DAY


async def _usage_shown(request: PageRequest, usage: Usage, key_id: int) -> dict[str, Any]:
    days = [(chart_day(day.date), day.requests) for day in usage.days]
    return {
        "usage": usage,
        "windows": [_window("This minute", usage.minute), _window("Today", usage.day)],
        "days": Bars("Requests on each of the last 30 days", "requests", "Day", days),
        "statuses": await list_statuses(request.services, key_id),
        "operation_in_words": operation_in_words,
    }


def _window(label: str, window: UsageWindow) -> tuple[str, int, int | None, Milliseconds]:
    limit = None if window.limit == UNLIMITED else window.limit
    return label, window.limit - window.remaining, limit, window.reset * SECOND


async def _show_usage(request: PageRequest) -> Response:
    services, own = request.services, request.caller
    usage: Usage = (await request.execute("getUsage")).value
    return request.page(
        "usage.html",
        problem=None if request.error is None else problem_of(request.error),
        key=own,
        # The end of the token of the session, which a rotation may have set.
        ends_at=None if own.expires_at is None else utc(own.expires_at),
        ends_soon=own.end - services.clock() <= _ENDS_SOON,
        graces=GRACES[:-1],
        **await _usage_shown(request, usage, own.id),
    )


async def _rotate_by(operation_id: str, request: PageRequest) -> Response:
    """It is no redirect: no other response has the token. A form sent twice rotates twice."""
    grace = request.form.text("graceSeconds")
    rotated = await request.execute(operation_id, {"graceSeconds": number_or_text(grace)})
    ends = dict(GRACES).get(grace, f"in {grace} seconds")
    return request.page("key_token.html", key=rotated.value, ends=ends, back=request.own_path)


_rotate, _rotate_own = partial(_rotate_by, "rotateKey"), partial(_rotate_by, "rotateCurrentKey")
_unban = executes("unbanKey", "The ban is lifted.")

PAGES = (
    ConsolePage("GET", "/keys", _list, "listKeys"),
    ConsolePage("POST", "/keys/find", _find, "listKeys", has_secret=True),
    ConsolePage("GET", "/keys/new", _new, "createKey"),
    ConsolePage("POST", "/keys", _create, "createKey", _new),
    ConsolePage("GET", "/keys/{keyId}", _show, "getKey"),
    ConsolePage("POST", "/keys/{keyId}", _update, "updateKey", _show),
    ConsolePage("POST", "/keys/{keyId}/rotate", _rotate, "rotateKey", _show),
    ConsolePage("POST", "/keys/{keyId}/revoke", _revoke, "revokeKey", _show),
    ConsolePage("POST", "/keys/{keyId}/unban", _unban, "unbanKey"),
    ConsolePage("GET", "/usage", _show_usage, "getUsage"),
    ConsolePage("POST", "/usage/rotate", _rotate_own, "rotateCurrentKey", _show_usage),
)
