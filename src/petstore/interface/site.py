"""The documentation at ``/docs``: the files that ``make docs`` built, found by their address."""

import gzip
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from pathlib import Path

import msgspec

from petstore.errors import NotFound
from petstore.http.messages import Headers, Request, Response
from petstore.interface.application import PublicPage
from petstore.interface.content_codings import choose_coding
from petstore.interface.entity_tags import conditional, conditions_of, entity_tag
from petstore.interface.media_types import choose_media_type

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
_MISSING_TEXT = """# There is nothing here

The interface is under `/v1`. [llms.txt]({root}/llms.txt) lists the pages of its
[documentation]({root}/).
"""
_REDIRECTS = {"/": HOME, "/docs": HOME, "/llms-full.txt": f"{HOME}llms-full.txt"}
_INDEX = "llms.txt"
_HTML, MARKDOWN = _PAGES = ("text/html", "text/markdown")
_IMMUTABLE = b"cache-control: public, max-age=31536000, immutable"
_CHECKED = b"cache-control: public, no-cache"
_VARY = b"vary: Accept-Encoding"
_VARY_BY_TYPE = b"vary: Accept, Accept-Encoding"
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

    def pages(self, root: Callable[[Request], str]) -> dict[str, PublicPage]:
        """Return the pages by their path: the files, and the redirects to them.

        A page is HTML, or Markdown for a client that prefers it. ``root`` returns the URL of the
        service, with which the links of ``llms.txt`` begin.
        """
        pages = self._fixed_pages.copy()
        index = f"{HOME}{_INDEX}"
        if self._manifest is not None and index in pages:
            pages[index] = pages[f"/{_INDEX}"] = self._index(self._manifest.files[index], root)
        return pages

    @cached_property
    def _fixed_pages(self) -> dict[str, PublicPage]:
        """The pages by their path, as every service has them."""
        pages = {path: _redirect(path, target) for path, target in _REDIRECTS.items()}
        if self._manifest is None:
            return pages
        for path, target in self._manifest.redirects.items():
            pages[path] = _redirect(path, target)
        policy = f"content-security-policy: {self._manifest.policy}".encode()
        by_name = {file.name: file for file in self._manifest.files.values()}
        for path, file in self._manifest.files.items():
            pages[path] = self._page(file, policy)
            markdown = by_name.get(file.name.removesuffix(".html") + ".md")
            if markdown is not None and file.media_type.startswith(_HTML):
                pages[path] = self._page_in_two_types(file, markdown, policy)
        return pages

    def texts(self) -> dict[str, SiteFile]:
        """Return the Markdown and plain text of the site by the name of its file."""
        files = () if self._manifest is None else self._manifest.files.values()
        kinds = (MARKDOWN, "text/plain")
        return {file.name: file for file in files if file.media_type.startswith(kinds)}

    def text(self, file: SiteFile) -> str:
        """Return the content of a file that is text."""
        return self._content(file.name, None).decode()

    async def missing(self, request: Request) -> Response:
        """Respond with the page for an address that has none, if the client names its media type.

        Raises:
            NotFound: a program sent the request, or the site is not built.
        """
        manifest = self._manifest
        if manifest is None and request.path.startswith(HOME):
            raise NotFound(_NOT_BUILT)
        wanted = choose_media_type(request, "application/json", *_PAGES)
        above = request.path.count("/") - 1
        # Relative, so a proxy may serve it all below another path.
        root = f"{'../' * above}{HOME.strip('/')}"
        if manifest is None or not manifest.missing or above > _DEEPEST or wanted not in _PAGES:
            raise NotFound(_NOTHING, {"Vary": "Accept"})
        if wanted == MARKDOWN:
            return _not_found(MARKDOWN, _MISSING_TEXT.format(root=root).encode())
        page = self._content(manifest.missing, None)
        for name in (b"=", b'"base":', b'"search":'):
            page = page.replace(name + b'"/', name + b'"' + root.encode() + b"/")
        return _not_found(_HTML, page, f"content-security-policy: {manifest.policy}".encode())

    def _page_in_two_types(self, html: SiteFile, markdown: SiteFile, policy: bytes) -> PublicPage:
        pages = {
            media_type: self._page(file, policy, _VARY_BY_TYPE)
            for media_type, file in zip(_PAGES, (html, markdown), strict=True)
        }

        async def respond(request: Request) -> Response:
            return await pages[choose_media_type(request, *_PAGES)](request)

        return respond

    def _page(self, file: SiteFile, policy: bytes, vary: bytes = _VARY) -> PublicPage:
        caching = _IMMUTABLE if file.is_immutable else _CHECKED
        headers: Headers = [f"content-type: {file.media_type}".encode()]
        if file.media_type.startswith(_HTML):
            headers.append(policy)

        async def respond(request: Request) -> Response:
            coding = choose_coding(request, CODINGS)
            tag = f'"{file.digest}{"" if coding is None else f"-{coding}"}"'.encode()
            shared: Headers = [b"etag: " + tag, caching, vary]
            found = conditional(conditions_of(request), Response(200, b"", [], tag=tag))
            if found.status == _NOT_MODIFIED:
                return Response(_NOT_MODIFIED, b"", shared)
            coded = [] if coding is None else [f"content-encoding: {coding}".encode()]
            body = self._content(file.name, coding)
            return Response(200, body, [*headers, *coded, *shared], tag=tag, is_shared=True)

        return respond

    def _index(self, file: SiteFile, root: Callable[[Request], str]) -> PublicPage:
        """Return the page whose links begin with the URL of the service."""
        media_type = f"content-type: {file.media_type}".encode()

        async def respond(request: Request) -> Response:
            text = self.text(file).replace("](/", f"]({root(request)}/")
            body = text.encode()
            tag = entity_tag(body)
            whole = Response(200, body, [media_type, b"etag: " + tag, _CHECKED], tag=tag)
            found = conditional(conditions_of(request), whole)
            if found is whole:
                return whole
            return Response(_NOT_MODIFIED, b"", [b"etag: " + tag, _CHECKED])

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


def _not_found(media_type: str, page: bytes, *headers: bytes) -> Response:
    kind = f"content-type: {media_type}; charset=utf-8".encode()
    lines = [kind, b"cache-control: no-store", b"vary: Accept", *headers]
    return Response(404, page, lines, code=NotFound.code)


def _redirect(path: str, target: str) -> PublicPage:
    """Return the page that leads to ``target``, which stands in the same folder or below.

    The reference is relative, so a proxy may serve it all below another path (RFC 9110 10.2.2).
    """
    folder = f"{path.rpartition('/')[0]}/"
    location = f"location: {target.removeprefix(folder) or './'}".encode()

    async def respond(_: Request) -> Response:
        return Response(307, b"", [location])

    return respond
