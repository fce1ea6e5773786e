"""An MCP server for AI agents, which asks a running service with the key of its caller."""
