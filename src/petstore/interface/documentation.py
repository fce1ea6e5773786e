"""The pages that need no key: the documentation that ``make docs`` wrote, and others."""

import gzip
from functools import lru_cache, partial
from pathlib import Path

import msgspec

from petstore.coalescing import SingleFlight
from petstore.databases.contract import Store
from petstore.errors import NotFound
from petstore.http.messages import Headers, Request, Response
from petstore.interface.application import PublicPage
from petstore.interface.messages import (
    NO_STORE,
    conditional,
    conditions_of,
    entity_tag,
    json_response,
    takes_gzip,
)
from petstore.interface.operation import BASE

FOLDER = Path(__file__).parent.parent / "site"
"""The folder that ``make docs`` writes."""

HOME = "/docs/"
MANIFEST = "files.json"
MISSING = "404.html"
"""The page for an address that has none."""

ENDING = ".gz"
"""The ending of the name of each file, which is stored compressed."""

_CACHED_FILES = 64
_HTML = "text/html; charset=utf-8"
_NOTHING = "page not found; the API is under /v1, and its docs are at /docs"
_NOT_BUILT = (
    "the documentation is not built; run `make docs` in the checkout and start the service again"
)


class SiteFile(msgspec.Struct, frozen=True):
    """An immutable file has another address when its content changes."""

    name: str
    media_type: str
    is_immutable: bool = False


class Manifest(msgspec.Struct, frozen=True):
    """The policy of all pages (``Content-Security-Policy``), and files and redirects by path."""

    policy: str = ""
    files: dict[str, SiteFile] = {}
    redirects: dict[str, str] = {}


class Documentation:
    """The documentation in a folder. Each file is read when it is first requested."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        manifest = folder / MANIFEST
        encoded = manifest.read_bytes() if manifest.exists() else b"{}"
        self._manifest = msgspec.json.decode(encoded, type=Manifest)
        self._content = lru_cache(_CACHED_FILES)(self._read)

    @property
    def is_built(self) -> bool:
        return bool(self._manifest.files)

    def pages(self) -> dict[str, PublicPage]:
        """References in redirects are relative, so a proxy may serve it all below another path."""
        redirects = {"/": HOME.removeprefix("/"), **self._manifest.redirects}
        return {
            **{path: partial(_redirect, location) for path, location in redirects.items()},
            **{path: partial(self._file, file) for path, file in self._manifest.files.items()},
        }

    async def missing(self, request: Request) -> Response:
        """Respond to an address that has no page, with one if the client takes HTML."""
        if not self.is_built and f"{request.path}/".startswith(HOME):
            raise NotFound(_NOT_BUILT)
        if not self.is_built or b"text/html" not in request.fields.get(b"accept", b"").lower():
            raise NotFound(_NOTHING, {"Vary": "Accept"})
        body, _ = self._content(MISSING, is_compressed=False)
        lines = [*self._headers(_HTML), b"vary: Accept"]
        return Response(404, body, lines, code=NotFound.code, is_shared=True)

    async def _file(self, file: SiteFile, request: Request) -> Response:
        is_compressed = takes_gzip(request)
        body, tag = self._content(file.name, is_compressed=is_compressed)
        caching = b"max-age=31536000, immutable" if file.is_immutable else b"no-cache"
        shared = [b"etag: " + tag, b"cache-control: public, " + caching, b"vary: Accept-Encoding"]
        coded = [b"content-encoding: gzip"] if is_compressed else []
        lines = [*self._headers(file.media_type), *coded, *shared]
        whole = Response(200, body, lines, tag=tag, is_shared=True)
        found = conditional(conditions_of(request), whole)
        return whole if found is whole else Response(304, b"", shared)

    def _headers(self, media_type: str) -> Headers:
        lines = [f"content-type: {media_type}".encode()]
        if media_type == _HTML:
            lines.append(f"content-security-policy: {self._manifest.policy}".encode())
        return lines

    def _read(self, name: str, *, is_compressed: bool) -> tuple[bytes, bytes]:
        """Return a file and its entity tag."""
        body = (self._folder / f"{name}{ENDING}").read_bytes()
        if not is_compressed:
            body = gzip.decompress(body)
        return body, entity_tag(body)


async def _redirect(location: str, _: Request) -> Response:
    return Response(307, b"", [f"location: {location}".encode()])


_ROBOTS = f"User-agent: *\nAllow: {BASE}/openapi.json\nDisallow: {BASE}/\nDisallow: /console/\n"


async def robots(_: Request) -> Response:
    """Keep crawlers (RFC 9309) to the documentation."""
    lines = [b"content-type: text/plain; charset=utf-8", b"cache-control: public, max-age=86400"]
    return Response(200, _ROBOTS.encode("ascii"), lines)


class HealthPages:
    """``/healthz``: the process runs. ``/readyz``: it can also use the database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_retiring = False
        self._checks: SingleFlight[None, None] = SingleFlight()

    def shut_down(self) -> None:
        self._is_retiring = True

    async def live(self, _: Request) -> Response:
        return json_response(200, {"status": "alive"}, [NO_STORE])

    async def ready(self, _: Request) -> Response:
        """Health checks have no key and no limit, so those that arrive during one share it."""
        if self._is_retiring:
            return json_response(503, {"status": "stopping"})
        await self._checks.call(None, self._store.check)
        return json_response(200, {"status": "ready"}, [NO_STORE])
