"""What makes commands start sooner than plain imports would, and why each of it is worth it.

By how much is not said: no command of the project measures one of them alone. Here:

- `import_quickly` leaves out a grammar, for which a command that imports what grades and what
  writes grades would wait longest, and lets the garbage collector look less often;
- `without_extensions` leaves out extensions of what nbgrader imports that nothing here uses;
- `use_own_tools` saves nothing: with it nbgrader finds its tools at all.

Where they act, because they belong to a fork or to an end:

- `autograder.__main__` freezes what was imported before it ends;
- `isolation.worker_server` and `isolation.student_server` import with the collector off, freeze
  before they fork, let the collector look rarely in forks (`isolation.processes.RARELY`), and
  where many are to be forked gather their memory in large pages
  (`isolation.processes.use_large_pages`);
- `judge.preload` says which libraries the two fork servers can import once, for both;
- `classroom.gradebook` reads in alembic's files which version nbgrader's tables have, where
  nbgrader starts alembic to ask it.
"""

import gc
import importlib.util
import os
import sys
import types
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def use_own_tools() -> None:
    """Put this Python's scripts first on PATH: nbgrader calls `alembic` by name."""
    scripts = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", "").split(os.pathsep)
    if paths[0] != scripts:
        os.environ["PATH"] = os.pathsep.join([scripts, *paths])


def import_quickly() -> None:
    """Have this process import less, and with less work for the garbage collector.

    What checks notebooks reads a grammar of web addresses; no notebook's format needs it, and what
    reads it does without where it is not installed.
    """
    gc.set_threshold(50_000, 20, 100)  # imports make no garbage, only work for its collector
    if "jsonschema" not in sys.modules:
        sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]


@contextmanager
def without_extensions() -> Generator[None]:
    """Inside, parts of nbgrader are imported without its package's own file.

    That imports its extensions of Jupyter's server, and with them the server.
    """
    spec = importlib.util.find_spec("nbgrader") if "nbgrader" not in sys.modules else None
    if spec is None or spec.submodule_search_locations is None:
        yield
        return
    bare = sys.modules["nbgrader"] = types.ModuleType("nbgrader")
    bare.__path__ = spec.submodule_search_locations
    try:
        yield
    finally:
        del sys.modules["nbgrader"]
