"""The pages by which crawlers and security researchers find what is here."""

from collections.abc import Sequence

from petstore.clock import DAY, Clock, rfc3339
from petstore.coalescing import SingleFlight
from petstore.databases.contract import Store
from petstore.errors import NotFound
from petstore.http.messages import Request, Response
from petstore.interface.application import PublicPage
from petstore.interface.messages import NO_STORE, json_response
from petstore.interface.operation import BASE

_CONTACTS = "/.well-known/security.txt"
_ROBOTS = f"User-agent: *\nAllow: {BASE}/openapi.json\nDisallow: {BASE}/\nDisallow: /console/\n"
# RFC 9116 section 2.5.5 recommends less than a year.
_CONTACTS_VALID = 180 * DAY


def well_known_pages(
    public_url: str, security_contacts: Sequence[str], clock: Clock
) -> dict[str, PublicPage]:
    """Return ``robots.txt`` (RFC 9309) and ``security.txt`` (RFC 9116) by their paths."""

    async def robots(_: Request) -> Response:
        return _text(_ROBOTS)

    async def contacts(_: Request) -> Response:
        if not security_contacts:
            msg = "no contact for security reports; the operator names one (--security-contact)"
            raise NotFound(msg)
        lines = [f"Contact: {contact}" for contact in security_contacts]
        lines.append(f"Expires: {rfc3339((clock() + _CONTACTS_VALID) // DAY * DAY)}")
        if public_url:
            lines.append(f"Canonical: {public_url}{_CONTACTS}")
        return _text("".join(f"{line}\n" for line in lines))

    return {"/robots.txt": robots, _CONTACTS: contacts}


def _text(text: str) -> Response:
    lines = [b"content-type: text/plain; charset=utf-8", b"cache-control: public, max-age=86400"]
    return Response(200, text.encode("ascii"), lines)


class HealthPages:
    """``/healthz``: the process runs. ``/readyz``: it can also use the database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_retiring = False
        self._checks: SingleFlight[None, None] = SingleFlight()

    def shut_down(self) -> None:
        """Report 503 from now on: the process stops soon."""
        self._is_retiring = True

    async def live(self, _: Request) -> Response:
        """Respond with 200 while the process runs."""
        return json_response(200, {"status": "alive"}, [NO_STORE])

    async def ready(self, _: Request) -> Response:
        """Respond with 200 while the database responds, and with 503 before a stop.

        Health checks have no key and no limit. Those that arrive during a check share its result,
        so that many of them do not load the database.
        """
        if self._is_retiring:
            return json_response(503, {"status": "stopping"})
        await self._checks.call(None, self._store.check)
        return json_response(200, {"status": "ready"}, [NO_STORE])
