"""The sources of the site, of a small checkout."""

from pathlib import Path

import pytest

from website.sources import Sources

FILES = {
    "README.md": "See [errors](docs/errors.md#codes) and [the decisions](docs/decisions).",
    "CHANGELOG.md": "# Changelog\n\n## [1.0.0]\n\n[1.0.0]: ../../releases/tag/v1.0.0\n",
    "deploy/compose.yaml": "services: {}",
    "src/secret.py": "",
    "docs/README.md": "[The tour](../README.md#a-tour) and [http](http.md)",
    "docs/http.md": (
        "[compose](../deploy/compose.yaml), [web](https://a.example/b), [here](#http),"
        " [log](../CHANGELOG.md)"
    ),
    "docs/errors.md": "`handlers[kind](event)` and [lost](nothing.md) and [out](../../etc)",
    "docs/decisions/README.md": "[one](0001-one.md) and [http](../http.md)",
    "docs/decisions/0001-one.md": "",
    "docs/titles.md": (
        "# The `titles`\n\n[titles.md](titles.md#a), [http.md](http.md), [x.md](x.md)"
    ),
    "docs/shop.svg": "<svg/>",
}


@pytest.fixture
def staged(tmp_path: Path) -> dict[str, str]:
    """The staged files, by their paths."""
    for name, text in FILES.items():
        file = tmp_path / "checkout" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    folder = tmp_path / "staged"
    Sources(tmp_path / "checkout").stage(folder)
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def test_the_site_has_only_the_pages_and_the_files_they_link_to(staged: dict[str, str]) -> None:
    assert sorted(staged) == [
        *("decisions/0001-one.md", "decisions/index.md", "errors.md", "http.md", "index.md"),
        *("repository/CHANGELOG.md", "repository/deploy/compose.yaml", "repository/index.md"),
        *("shop.svg", "titles.md"),
    ]


def test_a_link_is_rewritten_to_its_target_in_the_site(staged: dict[str, str]) -> None:
    assert staged["index.md"] == "[The tour](repository/index.md#a-tour) and [http](http.md)"
    assert staged["repository/index.md"] == (
        "See [errors](../errors.md#codes) and [the decisions](../decisions/index.md)."
    )
    assert staged["decisions/index.md"] == "[one](0001-one.md) and [http](../http.md)"


def test_external_links_and_link_like_text_stay_unchanged(staged: dict[str, str]) -> None:
    assert staged["http.md"] == (
        "[compose](repository/deploy/compose.yaml), [web](https://a.example/b), [here](#http),"
        " [log](repository/CHANGELOG.md)"
    )
    assert staged["errors.md"] == FILES["docs/errors.md"]


def test_an_address_of_the_git_host_is_left_out(staged: dict[str, str]) -> None:
    assert staged["repository/CHANGELOG.md"] == "# Changelog\n\n## [1.0.0]\n\n"


def test_a_link_that_names_a_file_has_the_title_of_the_page(staged: dict[str, str]) -> None:
    links = "[The `titles`](titles.md#a), [http.md](http.md), [x.md](x.md)"
    assert staged["titles.md"] == f"# The `titles`\n\n{links}"
