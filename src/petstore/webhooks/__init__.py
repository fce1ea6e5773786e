"""Deliveries of events to webhooks: what is sent, where it may go, and when."""
