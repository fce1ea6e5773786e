"""Programs that some tests need and not every machine has."""

_COMMANDS = {
    "a browser": "make browser",
    "tools that run on Node.js": "make node",
    "dlt and Singer": "make pipelines",
    "promtool": "apt-get install prometheus",
    "systemd-analyze": "apt-get install systemd",
    "HAProxy 3.2.4": "HAPROXY=/path/to/haproxy make test",
    "root": "sudo make test",
}


def needs(program: str) -> str:
    """Return why a test is skipped where ``program`` is missing, and what brings it."""
    return f"needs {program}: {_COMMANDS.get(program, f'apt-get install {program}')}"
