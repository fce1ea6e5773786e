"""HTTP: the table of operations, and the layers a request passes."""
