"""The documentation at ``/docs``: the files that ``make docs`` built, found by their address."""

import gzip
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from petstore.errors import NotFound
from petstore.http.messages import Headers, Request, Response
from petstore.interface.application import PublicPage
from petstore.interface.content_codings import choose_coding
from petstore.interface.entity_tags import conditional, conditions_of

MANIFEST = "files.json"
"""The list of the files, in their folder."""

CODINGS = {"zstd": ".zst", "gzip": ".gz"}
"""The codings that each file is stored in, the preferred first, and the endings of their names."""

HOME = "/docs/"

_FOLDER = Path(__file__).parent.parent / "site"
_CACHED_FILES = 64
# So many folders may be above a page that there is not: each is in all its links.
_DEEPEST = 9
_NOTHING = "there is nothing here; the interface is under /v1, and its docs are at /docs"
_NOT_BUILT = (
    "the documentation is not built; run `make docs` in the checkout and start the service again"
)
_REDIRECTS = {
    "/": HOME,
    "/docs": HOME,
    "/llms.txt": f"{HOME}llms.txt",
    "/llms-full.txt": f"{HOME}llms-full.txt",
}
_HTML = "text/html"
_IMMUTABLE = b"cache-control: public, max-age=31536000, immutable"
_CHECKED = b"cache-control: public, no-cache"
_VARY = b"vary: Accept-Encoding"
_NOT_MODIFIED = 304


class SiteFile(msgspec.Struct, frozen=True):
    """A file of the site: its name in the folder, its media type, and a digest of its content.

    An immutable one has another address when its content changes.
    """

    name: str
    media_type: str
    digest: str
    is_immutable: bool = False


class Manifest(msgspec.Struct):
    """What the folder has: files and redirects by their path, and the policy of all pages.

    The file ``missing`` is the page for an address that has none. Its links begin with a slash,
    which is the folder of the site.
    """

    policy: str
    missing: str = ""
    files: dict[str, SiteFile] = {}
    redirects: dict[str, str] = {}


class Site:
    """The site in a folder. Its manifest is read at once, each file when it is first requested."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        self._folder = folder
        self._manifest: Manifest | None = None
        if (folder / MANIFEST).exists():
            encoded = (folder / MANIFEST).read_bytes()
            self._manifest = msgspec.json.decode(encoded, type=Manifest)
        self._content = lru_cache(_CACHED_FILES)(self._read)

    @property
    def is_built(self) -> bool:
        """Whether the folder has the site."""
        return self._manifest is not None

    def pages(self) -> dict[str, PublicPage]:
        """Return the pages by their path: the files, and the redirects to them."""
        pages = {path: _redirect(path, target) for path, target in _REDIRECTS.items()}
        if self._manifest is None:
            return pages
        for path, target in self._manifest.redirects.items():
            pages[path] = _redirect(path, target)
        policy = f"content-security-policy: {self._manifest.policy}".encode()
        for path, file in self._manifest.files.items():
            pages[path] = self._page(file, policy)
        return pages

    async def missing(self, request: Request) -> Response:
        """Respond to a browser with the page for an address that has none.

        Raises:
            NotFound: a program sent the request, or the site is not built.
        """
        manifest = self._manifest
        if manifest is None and request.path.startswith(HOME):
            raise NotFound(_NOT_BUILT)
        wants_page = _HTML.encode() in request.fields.get(b"accept", b"")
        above = request.path.count("/") - 1
        if manifest is None or not manifest.missing or not wants_page or above > _DEEPEST:
            raise NotFound(_NOTHING)
        # Relative, so a proxy may serve it all below another path.
        root = f"{'../' * above}{HOME.strip('/')}".encode()
        page = self._content(manifest.missing, None)
        for name in (b"=", b'"base":', b'"search":'):
            page = page.replace(name + b'"/', name + b'"' + root + b"/")
        headers = [
            f"content-type: {_HTML}; charset=utf-8".encode(),
            f"content-security-policy: {manifest.policy}".encode(),
            b"cache-control: no-store",
        ]
        return Response(404, page, headers, code=NotFound.code)

    def _page(self, file: SiteFile, policy: bytes) -> PublicPage:
        caching = _IMMUTABLE if file.is_immutable else _CHECKED
        headers: Headers = [f"content-type: {file.media_type}".encode()]
        if file.media_type.startswith(_HTML):
            headers.append(policy)

        async def respond(request: Request) -> Response:
            coding = choose_coding(request, CODINGS)
            tag = f'"{file.digest}{"" if coding is None else f"-{coding}"}"'.encode()
            shared: Headers = [b"etag: " + tag, caching, _VARY]
            found = conditional(conditions_of(request), Response(200, b"", [], tag=tag))
            if found.status == _NOT_MODIFIED:
                return Response(_NOT_MODIFIED, b"", shared)
            coded = [] if coding is None else [f"content-encoding: {coding}".encode()]
            body = self._content(file.name, coding)
            return Response(200, body, [*headers, *coded, *shared], tag=tag)

        return respond

    def _read(self, name: str, coding: str | None) -> bytes:
        """Return a file in a coding. As it is, it is not stored: few clients take no coding."""
        if coding is None:
            return gzip.decompress(self._read(name, "gzip"))
        return (self._folder / f"{name}{CODINGS[coding]}").read_bytes()


@cache
def service_site() -> Site:
    """Return the service's own site, made once in a process."""
    return Site()


def _redirect(path: str, target: str) -> PublicPage:
    """Return the page that leads to ``target``, which stands in the same folder or below.

    The reference is relative, so a proxy may serve it all below another path (RFC 9110 10.2.2).
    """
    folder = f"{path.rpartition('/')[0]}/"
    location = f"location: {target.removeprefix(folder) or './'}".encode()

    async def respond(_: Request) -> Response:
        return Response(307, b"", [location])

    return respond
