"""The pages of the console. Routes and rights come from here."""

from petstore.console import deprecations, keys, pets, sign_in
from petstore.console.page import Page

PAGES: tuple[Page, ...] = (
    *sign_in.PAGES,
    *pets.PAGES,
    *keys.PAGES,
    *deprecations.PAGES,
)
