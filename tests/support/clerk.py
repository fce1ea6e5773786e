"""A person at the console in a real browser."""

from dataclasses import dataclass, field
from typing import Any, Self
from uuid import uuid4

import httpx
from playwright.sync_api import Browser, BrowserContext, Locator, Page

from support.browser import wait_for_forms
from support.process import ServerProcess
from support.staff import cookies_of_administrator
from support.visitor import SAME_ORIGIN


def sign_in(context: BrowserContext, shop: ServerProcess, token: str) -> None:
    for name, value in cookies_of_administrator(shop, token).items():
        context.add_cookies([{"name": name, "value": value, "url": shop.url}])


def sign_in_with_key(context: BrowserContext, shop: ServerProcess, token: str) -> None:
    url = f"{shop.url}/console/sign-in"
    context.request.post(url, form={"key": token}, headers=SAME_ORIGIN)


@dataclass
class Clerk:
    """An administrator on a ``page`` of a browser; ``token`` is that of a key for everything."""

    shop: ServerProcess
    page: Page
    token: str
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        wait_for_forms(self.page)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    @classmethod
    def at(cls, shop: ServerProcess, browser: Browser, token: str, **options: Any) -> Self:
        """Bring in somebody who has signed in; ``options`` are those of the browser."""
        context = browser.new_context(**options)
        sign_in(context, shop, token)
        return cls(shop, context.new_page(), token)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.shop.url}/console{path}")

    def call(self, method: str, path: str, **body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.shop.url}/v1{path}"
        response = httpx.request(method, url, headers=headers, json=body)
        assert response.is_success, response.text
        return response.json() if response.content else None

    def pet(self, **fields: Any) -> Any:
        name = f"Hilda {uuid4().hex[:8]}"
        values = {"name": name, "categoryId": 1, "status": "available"}
        return self.call("POST", "/pets", **(values | fields))

    def field(self, name: str) -> Locator:
        return self.page.locator(f"main form[method=post] [name={name}]:visible").first

    def save(self) -> None:
        """Send that form: the one with *Save*, else the first one."""
        forms = self.page.locator("main form[method=post]:has(:is(input, select):visible)")
        saving = forms.filter(has_text="Save")
        (saving if saving.count() else forms).first.locator("button").first.click()

    def leave(self) -> None:
        """Close the browser, whatever was typed; the script must not have failed."""
        self.page.context.close()
        assert self.errors == []
