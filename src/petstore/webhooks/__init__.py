"""Webhooks: events sent to a URL, signed."""
