"""The OpenAPI 3.1 document, built from the table of operations, and the page that serves it."""
