"""Browsers that know a password: what their cookie says, and who can make one."""

import pytest

from petstore.console.session_limits import MAX_MARKS, KnownBrowser, known_browser

SEAL, OTHER_SEAL = b"a" * 32, b"b" * 32
LOGIN = "grace@shop.example"
ID, MARK = "A" * 22, "0" * 24


@pytest.mark.parametrize(
    "cookie",
    [
        *("", "x", ID[:-1], f"{ID}A", f"{ID}.", f"{ID}.0", f"{ID}.{'g' * 24}"),
        *(f"{ID}.{MARK}\n", ID + f".{MARK}" * (MAX_MARKS + 1)),
    ],
)
def test_what_is_no_such_cookie_says_nothing(cookie: str) -> None:
    assert known_browser(cookie) == KnownBrowser()


def test_a_browser_knows_the_logins_that_have_signed_in_there() -> None:
    browser = KnownBrowser().with_login(LOGIN, SEAL).with_login("ada", SEAL)
    read = known_browser(browser.value)
    assert read == browser
    for login, knows in ((LOGIN, True), (LOGIN.upper(), True), ("ada", True), ("eve", False)):
        assert read.knows(login, SEAL) is knows
    assert not read.knows(LOGIN, OTHER_SEAL)


def test_a_mark_is_worth_nothing_in_another_browser() -> None:
    mine, other = (KnownBrowser().with_login(LOGIN, SEAL) for _ in range(2))
    assert mine.id != other.id
    assert not KnownBrowser(other.id, mine.marks).knows(LOGIN, SEAL)
    assert not KnownBrowser(mine.id).knows(LOGIN, SEAL)


def test_a_browser_remembers_the_last_few_logins() -> None:
    browser = KnownBrowser()
    for n in range(MAX_MARKS + 1):
        browser = browser.with_login(f"{n}", SEAL)
    assert len(browser.marks) == MAX_MARKS
    assert [browser.knows(f"{n}", SEAL) for n in range(MAX_MARKS + 1)] == [False] + [
        True
    ] * MAX_MARKS
    again = browser.with_login("1", SEAL).with_login("new", SEAL)
    assert again.knows("1", SEAL)
    assert not again.knows("2", SEAL)
    assert known_browser(again.value) == again
