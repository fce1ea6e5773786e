"""Carries out the requests of a client in this process, on the database itself, as the operator."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import httpx2

from petstore.backends import COMMAND_TIMEOUT, create_limiter, create_services, migrate, store_at
from petstore.clock import system_clock
from petstore.databases.private_files import SecretFile
from petstore.domain.decoding import decode_json
from petstore.domain.plans import UNLIMITED
from petstore.errors import PetstoreError
from petstore.http.messages import Response
from petstore.interface.messages import error_response
from petstore.interface.operation import BASE, Call, Context, Target, encode_result, execute
from petstore.interface.operations import OPERATIONS
from petstore.interface.pages import Query, decode_query
from petstore.interface.routes import Routes, decode_path_id
from petstore.keys.model import operator
from petstore.settings import Settings

_ROUTES = Routes(BASE, OPERATIONS)
_WITHOUT_LIMITS = ("X-RateLimit-Limit", str(UNLIMITED))


class OperatorTransport(httpx2.BaseTransport):
    """It checks no key: whoever can open the database can do everything in it."""

    def __init__(self, settings: Settings, root: str) -> None:
        migrate(settings.database)
        self._root = root
        self._store = store = store_at(settings.database, COMMAND_TIMEOUT)
        limiter = create_limiter(settings, store, system_clock)
        secret = SecretFile(settings.secret_path, may_create=False)
        self._services = create_services(settings, store, limiter, system_clock, secret)
        self._caller = operator(settings.environment)
        self._runner = asyncio.Runner()
        self._runner.run(store.open())

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = self._runner.run(self._respond(request))
        except PetstoreError as error:
            error.message = str(error)  # details of the database are for the operator
            response = error_response(error, self._root)
        lines = [line.decode("latin-1").partition(": ") for line in response.headers]
        headers = [*((name, value) for name, _, value in lines), _WITHOUT_LIMITS]
        return httpx2.Response(response.status, headers=headers, content=response.body)

    async def _respond(self, request: httpx2.Request) -> Response:
        url, query, body = request.url, Query[Any](None), None
        path = url.path.removeprefix(urlsplit(self._root).path)
        route, ids = _ROUTES.find(path)
        operation = route.operations[request.method]
        if operation.query is not None:
            query = decode_query(url.query, operation.query)
        if operation.body is not None:
            body = decode_json(request.content or b"{}", operation.body)
        call = Call(query.values, body, *map(decode_path_id, ids))
        context = Context(self._services, self._caller, "", self._root)
        result = await execute(operation, context, call)
        return encode_result(operation, Target(self._root, path, query.filters), result)

    def close(self) -> None:
        self._runner.run(self._store.close())
        self._runner.close()
