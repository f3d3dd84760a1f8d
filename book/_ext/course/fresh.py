"""Keep a rebuilt book true to what it was built from.

Sphinx reads a page again when its text changes, and the execution cache knows a page by the text
of its cells alone. Both would keep old numbers after the library that the cells import changed.
So the library, the pinned packages and these extensions are part of the environment's version,
and the execution cache is dropped when the first two of them change.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

EXTENSIONS = Path(__file__).parents[1]
ROOT = Path(__file__).parents[3]


def execution_inputs(root: Path = ROOT) -> list[Path]:
    """Return the files that decide what a page's cells print, besides the page."""
    lab = root / "lab"
    measured = sorted((lab / "results").glob("*.jsonl"))
    return [*sorted(lab.rglob("*.py")), *measured, root / "requirements.txt"]


def extension_files() -> list[Path]:
    """Return the files that decide how pages are read and written."""
    folders = (EXTENSIONS, EXTENSIONS.parent / "_vendor")
    return [
        p
        for folder in folders
        for p in sorted(folder.rglob("*.*js")) + sorted(folder.rglob("*.py"))
    ]


def digest(paths: Iterable[Path]) -> str:
    """Return a fingerprint of the contents of the files that exist."""
    sha = hashlib.sha256()
    for path in paths:
        if path.is_file():
            sha.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return sha.hexdigest()


def version() -> int:
    """Return the version of the environment: when it changes, Sphinx reads every page again."""
    return int(digest([*execution_inputs(), *extension_files()])[:8], 16)


def forget_stale_outputs(app: Sphinx) -> None:
    """Drop the execution cache if it was filled with another library or other packages."""
    cache = Path(app.config.nb_execution_cache_path or Path(app.outdir).parent / ".jupyter_cache")
    stamp = Path(app.outdir).parent / "execution-inputs.sha256"
    now = digest(execution_inputs())
    if not stamp.is_file() or stamp.read_text(encoding="ascii") != now:
        shutil.rmtree(cache, ignore_errors=True)
    stamp.write_text(now, encoding="ascii")


def always_read_again(env: BuildEnvironment) -> None:
    """Mark the page being read as one that depends on more files than Sphinx can know."""
    env.metadata[env.docname]["course-always"] = "yes"


def pages_to_read_again(
    _app: Sphinx, env: BuildEnvironment, _added: set[str], _changed: set[str], removed: set[str]
) -> list[str]:
    """Return the marked pages. As one page is always new, changed static files get copied too."""
    return [
        page
        for page, metadata in env.metadata.items()
        if "course-always" in metadata and page not in removed
    ]
