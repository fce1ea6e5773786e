"""Links lead to every page of the console, so the screenshots show each one."""

import httpx
import pytest

from petstore.console.console import PAGES
from support.servers import servers_in
from support.visitor import SAME_ORIGIN
from website.screenshots import IN_DOCS, addresses, link_of, name_of
from website.sources import ROOT

UNLINKED = {
    "/sign-in",  # the others lead there who are not signed in
    "/link/{secret}",
    "/invitation/{secret}",
    "/session",  # the page of keys; people have an account
    "/usage",
    "/changes",  # a stream, which the script follows
    *("/import/{importId}", "/import/{importId}/undo"),  # until there is one
    "/pets/selection",  # of selected animals
    "/categories/names",  # what a field suggests
    "/webhooks/{webhookId}/replay",  # the one of the demo store is disabled
}


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages that links lead to in the demo store, and their paths."""
    with servers_in(tmp_path_factory.mktemp("demo")) as start:
        server = start("--demo")
        with httpx.Client(headers=SAME_ORIGIN, follow_redirects=True) as client:
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            client.post(link_of(server), headers=form).raise_for_status()
            return dict(addresses(lambda path: client.get(f"{server.url}{path}").text))


def test_links_lead_to_every_page_of_the_console(named: dict[str, str]) -> None:
    pages = {page.path for page in PAGES if page.method == "GET" and "." not in page.path}
    unlinked = {path for path in pages if name_of(path) not in named}
    assert unlinked == UNLINKED


@pytest.mark.parametrize("image", IN_DOCS.values())
def test_a_picture_stands_in_the_documentation(image: str) -> None:
    assert (ROOT / f"docs/images/{image}.png").stat().st_size < 200_000
    pages = [(ROOT / "README.md").read_text(), (ROOT / "docs/console.md").read_text()]
    assert any(f"images/{image}.png)" in page for page in pages)


def test_a_picture_is_of_a_page_that_links_lead_to(named: dict[str, str]) -> None:
    assert {shot.rsplit("-", 2)[0] for shot in IN_DOCS} <= set(named)
