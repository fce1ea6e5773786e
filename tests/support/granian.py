"""The service under another ASGI server."""

import sys

from support.process import ServerProcess


class GranianProcess(ServerProcess):
    """Granian with ``petstore.asgi:app``, with the options of ``petstore serve`` as variables."""

    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "granian", "--interface", "asgi", "--port", str(self.port)),
            *("--no-log", "--workers-kill-timeout", "5", "petstore.asgi:app"),
        ]

    def environment(self) -> dict[str, str]:
        options = {
            "--database": self.database,
            "--log-format": "json",
            **dict(zip(self.arguments[::2], self.arguments[1::2], strict=True)),
        }
        variables = {
            f"PETSTORE_{name.removeprefix('--').replace('-', '_').upper()}": value
            for name, value in options.items()
        }
        return {**super().environment(), **variables}
