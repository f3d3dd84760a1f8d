"""A JupyterHub for the course: what an instructor copies, and its check; see book/running.md."""
