"""The files as they are served: short addresses, compressed, with the policy of their scripts."""

import gzip
import re
import shutil
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from petstore.interface.documentation import ENDING, HOME, MANIFEST, MISSING, Manifest, SiteFile

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_TEXT = "text/plain; charset=utf-8"
_UNUSED = {"sitemap.xml", ".map"}
# Links within the site: none has a scheme or begins with a slash.
_LINK = re.compile(r'(?<=href=")([^":?]*?)(index)?\.html(?=[#"])')
_PLACE = re.compile(r"(index)?\.html(?=#|$)")
_ROOT = re.compile(r'(=|"base":|"search":)"/')
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_PAGE_ENDING = re.compile(r"(?<![^/])index\.html\Z|\.html\Z")
_HASHED = re.compile(r"\.[0-9a-f]{8}\.min\.")


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
    shutil.rmtree(target, ignore_errors=True)
    manifest = Manifest(policy=_policy(scripts))
    for name, content in contents.items():
        file = target / f"{name}{ENDING}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content, mtime=0))
        if name != MISSING:
            _add(manifest, name)
    (target / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    return sum(name.endswith(".html") for name in contents) - (MISSING in contents)


def _add(manifest: Manifest, name: str) -> None:
    """Add a file at its address, and what leads there. The address of a page has no ending."""
    page, suffix = _PAGE_ENDING.sub("", name), Path(name).suffix
    address, last = f"{HOME}{page}", page.rpartition("/")[2]
    file = SiteFile(name, _TYPES.get(suffix, _TEXT), is_immutable=bool(_HASHED.search(name)))
    manifest.files[address] = file
    if suffix == ".txt":
        manifest.files[f"/{name}"] = file
    if suffix == ".html":
        manifest.redirects[f"{HOME}{name}"] = last or "./"
        folder = address.rstrip("/")
        if last:
            manifest.redirects[f"{folder}/"] = f"../{last}"
        else:
            manifest.redirects[folder] = f"{folder.rpartition('/')[2]}/"


def _finished(name: str, content: bytes, scripts: set[str]) -> bytes:
    """Return a file of the site with short addresses; note the scripts that stand in it."""
    if name == "search.json":
        index = msgspec.json.decode(content)
        for item in index["items"]:
            item["location"] = _PLACE.sub("", item["location"])
        return msgspec.json.encode(index)
    if not name.endswith(".html"):
        return content
    page = _LINK.sub(lambda link: link[1] or ("./" if link[2] else ""), content.decode())
    if name == MISSING:  # shown at any address, so its links begin with a slash
        page = _ROOT.sub(rf'\1"{HOME}', page)
    else:
        markdown = f'<link rel="alternate" type="text/markdown" href="{Path(name).stem}.md">'
        page = page.replace("</head>", f"{markdown}\n  </head>", 1)
    scripts |= set(_SCRIPT.findall(page))
    return page.encode()


def _policy(scripts: set[str]) -> str:
    hashes = sorted(b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{found}'" for found in hashes)
    return (
        f"default-src 'none'; script-src 'self' {allowed}; worker-src 'self'; style-src 'self'"
        " 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    )
