"""What only a browser does: it leaves out cookies, and says where a form comes from."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from support.process import ServerProcess, petstore


@pytest.fixture
def person(browser: Browser) -> Iterator[BrowserContext]:
    """A browser of one person, without JavaScript."""
    context = browser.new_context(java_script_enabled=False)
    yield context
    context.close()


def test_a_person_who_follows_a_link_of_another_site_is_still_signed_in(
    shop: ServerProcess, person: BrowserContext
) -> None:
    page = person.new_page()
    page.goto(f"{shop.url}/console/sign-in")
    page.get_by_label("API key").fill(shop.issue())
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Animals")
    wanted = f"{shop.url}/console/session"
    page.route(
        "http://mail.example/",
        lambda route: route.fulfill(
            content_type="text/html", body=f'<a href="{wanted}">Your session</a>'
        ),
    )
    page.goto("http://mail.example/")
    page.get_by_role("link", name="Your session").click()
    expect(page.locator("h1")).to_have_text("Your session")
    assert page.url == wanted


def test_a_link_for_one_use_signs_in_and_leaves_no_trace(
    shop: ServerProcess, person: BrowserContext, tmp_path: Path
) -> None:
    options = ("--public-url", shop.url, "--database", shop.database)
    link = petstore("console", "link", "1", *options, cwd=tmp_path).stdout.strip()
    page = person.new_page()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.headers.get("referer", "")))
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Animals")
    assert sent
    secret = link.rpartition("/")[2]
    assert not [text for text in (*sent, page.url, page.content()) if secret in text]
