"""Rotating a key: its new token is shown once."""

from petstore.console.forms import number_or_text
from petstore.console.page import PageRequest
from petstore.http.messages import Response

GRACES = (("86400", "in 1 day"), ("604800", "in 7 days"), ("3600", "in 1 hour"), ("0", "at once"))
"""When the old token ends: what the field ``graceSeconds`` of the form has, and words for it."""


async def rotate(visit: PageRequest, operation_id: str, back: str) -> Response:
    """Rotate a key as the form wants it, and return the page that shows its new token.

    ``back`` is the page to go on with. The response is the only place that has the token, so it is
    no redirect; a form that is sent twice rotates twice, and the last page has the token that
    counts. Whoever rotates their own key signs in again with the new token.
    """
    grace = visit.form.text("graceSeconds")
    rotated = await visit.execute(operation_id, {"graceSeconds": number_or_text(grace)})
    return visit.page(
        "rotated.html",
        key=rotated.value,
        ends=dict(GRACES).get(grace, f"in {grace} seconds"),
        back=back,
    )
