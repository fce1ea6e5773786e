"""Pages made of templates, and the files that they load."""

import gzip
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import cache, cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import jinja2
from markupsafe import Markup

from petstore.clock import DAY, HOUR, MINUTE, Milliseconds, milliseconds, utc
from petstore.console.forms import isolated
from petstore.console.numbers import grouped, money_in_words
from petstore.domain.time_zones import local_time
from petstore.http.messages import Headers, Request, Response
from petstore.interface.messages import takes_gzip
from petstore.keys.model import Scope

_FOLDER = Path(__file__).parent
_FOLDERS = sorted(_FOLDER.parent.glob("*/templates"))
_ASSETS = {
    "console.css": b"text/css; charset=utf-8",
    "console.js": b"text/javascript; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}
_IMMUTABLE = b"cache-control: public, max-age=31536000, immutable"
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    b" form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Headers = [
    b"content-type: text/html; charset=utf-8",
    b"cache-control: no-store",
    b"content-security-policy: " + _POLICY,
    # Without a referrer the browser would send no Origin with a form either. An address may have a
    # secret, which no other page must learn.
    b"referrer-policy: strict-origin",
    b"cross-origin-opener-policy: same-origin",
    b"cross-origin-resource-policy: same-origin",
    b"x-frame-options: DENY",
]


SCOPE_WORDS: Mapping[Scope, str] = {
    "pets:read": "See pets and categories",
    "pets:write": "Add, change and delete pets and categories",
    "orders:read": "See orders and the inventory",
    "orders:write": "Place, approve, deliver and cancel orders",
    "webhooks:write": "Manage webhooks, which send events to programs",
    "keys:admin": "Manage all keys and people",
}


class _Asset:
    """A file that pages load. Its address has a digest of its content, so it never changes."""

    def __init__(self, name: str) -> None:
        self._content = (_FOLDER / "assets" / name).read_bytes()
        stem, _, ending = name.rpartition(".")
        digest = blake2b(self._content, digest_size=6).hexdigest()
        self.name = f"{stem}.{digest}.{ending}"
        self._headers = [b"content-type: " + _ASSETS[name], _IMMUTABLE, b"vary: Accept-Encoding"]

    @cached_property
    def _compressed(self) -> bytes:
        return gzip.compress(self._content, mtime=0)

    def response(self, request: Request) -> Response:
        if not takes_gzip(request):
            return Response(200, self._content, self._headers)
        return Response(200, self._compressed, [*self._headers, b"content-encoding: gzip"])


class Templates:
    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._assets = {name: _Asset(name) for name in _ASSETS}
        self.assets = {asset.name: asset for asset in self._assets.values()}

    def page(self, name: str, status: int, context: Mapping[str, Any]) -> Response:
        text = self._environment.get_template(name).render(context)
        return Response(status, text.encode("utf-8", "replace"), _HEADERS)

    @cached_property
    def _environment(self) -> jinja2.Environment:
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_FOLDERS),
            autoescape=True,
            auto_reload=False,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals["asset"] = lambda name: f"assets/{self._assets[name].name}"
        environment.globals["once"] = secrets.token_urlsafe
        environment.filters.update(
            rights=lambda scopes: "; ".join(
                words for scope, words in SCOPE_WORDS.items() if scope in scopes
            ),
            time=partial(shown_time, zone=self._zone),
            day=_day,
            ago=_ago,
            until=_until,
            number=_number,
            money=money_in_words,
            grouped=grouped,
            isolated=isolated,
            begun=begun,
            breakable=lambda text: Markup("<wbr>").join(
                re.findall(r"[^@/.,;]*[@/.,;]*", text)[:-1]
            ),
        )
        return environment


templates = cache(Templates)
"""The templates of this process, by time zone: each is compiled once, whatever serves it."""


def begun(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def shown_time(moment: datetime | str | Milliseconds, zone: ZoneInfo) -> Markup:
    """Return a moment (or RFC 3339) in the store's time zone; the script shows the reader's."""
    if isinstance(moment, int):
        moment = utc(moment)
    elif isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    with suppress(OverflowError):  # the first or the last day of the calendar keeps its zone
        moment = moment.astimezone(UTC)
    local = local_time(moment, zone)
    shown = f"{local.day} {local:%b %Y, %H:%M}"
    # Neither can have markup, and escaping them takes longer than all the rest.
    return Markup(f'<time datetime="{_machine(moment)}">{shown}</time>')  # noqa: S704


def _day(day: date | str) -> Markup | str:
    """Return a day, which the script shows as the reader writes it; other texts stay as typed."""
    text = str(day)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return text
    return Markup(f'<time datetime="{day}">{day.day} {day:%b %Y}</time>')  # noqa: S704 - no markup


def ago_in_words(span: Milliseconds) -> str:
    for unit, name, one in ((DAY, "day", "a"), (HOUR, "hour", "an"), (MINUTE, "minute", "a")):
        count = span // unit
        if count > 0:
            return f"{one} {name} ago" if count == 1 else f"{count} {name}s ago"
    return "just now"


def _ago(moment: datetime | Milliseconds, now: Milliseconds) -> Markup:
    if isinstance(moment, datetime):
        moment = milliseconds(moment)
    machine, ago = _machine(utc(moment)), ago_in_words(now - moment)
    return Markup(f'<time datetime="{machine}" data-ago>{ago}</time>')  # noqa: S704 - no markup


def _machine(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _until(moment: datetime, now: Milliseconds) -> Markup:
    minutes = max((milliseconds(moment) - now) // MINUTE, 1)
    hours = minutes // 60
    left = f"{hours} h" if hours else f"{minutes} min"
    if hours >= 48:  # noqa: PLR2004 - two days
        left = f"{hours // 24} days"
    machine = _machine(moment)
    return Markup(f'<time datetime="{machine}" data-until>{left} left</time>')  # noqa: S704 - no markup


def _number(number: int) -> Markup:
    return Markup(f'<data value="{number}">{grouped(number)}</data>')  # noqa: S704 - an integer
