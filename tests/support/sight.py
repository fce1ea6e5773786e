"""What everybody can see and use of a page: on a phone and a desk, light and dark."""

from importlib.resources import files

from playwright.sync_api import Page, ViewportSize

# 320 px is also what 1280 px are with 400 % zoom (WCAG 1.4.10).
PHONE: ViewportSize = {"width": 320, "height": 568}
DESK: ViewportSize = {"width": 1280, "height": 800}

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()
EVERY_RULE = {"rules": {"target-size": {"enabled": True}}}
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
VIOLATIONS = """async options => (await axe.run({resultTypes: ['violations'], ...options}))
  .violations.flatMap(rule => rule.nodes.map(node => `${rule.id}: ${node.html.slice(0, 200)}`))"""
# Links within a text may be as small as the text (WCAG 2.5.8).
TOO_SMALL = """() => [...document.querySelectorAll('a, button, input, select, textarea, summary')]
  .filter(control => control.checkVisibility() && getComputedStyle(control).display != 'inline')
  .filter(control => {
    const {width, height} = control.getBoundingClientRect();
    return width < 24 || height < 24;
  }).map(control => control.outerHTML.slice(0, 80))"""
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? []
  : [...document.querySelectorAll('body *')]
    .filter(element => element.getBoundingClientRect().right > innerWidth + 1)
    .filter(element => !element.parentElement.closest('.scroll'))
    .map(element => element.outerHTML.slice(0, 80))"""


def on_a_phone(page: Page) -> None:
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")


def assert_no_barrier(page: Page) -> None:
    on_a_phone(page)
    page.evaluate(AXE)
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(TOO_SMALL) == []
    assert page.evaluate(VIOLATIONS, EVERY_RULE) == []
    page.set_viewport_size(DESK)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(TOO_SMALL) == []
    assert page.evaluate(VIOLATIONS, COLOURS) == []
