"""The fields of the form of a key: from a form, from a key, to the body of an operation."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from petstore.clock import Milliseconds, rfc3339, utc
from petstore.console.edits import Edit
from petstore.console.forms import Form
from petstore.domain.api_keys import SCOPES, ApiKey, Scope
from petstore.domain.plans import PLANS, UNLIMITED, PlanName
from petstore.store.key_status import Key

LABELS = {
    "name": "Name",
    "plan": "Plan",
    "perMinute": "Requests a minute",
    "perDay": "Requests a day",
    "scopes": "Scopes",
    "allowedNetworks": "Networks",
    "expiresAt": "Expires",
    "rehearseSunset": "Rehearses the sunset",
    "revokedAt": "Revoked",
}
"""What the fields of a key are called on pages."""

SCOPE_WORDS: Mapping[Scope, str] = {
    "pets:read": "See animals and categories",
    "pets:write": "Add, change and delete animals and categories",
    "orders:read": "See orders and the inventory",
    "orders:write": "Place, approve, deliver and cancel orders",
    "webhooks:write": "Manage webhooks, which send events to programs",
    "keys:admin": "Manage all keys",
}

_NAMES = tuple(name for name in LABELS if name != "revokedAt")
_LISTS = ("scopes", "allowedNetworks")
_NUMBER = re.compile(r"[0-9]{1,10}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def typed_fields(form: Form, prefix: str = "") -> dict[str, str]:
    """Return the fields of a key as a person typed them; those of a list are joined by spaces."""
    return {
        name: _words(form.all(prefix + name)) if name in _LISTS else form.text(prefix + name)
        for name in _NAMES
    }


def typed_edit(form: Form) -> Edit:
    """Return the fields of a key as the form showed them, and as they were sent."""
    return Edit(typed_fields(form, "was_"), typed_fields(form))


def fields_of(key: Key) -> dict[str, str]:
    """Return the fields of the form that shows a key."""
    limits = (key.perMinute, key.perDay) if key.plan == "enterprise" else (None, None)
    per_minute, per_day = ("" if limit is None else str(limit) for limit in limits)
    return {
        "name": key.name,
        "plan": key.plan,
        "perMinute": per_minute,
        "perDay": per_day,
        "scopes": _words(key.scopes),
        "allowedNetworks": _words(key.allowedNetworks),
        "expiresAt": f"{key.expiresAt:%Y-%m-%d}" if key.expiresAt else "",
        "rehearseSunset": "true" if key.rehearseSunset else "",
    }


def new_fields(own: ApiKey) -> dict[str, str]:
    """Return the fields of the form of a new key: all that the key ``own`` must not go beyond."""
    scopes: Iterable[str] = own.scopes - {"keys:admin", "webhooks:write"}
    return {
        **dict.fromkeys(_NAMES, ""),
        "plan": "free",
        "scopes": _words(scopes),
        "allowedNetworks": _words(own.allowed_networks),
        "expiresAt": "" if own.expires_at is None else f"{utc(own.expires_at):%Y-%m-%d}",
    }


def undo_of(before: Key, after: Key) -> dict[str, str]:
    """Return the fields of a form that makes a key what it was ``before``, to the second."""
    fields, now = fields_of(before), fields_of(after)
    if before.expiresAt != after.expiresAt and before.expiresAt is not None:
        fields["expiresAt"] = rfc3339(int(before.expiresAt.timestamp() * 1000))
    return fields | {f"was_{name}": text for name, text in now.items()}


def body_of(fields: Mapping[str, str], own: ApiKey) -> dict[str, Any]:
    """Return fields as the body of an operation, which says what is wrong with them.

    ``own`` is the key of the person: a key that expires on the same day does at the same moment.
    """
    return {name: _value(name, text, own) for name, text in fields.items()}


def offered_plans(own: ApiKey, before: str = "") -> Sequence[tuple[PlanName, str]]:
    """Return the plans that the key ``own`` can give, and the one from before, with words."""
    return [
        (plan, f"{plan}: {_limits_in_words(plan)}")
        for plan, limits in PLANS.items()
        if plan in (before, "enterprise")
        or (limits.per_minute <= own.limits.per_minute and limits.per_day <= own.limits.per_day)
    ]


def offered_scopes(own: ApiKey, before: str = "") -> Sequence[tuple[Scope, str]]:
    """Return the scopes that the key ``own`` can give, and those from before, with words."""
    return [
        (scope, SCOPE_WORDS[scope])
        for scope in SCOPES
        if scope in own.scopes or scope in before.split()
    ]


def limit_hint(limit: int) -> str:
    """Return what a person should know about a limit that they can give up to ``limit``."""
    if limit == UNLIMITED:
        return "Only for the plan enterprise. Empty is no limit."
    return f"Only for the plan enterprise, up to {limit:,}."


def _limits_in_words(plan: PlanName) -> str:
    limits = PLANS[plan]
    if limits.per_minute == UNLIMITED:
        return "limits of its own"
    return f"{limits.per_minute:,} a minute, {limits.per_day:,} a day"


def _words(texts: Iterable[str]) -> str:
    return " ".join(sorted({word for text in texts for word in text.split()}))


def _value(name: str, text: str, own: ApiKey) -> Any:
    if name in _LISTS:
        return text.split()
    if name == "rehearseSunset":
        return text == "true"
    if name == "expiresAt":
        return _end_of(text, own.expires_at)
    if name in ("perMinute", "perDay"):
        return int(text) if _NUMBER.fullmatch(text) else text or None
    return text


def _end_of(text: str, own_end: Milliseconds | None) -> str | None:
    """Return the end of the day (UTC) that a person chose; a date with a time is a moment."""
    if not _DATE.fullmatch(text):
        return text or None
    if own_end is not None and text == f"{utc(own_end):%Y-%m-%d}":
        return rfc3339(own_end)
    return f"{text}T23:59:59Z"


def scopes_in_words(scopes: Collection[Scope]) -> Sequence[str]:
    """Return what a key with these scopes may do."""
    return [words for scope, words in SCOPE_WORDS.items() if scope in scopes]
