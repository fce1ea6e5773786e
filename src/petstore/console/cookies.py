"""The cookie of a session (RFC 6265bis)."""

from petstore.http.messages import Request

_NAME = "petstore_console"
_SECURE_NAME = f"__Host-{_NAME}"
# An attacker must not let us look at thousands: the name may be anywhere, also in other values.
_MAX_MENTIONS = 8
_SPACE = " \t"


def session_secret(request: Request, root: str) -> str:
    """Return the secret in the cookie of a request, empty if there is none.

    Two cookies of the name count as none. Another site below the same domain can set the second
    one, which would sign the person in as somebody else.
    """
    cookies = request.fields.get(b"cookie", b"").decode("latin-1")
    before, *mentions = cookies.split(f"{_name(root)}=", _MAX_MENTIONS)
    values = []
    for mention in mentions:
        if before.rstrip(_SPACE)[-1:] in ("", ";"):
            values.append(mention.partition(";")[0].strip(_SPACE))
        before = mention
    return values[0] if len(values) == 1 else ""


def session_cookie(secret: str, root: str) -> bytes:
    """Return the header that sets the cookie, until the browser closes."""
    return _set_cookie(secret, root)


def no_cookie(root: str) -> bytes:
    """Return the header that deletes the cookie."""
    return _set_cookie("", root) + b"; Max-Age=0"


def _set_cookie(value: str, root: str) -> bytes:
    secure = "; Secure" if _is_https(root) else ""
    text = f"set-cookie: {_name(root)}={value}; Path=/; HttpOnly; SameSite=Strict{secure}"
    return text.encode("ascii")


def _name(root: str) -> str:
    # A browser takes the prefix only together with Secure, which needs https.
    return _SECURE_NAME if _is_https(root) else _NAME


def _is_https(root: str) -> bool:
    return root.startswith("https://")
