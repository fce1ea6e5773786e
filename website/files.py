"""The files as they are served: short addresses, compressed, with the policy of their scripts."""

import gzip
import re
import shutil
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path

import msgspec
import zstandard

from petstore.interface.site import CODINGS, HOME, MANIFEST, Manifest, SiteFile
from website.search import searchable

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
# The page for an address that has none.
_MISSING = "404.html"
_TEXT = "text/plain; charset=utf-8"
_UNUSED = {"sitemap.xml", ".map"}
# Links within the site: none has a scheme or begins with a slash.
_LINK = re.compile(r'(?<=href=")([^":?]*?)(index)?\.html(?=[#"])')
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_PAGE_ENDING = re.compile(r"(?<![^/])index\.html\Z|\.html\Z")
_HASHED = re.compile(r"\.[0-9a-f]{8}\.min\.")
_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": zstandard.ZstdCompressor(level=15).compress,
    "gzip": partial(gzip.compress, mtime=0),
}


def write_site(rendered: Path, target: Path, texts: Mapping[str, str]) -> int:
    """Write the rendered site, and ``texts`` beside it, as the service sends them.

    Returns:
        The number of pages.
    """
    contents = {path: text.encode() for path, text in texts.items()}
    scripts: set[str] = set()
    for path in sorted(rendered.rglob("*")):
        name = str(path.relative_to(rendered))
        if path.is_file() and name not in _UNUSED and path.suffix != ".map":
            contents[name] = _finished(name, path.read_bytes(), scripts)
    missing = contents.pop(_MISSING, None)
    shutil.rmtree(target, ignore_errors=True)
    manifest = Manifest(policy=_policy(scripts))
    for name, content in contents.items():
        _add(manifest, name, content, target)
    if missing is not None:
        manifest.missing = _MISSING
        _store(_MISSING, missing, target)
    (target / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    return sum(name.endswith(".html") for name in contents)


def _add(manifest: Manifest, name: str, content: bytes, target: Path) -> None:
    suffix, address = Path(name).suffix, _address(name)
    manifest.files[address] = SiteFile(
        name,
        _TYPES.get(suffix, _TEXT),
        sha256(content).hexdigest()[:24],
        is_immutable=bool(_HASHED.search(name)),
    )
    if suffix == ".html":
        manifest.redirects[f"{HOME}{name}"] = address
        if address.endswith("/"):
            manifest.redirects[address.removesuffix("/")] = address
    _store(name, content, target)


def _store(name: str, content: bytes, target: Path) -> None:
    for coding, ending in CODINGS.items():
        file = target / f"{name}{ending}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_COMPRESSORS[coding](content))


def _address(name: str) -> str:
    """Return the path of the address of a file: a page has no ending."""
    return f"{HOME}{_PAGE_ENDING.sub('', name)}"


def _finished(name: str, content: bytes, scripts: set[str]) -> bytes:
    """Return a file of the site with short addresses; note the scripts that stand in it."""
    if name == "search.json":
        return searchable(content)
    if not name.endswith(".html"):
        return content
    page = _LINK.sub(lambda link: link[1] or ("./" if link[2] else ""), content.decode())
    scripts |= set(_SCRIPT.findall(page))
    if name == _MISSING:
        return page.encode()
    markdown = Path(name).with_suffix(".md").name
    link = f'<link rel="alternate" type="text/markdown" href="{markdown}">\n  </head>'
    return page.replace("</head>", link, 1).encode()


def _policy(scripts: set[str]) -> str:
    hashes = sorted(b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{found}'" for found in hashes)
    return (
        f"default-src 'none'; script-src 'self' {allowed}; worker-src 'self'; style-src 'self'"
        " 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    )
