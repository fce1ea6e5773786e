"""The page of an invitation: a person sets a password with it, and is signed in."""

from contextlib import suppress

from petstore.console.failures import failure_of
from petstore.console.notices import Notice
from petstore.console.page import ConsolePage, PageRequest
from petstore.console.sign_in import browser_of, signed_in_person, told_to_nobody, wants_to_stay
from petstore.errors import InvalidBody, NotFound, PetstoreError, Unavailable
from petstore.http.messages import Response
from petstore.people.accounts import Account, accept_invitation, find_invitation
from petstore.people.passwords import MIN_LENGTH, check_password

_FROM_NOW_ON = "From now on you sign in with it and your login."
_PATH = "/invitation/{secret}"


async def _show(visit: PageRequest) -> Response:
    try:
        account = await _invited(visit)
    except Unavailable as error:
        return await _again(visit, error)
    return _page(visit, 200 if account else NotFound.status, account)


async def _accept(visit: PageRequest) -> Response:
    account = await _invited(visit)
    secret = None if account is None else await _session_of(visit, account)
    if account is None or secret is None:
        msg = "the invitation has ended"
        raise NotFound(msg)
    visit.signed_in = account.caller
    notice, stays = Notice(f"Your password is set. {_FROM_NOW_ON}"), wants_to_stay(visit)
    return await signed_in_person(visit, secret, account.login, notice, stays=stays)


async def _session_of(visit: PageRequest, account: Account) -> str | None:
    """Set the password, and return the secret of a session; ``None`` if somebody was faster."""
    services, password = visit.services, visit.form.raw("password")
    check_password(password, account.login)
    with await services.admission.passwords.take(visit.parameter):
        hashed = await visit.limits.passwords.hash(password)
    browser = browser_of(visit, stays=wants_to_stay(visit))
    return await services.store.write(
        accept_invitation(
            visit.parameter, hashed, services.keys.environment, services.clock(), browser, visit.id
        )
    )


async def _invited(visit: PageRequest) -> Account | None:
    services, secret = visit.services, visit.parameter
    environment, now = services.keys.environment, services.clock()
    return await find_invitation(services.store, secret, environment, now)


async def _again(visit: PageRequest, error: PetstoreError) -> Response:
    account = None
    with suppress(Unavailable):
        account = await _invited(visit)
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
        problem=problem,
        is_typed=is_typed,
        shortest=MIN_LENGTH,
    )
    return told_to_nobody(page)


PAGES = (
    ConsolePage("GET", _PATH, _show, public=True, ends_sessions=True),
    ConsolePage("POST", _PATH, _accept, refused=_again, public=True, signs_in=True),
)
