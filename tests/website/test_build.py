"""A build stops at what a reader would stumble over."""

import re
from pathlib import Path

import pytest

from website.build import check_navigation
from website.navigation import Entry
from website.rendering import BuildError, render

LISTED = {"Reference": [Entry("HTTP", "http.md", ""), Entry("All", "operations/index.md", "")]}


def test_a_page_that_stands_in_no_list_stops_the_build() -> None:
    sources = {"index.md": "", "http.md": "", "guides/lost.md": ""}
    with pytest.raises(BuildError, match=r"docs/guides/lost.md: not in the lists of docs/README"):
        check_navigation(sources, LISTED)


def test_pages_beside_an_index_and_files_of_the_repository_need_no_entry() -> None:
    paths = ("index.md", "operations/index.md", "operations/a.md", "repository/CHANGELOG.md")
    check_navigation(dict.fromkeys(paths, ""), LISTED)


def test_links_that_lead_nowhere_stop_the_build_with_their_places(tmp_path: Path) -> None:
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


def test_what_cannot_be_rendered_at_all_says_why(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    with pytest.raises(BuildError, match="nav"):
        render(docs, [{"Home": 7}])  # type: ignore[dict-item] # a mistake in the configuration
