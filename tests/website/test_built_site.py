"""What ``make docs`` built: every address in it exists."""

import gzip
import re
from functools import cache
from urllib.parse import urldefrag, urljoin

import msgspec

from petstore.errors import PetstoreError
from petstore.interface.documentation import FOLDER, MANIFEST, Manifest
from petstore.interface.operations import OPERATIONS

_ANCHOR = re.compile(r'\sid="([^"]+)"|\sid=\'([^\']+)\'')
_REFERENCE = re.compile(r'<(?:a|link|script|img)\s[^>]*?(?:href|src)="([^":]*)"')
_ORIGIN = "http://petstore.test"


@cache
def manifest() -> Manifest:
    return msgspec.json.decode((FOLDER / MANIFEST).read_bytes(), type=Manifest)


@cache
def content(path: str) -> str:
    return gzip.decompress((FOLDER / f"{manifest().files[path].name}.gz").read_bytes()).decode()


def pages() -> list[str]:
    return [path for path, file in manifest().files.items() if file.name.endswith(".html")]


@cache
def anchors(path: str) -> set[str]:
    return {first or second for first, second in _ANCHOR.findall(content(path))}


def test_every_link_of_every_page_leads_to_a_page_and_its_anchor() -> None:
    lost = []
    for page in pages():
        for reference in set(_REFERENCE.findall(content(page))):
            address, anchor = urldefrag(urljoin(_ORIGIN + page, reference))
            path = address.removeprefix(_ORIGIN)
            if path == "/console":
                continue
            if path not in manifest().files or (anchor and anchor not in anchors(path)):
                lost.append((page, reference))
    assert lost == []


def test_every_page_has_the_paw_a_link_to_the_console_and_a_markdown_version() -> None:
    for page in pages():
        found = {urljoin(_ORIGIN + page, each) for each in _REFERENCE.findall(content(page))}
        assert {f"{_ORIGIN}/console", f"{_ORIGIN}/docs/icon.svg"} <= found, page
        markdown = manifest().files[page].name.removesuffix("html") + "md"
        assert f"/docs/{markdown}" in manifest().files


def test_every_entry_of_llms_txt_is_a_page() -> None:
    links = re.findall(r"\]\(([^)]+)\)", content("/docs/llms.txt"))
    assert len(links) > len(OPERATIONS)
    assert {*links} - {"/v1/openapi.json"} <= manifest().files.keys()


def test_every_operation_has_a_page_and_every_error_code_an_anchor() -> None:
    for operation in OPERATIONS:
        assert "<h1" in content(f"/docs/operations/{operation.id}")
    codes = {error.code for error in PetstoreError.__subclasses__()}
    assert codes - anchors("/docs/errors") == set()


def test_every_result_of_the_search_has_an_address() -> None:
    found = msgspec.json.decode(content("/docs/search.json"))
    for item in found["items"]:
        path, anchor = urldefrag(f"/docs/{item['location']}")
        assert path in manifest().files
        assert not anchor or anchor in anchors(path)
