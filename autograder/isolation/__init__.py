"""Shuts in and runs strangers' code: sandbox, fork server, pool of workers. Knows no notebook."""
