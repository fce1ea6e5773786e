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


async def _show(request: PageRequest) -> Response:
    try:
        account = await request.sessions.find_invited(request.parameter)
    except Unavailable as error:
        return await _again(request, error)
    return _page(request, 200 if account else NotFound.status, account)


async def _accept(request: PageRequest) -> Response:
    secret, password = request.parameter, request.form.raw("password")
    account = await request.sessions.find_invited(secret)
    accepted = first = None
    if account is not None:
        login = account.login
        if account.caller.id == FIRST:
            login = request.form.line("login")
            typed = {"name": request.form.line("name"), "login": login, "role": "administrator"}
            first = convert(typed, PersonCreate, InvalidBody)
        check_password(password, login)
        browser = browser_of(request)
        accepted = await request.sessions.accept(secret, password, first, browser, request.id)
    if accepted is None:
        msg = "the invitation has ended"
        raise NotFound(msg)
    return signed_in(request, accepted, Notice(f"Your password is set. {_FROM_NOW_ON}"))


async def _again(request: PageRequest, error: PetstoreError) -> Response:
    account = None
    with suppress(Unavailable):
        account = await request.sessions.find_invited(request.parameter)
    problem = "" if isinstance(error, NotFound) else failure_of(error, request.id).message
    return _page(request, error.status, account, problem, is_typed=isinstance(error, InvalidBody))


def _page(
    request: PageRequest,
    status: int,
    account: Account | None,
    problem: str = "",
    *,
    is_typed: bool = False,
) -> Response:
    page = request.page(
        "invitation.html",
        status,
        account=account,
        is_first=account is not None and account.caller.id == FIRST,
        problem=problem,
        is_typed=is_typed,
        stays=request.form.text("stays") if problem else is_phone(request.head),
        shortest=MIN_LENGTH,
    )
    return told_to_nobody(page)


PAGES = (
    ConsolePage("GET", _PATH, _show, public=True),
    ConsolePage("POST", _PATH, _accept, refused=_again, public=True, signs_in=True),
)
