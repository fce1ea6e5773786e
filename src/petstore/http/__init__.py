"""HTTP/1.1 over TCP: messages in, the application asked, messages out."""
