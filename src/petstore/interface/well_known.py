"""The pages by which crawlers, security researchers and programs find what is here."""

from collections.abc import Sequence

from msgspec.structs import replace

from petstore.clock import DAY, Clock, rfc3339
from petstore.errors import NotFound
from petstore.http.messages import Request, Response
from petstore.interface.application import PublicPage
from petstore.interface.messages import encode_json
from petstore.interface.operation import BASE
from petstore.interface.routes import Addresses

_DESCRIPTION = f"{BASE}/openapi.json"
_DOCUMENTATION = "/docs/"
_CATALOG = "/.well-known/api-catalog"
_CONTACTS = "/.well-known/security.txt"
_ROBOTS = f"User-agent: *\nAllow: {_DESCRIPTION}\nDisallow: {BASE}/\nDisallow: /console/\n"
_TEXT = b"content-type: text/plain; charset=utf-8"
_LINKSET = (
    b'content-type: application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
)
_CACHED = b"cache-control: public, max-age=86400"
# RFC 9116 section 2.5.5 recommends less than a year.
_CONTACTS_VALID = 180 * DAY


class WellKnown:
    """The pages at addresses that are the same for every service."""

    def __init__(
        self, addresses: Addresses, security_contacts: Sequence[str], clock: Clock
    ) -> None:
        self._addresses = addresses
        self._security_contacts = security_contacts
        self._clock = clock

    def pages(self) -> dict[str, PublicPage]:
        """Return the pages by their paths."""
        return {
            "/robots.txt": self._robots,
            _CONTACTS: self._contacts,
            _CATALOG: self.linked(self._catalog),
        }

    def linked(self, page: PublicPage) -> PublicPage:
        """Return ``page`` with links to the catalog, the OpenAPI document and its explanation.

        RFC 8631 and RFC 9727 name these relations.
        """

        async def respond(request: Request) -> Response:
            response = await page(request)
            root = self._addresses.root(request)
            link = (
                f'link: <{root}{_CATALOG}>; rel="api-catalog",'
                f' <{root}{_DESCRIPTION}>; rel="service-desc"; type="application/json",'
                f' <{root}{_DOCUMENTATION}>; rel="service-doc"; type="text/html"'
            )
            return replace(response, headers=[*response.headers, link.encode("ascii")])

        return respond

    async def _robots(self, _: Request) -> Response:
        """Respond with what crawlers may read: neither the interface nor the console (RFC 9309)."""
        return Response(200, _ROBOTS.encode("ascii"), [_TEXT, _CACHED])

    async def _contacts(self, _: Request) -> Response:
        """Respond with where to report a vulnerability (RFC 9116).

        Raises:
            NotFound: the operator has named no contact.
        """
        if not self._security_contacts:
            msg = "no contact for security reports; the operator names one (--security-contact)"
            raise NotFound(msg)
        expires = (self._clock() + _CONTACTS_VALID) // DAY * DAY
        lines = [f"Contact: {contact}" for contact in self._security_contacts]
        lines.append(f"Expires: {rfc3339(expires)}")
        if self._addresses.public_url:
            lines.append(f"Canonical: {self._addresses.public_url}{_CONTACTS}")
        text = "".join(f"{line}\n" for line in lines)
        return Response(200, text.encode("ascii"), [_TEXT, _CACHED])

    async def _catalog(self, request: Request) -> Response:
        """Respond with the interface of this service, its document and its state (RFC 9727)."""
        root = self._addresses.root(request)
        interface = {
            "anchor": f"{root}{BASE}",
            "service-desc": [{"href": f"{root}{_DESCRIPTION}", "type": "application/json"}],
            "service-doc": [{"href": f"{root}{_DOCUMENTATION}", "type": "text/html"}],
            "status": [{"href": f"{root}/readyz", "type": "application/json"}],
        }
        return Response(200, encode_json({"linkset": [interface]}), [_LINKSET, _CACHED])
