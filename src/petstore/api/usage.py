"""The operation that tells a caller what it has used."""

from petstore.api.messages import json_response
from petstore.api.operation import Call
from petstore.http.messages import Response
from petstore.store.usage import get_usage


async def answer_get_usage(call: Call) -> Response:
    """Respond with plan, windows, ban and the requests of the last 30 days."""
    services = call.services
    return json_response(200, await get_usage(services.store, services.limiter, call.key))
