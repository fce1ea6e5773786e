"""The pages of the console. Routes and rights come from here."""

from petstore.console import (
    categories,
    changes,
    deprecations,
    exports,
    guide,
    imports,
    inventory,
    keys,
    orders,
    pets,
    sign_in,
    usage,
    webhooks,
)
from petstore.console.page import Page

PAGES: tuple[Page, ...] = (
    *sign_in.PAGES,
    *changes.PAGES,
    *pets.PAGES,
    *orders.PAGES,
    *inventory.PAGES,
    *categories.PAGES,
    *imports.PAGES,
    *exports.PAGES,
    *usage.PAGES,
    *webhooks.PAGES,
    *keys.PAGES,
    *deprecations.PAGES,
    *guide.PAGES,
)
