"""The processes of the service: the supervisor and the workers that it starts."""
