"""An HTTP/1.1 server (RFC 9110, RFC 9112) for an application that takes requests."""
