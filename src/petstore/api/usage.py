"""The operation that tells a caller what it has used."""

from petstore.api.messages import Answer, json_answer
from petstore.api.operation import Call
from petstore.operations.usage import get_usage


async def answer_get_usage(call: Call) -> Answer:
    """Answer with plan, windows, ban and the requests of the last 30 days."""
    services = call.services
    return json_answer(200, await get_usage(services.store, services.limiter, call.key))
