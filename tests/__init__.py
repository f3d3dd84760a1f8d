"""The project's tests; `make test` runs them all."""
