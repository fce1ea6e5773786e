"""The pages of the console. Routes and rights come from here."""

from petstore.console import (
    pets,
    sign_in,
    usage,
    webhooks,
)
from petstore.console.page import Page

PAGES: tuple[Page, ...] = (
    *sign_in.PAGES,
    *pets.PAGES,
    *usage.PAGES,
    *webhooks.PAGES,
)
