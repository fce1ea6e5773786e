"""The bearer token of a request (RFC 6750 section 2.1) and the key it stands for."""

from petstore.domain.networks import network_of
from petstore.errors import InvalidKey, MissingKey, MissingScope, NetworkNotAllowed, Unavailable
from petstore.http.messages import Request
from petstore.interface.messages import require_admitted
from petstore.keys.model import Caller, Scope
from petstore.keys.store import ApiKeyCache
from petstore.limits.memory import MinuteLimiter

_CHALLENGE = 'Bearer realm="petstore"'
_MISSING = {"WWW-Authenticate": _CHALLENGE}
_INVALID = {"WWW-Authenticate": f'{_CHALLENGE}, error="invalid_token"'}


async def authenticate(token: bytes, keys: ApiKeyCache) -> Caller:
    key = await keys.find(token)
    if key is None:
        raise invalid_key()
    return key


async def authenticate_again(token: bytes, keys: ApiKeyCache, address: str) -> Caller:
    """Return the caller as it is after a wait."""
    key = await authenticate(token, keys)
    require_network(key, address)
    return key


async def look_up(
    token: bytes, keys: ApiKeyCache, look_ups: MinuteLimiter[str], address: str
) -> Caller:
    """A new token is charged to the ``address``: a flood of invalid ones spares the database."""
    if not keys.is_new(token):
        return await authenticate(token, keys)
    network = network_of(address)
    require_admitted(look_ups.take(network), look_ups.budget)
    try:
        key = await authenticate(token, keys)
    except Unavailable:
        look_ups.give_back(network)
        raise
    look_ups.give_back(network)
    return key


def invalid_key() -> InvalidKey:
    msg = "Authorization: invalid API key"
    return InvalidKey(msg, _INVALID)


def bearer_token(request: Request) -> bytes:
    if b"authorization" in request.repeated:
        raise InvalidKey("Authorization: expected once, got it twice", _INVALID)
    scheme, _, token = request.fields.get(b"authorization", b"").partition(b" ")
    token = token.strip(b" ")
    if scheme.lower() != b"bearer" or not token:
        raise MissingKey("Authorization: expected Bearer and an API key", _MISSING)
    return token


def require_scope(key: Caller, scope: Scope | None, purpose: str = "") -> None:
    if scope is not None and scope not in key.scopes:
        who = "this key" if key.role is None else f"the role {key.role}"
        msg = f"{who} lacks the scope {scope}{purpose}"
        challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{scope}"'
        raise MissingScope(msg, {"WWW-Authenticate": challenge})


def require_network(key: Caller, address: str) -> None:
    if not key.works_from(address):
        msg = f"this key may not be used from {address}; the address is not in its networks"
        raise NetworkNotAllowed(msg)
