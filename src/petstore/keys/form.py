"""The form of a key, which offers what the key of the person can give."""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from petstore.clock import Milliseconds, rfc3339, utc
from petstore.console.fields import Field, FieldSet, Texts, choice, undo_fields, words
from petstore.console.forms import number_or_text
from petstore.console.scopes import SCOPE_WORDS
from petstore.domain.plans import PLANS, UNLIMITED, PlanName
from petstore.keys.model import SCOPES, Caller, Key

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def key_form(own: Caller, now: Texts | None = None) -> FieldSet:
    """Return the form of a key that is as ``now``: it offers what the key ``own`` can give."""
    now = now or {"plan": "", "scopes": ""}
    return FieldSet(
        Field(
            *("name", "Name"),
            hint="What the key is for, such as Till 2.",
            attributes={"maxlength": 100, "aria-required": "true"},
        ),
        choice("plan", "Plan", *_offered_plans(own, now["plan"])),
        _limit_field("perMinute", "minute", own.limits.per_minute),
        _limit_field("perDay", "day", own.limits.per_day),
        Field(
            *("scopes", "Scopes"),
            show=lambda key: words(key.scopes),
            parse=str.split,
            control="boxes",
            options=_offered_scopes(own, now["scopes"]),
            caption="Scopes: what it may do",
        ),
        _networks_field(own),
        _end_field(own),
    )


def new_fields(own: Caller) -> dict[str, str]:
    """Return the texts of the form of a new key: all that the key ``own`` must not go beyond."""
    scopes: Iterable[str] = own.scopes - {"keys:admin", "webhooks:write"}
    return {
        **dict.fromkeys(key_form(own).labels, ""),
        "plan": "free",
        "scopes": words(scopes),
        "allowedNetworks": words(own.allowed_networks),
        "expiresAt": "" if own.expires_at is None else f"{utc(own.expires_at):%Y-%m-%d}",
    }


def undo_of(before: Key, after: Key, own: Caller) -> dict[str, str]:
    """Return the fields of a form that makes a key what it was ``before``, to the second."""
    form = key_form(own)
    texts = form.texts(before)
    if before.expires_at != after.expires_at and before.expires_at is not None:
        texts["expiresAt"] = rfc3339(int(before.expires_at.timestamp() * 1000))
    return undo_fields(texts, form.texts(after))


def _limit_field(name: str, window: str, own: int) -> Field:
    """Return the field of a limit, which can be given up to that of the own key."""
    most = ". Empty is no limit." if own == UNLIMITED else f", up to {own:,}."
    return Field(
        *(name, f"Requests a {window}"),
        show=partial(_shown_limit, name),
        parse=lambda text: number_or_text(text) if text else None,
        hint=f"Only for the plan enterprise{most}",
        caption=f"Own limit: requests a {window}",
        attributes={"inputmode": "numeric"},
    )


def _networks_field(own: Caller) -> Field:
    within = "Empty is anywhere."
    if own.allowed_networks:
        within = f"Only within those of your key: {', '.join(own.allowed_networks)}."
    return Field(
        *("allowedNetworks", "Networks"),
        show=lambda key: words(key.allowed_networks),
        parse=str.split,
        control="lines",
        hint=f"One a line, such as 203.0.113.0/24. {within}",
        caption="Networks that it may be used from",
    )


def _end_field(own: Caller) -> Field:
    own_end = own.expires_at
    return Field(
        *("expiresAt", "Expires"),
        show=lambda key: f"{key.expires_at:%Y-%m-%d}" if key.expires_at else "",
        parse=partial(_end_of, own_end),
        hint="At the latest the last day of your own key." if own_end else "Empty is never.",
        caption="Last day that it works (UTC)",
        type="date",
    )


def _shown_limit(name: str, key: Key) -> str:
    limit = key.per_minute if name == "perMinute" else key.per_day
    return "" if limit is None or key.plan != "enterprise" else str(limit)


def _offered_plans(own: Caller, before: str) -> Sequence[tuple[str, str]]:
    """Return the plans that the key ``own`` can give, and the one from before, with words."""
    return [
        (plan, f"{plan}: {_limits_in_words(plan)}")
        for plan, limits in PLANS.items()
        if plan in (before, "enterprise")
        or (limits.per_minute <= own.limits.per_minute and limits.per_day <= own.limits.per_day)
    ]


def _offered_scopes(own: Caller, before: str) -> Sequence[tuple[str, str]]:
    """Return the scopes that the key ``own`` can give, and those from before, with words."""
    return [
        (scope, SCOPE_WORDS[scope])
        for scope in SCOPES
        if scope in own.scopes or scope in before.split()
    ]


def _limits_in_words(plan: PlanName) -> str:
    limits = PLANS[plan]
    if limits.per_minute == UNLIMITED:
        return "limits of its own"
    return f"{limits.per_minute:,} a minute, {limits.per_day:,} a day"


def _end_of(own_end: Milliseconds | None, text: str) -> str | None:
    """Return the end of the day (UTC) that a person chose; a date with a time is a moment."""
    if not _DATE.fullmatch(text):
        return text or None
    if own_end is not None and text == f"{utc(own_end):%Y-%m-%d}":
        return rfc3339(own_end)
    return f"{text}T23:59:59Z"
