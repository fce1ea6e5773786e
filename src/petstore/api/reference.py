"""The reference page at ``/docs``: Swagger UI over the OpenAPI document, all from this machine."""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from petstore.http.messages import Request, Response

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Petstore reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/reference.js"></script>
</body>
</html>
"""

_SCRIPT = """SwaggerUIBundle({
  url: "/v1/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
"""

_POLICY = (
    b"content-security-policy: default-src 'none'; script-src 'self';"
    b" style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self';"
    b" frame-ancestors 'none'; base-uri 'none'"
)
_TYPES = {".css": b"text/css; charset=utf-8", ".js": b"text/javascript; charset=utf-8"}
_CACHED = b"cache-control: public, max-age=3600"


async def page(_: Request) -> Response:
    """Respond with the page itself."""
    return Response(200, _PAGE.encode(), [_type(b"text/html; charset=utf-8"), _POLICY])


async def script(_: Request) -> Response:
    """Respond with the script that starts Swagger UI."""
    return Response(200, _SCRIPT.encode(), [_type(_TYPES[".js"])])


async def asset(request: Request) -> Response:
    """Respond with a file of Swagger UI."""
    name = request.path.rpartition("/")[2]
    return Response(200, _asset(name), [_type(_TYPES[Path(name).suffix]), _CACHED])


async def home(_: Request) -> Response:
    """Redirect the bare address to the reference."""
    return Response(307, b"", [b"location: /docs"])


@lru_cache
def _asset(name: str) -> bytes:
    # Found without being imported: only the files of the package are wanted, none of its code.
    spec = find_spec("swagger_ui")
    (folder,) = spec.submodule_search_locations  # type: ignore[union-attr,misc] # a dependency
    return (Path(folder) / "static" / name).read_bytes()


def _type(value: bytes) -> bytes:
    return b"content-type: " + value
