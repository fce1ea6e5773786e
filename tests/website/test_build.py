"""A build stops at what a reader would stumble over."""

import re
from pathlib import Path

import pytest

from website.build import check_navigation
from website.navigation import Entry
from website.rendering import BuildError, render

LISTED = {"Reference": [Entry("HTTP", "http.md", ""), Entry("All", "operations/index.md", "")]}


def test_a_page_outside_the_navigation_stops_the_build() -> None:
    sources = {"index.md": "", "http.md": "", "guides/lost.md": ""}
    with pytest.raises(BuildError, match=r"docs/guides/lost.md: not in the lists of docs/README"):
        check_navigation(sources, LISTED)


def test_pages_beside_an_index_and_repository_files_need_no_navigation_entry() -> None:
    paths = ("index.md", "operations/index.md", "operations/a.md", "repository/CHANGELOG.md")
    check_navigation(dict.fromkeys(paths, ""), LISTED)


def test_broken_links_stop_the_build_and_are_listed(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# A\n\n[page](nothing.md)\n\n[anchor](#nothing)\n")
    with pytest.raises(BuildError) as stopped:
        render(docs, [{"Home": "index.md"}])
    lines = re.sub(r":\d+: ", ": ", str(stopped.value)).splitlines()
    assert sorted(lines) == [
        "docs/index.md:3: page does not exist",
        "docs/index.md:5: anchor does not exist",
    ]


def test_a_rendering_error_is_reported_with_its_reason(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    with pytest.raises(BuildError, match="nav"):
        render(docs, [{"Home": 7}])  # type: ignore[dict-item] # a mistake in the configuration
