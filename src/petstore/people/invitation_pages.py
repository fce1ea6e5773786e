"""The page of an invitation: a person sets a password with it, and is signed in."""

from contextlib import suppress

from petstore.console.browsers import is_phone
from petstore.console.page import ConsolePage, Notice, PageRequest, failure_of
from petstore.console.sign_in import browser_of, signed_in, told_to_nobody
from petstore.domain.decoding import convert
from petstore.errors import InvalidBody, NotFound, PetstoreError, Unavailable
from petstore.http.messages import Response
from petstore.people.model import FIRST, Account, PersonCreate
from petstore.people.passwords import MIN_LENGTH, check_password

_FROM_NOW_ON = "From now on you sign in with it and your login."
_PATH = "/invitation/{secret}"


async def _show(visit: PageRequest) -> Response:
    try:
        account = await visit.sessions.find_invited(visit.parameter)
    except Unavailable as error:
        return await _again(visit, error)
    return _page(visit, 200 if account else NotFound.status, account)


async def _accept(visit: PageRequest) -> Response:
    secret, password = visit.parameter, visit.form.raw("password")
    account = await visit.sessions.find_invited(secret)
    accepted = first = None
    if account is not None:
        login = account.login
        if account.caller.id == FIRST:
            login = visit.form.line("login")
            typed = {"name": visit.form.line("name"), "login": login, "role": "administrator"}
            first = convert(typed, PersonCreate, InvalidBody)
        check_password(password, login)
        browser = browser_of(visit)
        accepted = await visit.sessions.accept(secret, password, first, browser, visit.id)
    if accepted is None:
        msg = "the invitation has ended"
        raise NotFound(msg)
    return signed_in(visit, accepted, Notice(f"Your password is set. {_FROM_NOW_ON}"))


async def _again(visit: PageRequest, error: PetstoreError) -> Response:
    account = None
    with suppress(Unavailable):
        account = await visit.sessions.find_invited(visit.parameter)
    problem = "" if isinstance(error, NotFound) else failure_of(error, visit.id).message
    return _page(visit, error.status, account, problem, is_typed=isinstance(error, InvalidBody))


def _page(
    visit: PageRequest,
    status: int,
    account: Account | None,
    problem: str = "",
    *,
    is_typed: bool = False,
) -> Response:
    page = visit.page(
        "invitation.html",
        status,
        account=account,
        is_first=account is not None and account.caller.id == FIRST,
        problem=problem,
        is_typed=is_typed,
        stays=visit.form.text("stays") if problem else is_phone(visit.request),
        shortest=MIN_LENGTH,
    )
    return told_to_nobody(page)


PAGES = (
    ConsolePage("GET", _PATH, _show, public=True),
    ConsolePage("POST", _PATH, _accept, refused=_again, public=True, signs_in=True),
)
