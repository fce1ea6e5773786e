"""The files of the site, as they are stored to be served."""

import gzip
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
import zstandard

from petstore.interface.site import MANIFEST, Manifest
from website.files import write_site

SCRIPT = "let palette = 1"
PAGE = f"""<head><script>{SCRIPT}</script><script src="./a.js"></script>
</head><a href="index.html">home</a> <a href="./errors.html#codes">errors</a>
<a href="../decisions/index.html#a">decisions</a> <a href="https://a.example/b.html">elsewhere</a>"""
SEARCH = (
    '{"items":[{"location":"errors.html#codes"},{"location":"index.html","path":["Home"]},'
    '{"location":"decisions/0001-one.html"}]}'
)
RENDERED = {
    "http.html": PAGE,
    "404.html": PAGE,
    "search.json": SEARCH,
    "sitemap.xml": "",
    "assets/app.0123abcd.min.js": "",
    "assets/app.0123abcd.min.js.map": "",
}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The folder of a small site, in place of an older one."""
    for name, text in RENDERED.items():
        file = tmp_path / "rendered" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    target = tmp_path / "site"
    target.mkdir()
    (target / "old.html.gz").touch()
    assert write_site(tmp_path / "rendered", target, {"http.md": "# HTTP"}) == 1
    return target


def manifest(target: Path) -> Manifest:
    return msgspec.json.decode((target / MANIFEST).read_bytes(), type=Manifest)


def stored(target: Path, name: str) -> str:
    return gzip.decompress((target / f"{name}.gz").read_bytes()).decode()


def test_each_file_is_stored_in_exactly_two_codings(target: Path) -> None:
    names = ("http.html", "http.md", "search.json", "assets/app.0123abcd.min.js", "404.html")
    files = {str(file.relative_to(target)) for file in target.rglob("*") if file.is_file()}
    assert files == {MANIFEST, *(f"{name}.{end}" for name in names for end in ("gz", "zst"))}
    zstd = zstandard.decompress((target / "http.html.zst").read_bytes())
    assert zstd.decode() == stored(target, "http.html")


def test_links_within_the_site_have_no_file_extension(target: Path) -> None:
    page = stored(target, "http.html")
    assert '<a href="./">home</a> <a href="./errors#codes">errors</a>' in page
    assert '<a href="../decisions/#a">decisions</a>' in page
    assert 'href="https://a.example/b.html"' in page
    found = stored(target, "search.json")
    assert '{"location":"errors#codes"},{"location":"","path":["Home",' in found


def test_the_search_leaves_out_decision_records(target: Path) -> None:
    assert "0001" in SEARCH
    assert "0001" not in stored(target, "search.json")


def test_a_page_links_to_its_markdown(target: Path) -> None:
    link = '<link rel="alternate" type="text/markdown" href="http.md">'
    assert link in stored(target, "http.html")


def test_the_policy_has_the_digest_of_each_inline_script(target: Path) -> None:
    digest = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}'; " in manifest(target).policy


def test_a_file_named_by_its_digest_never_changes(target: Path) -> None:
    files = manifest(target).files
    assert {path for path, file in files.items() if file.is_immutable} == {
        "/docs/assets/app.0123abcd.min.js"
    }


def test_the_same_content_has_the_same_digest(target: Path, tmp_path: Path) -> None:
    before = manifest(target)
    write_site(tmp_path / "rendered", target, {"http.md": "# HTTP, once more"})
    after = manifest(target)
    assert after.files["/docs/http"] == before.files["/docs/http"]
    assert after.files["/docs/http.md"] != before.files["/docs/http.md"]
