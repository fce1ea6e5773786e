"""Seeing what the service does: metrics for Prometheus, traces for OpenTelemetry."""
