"""Keep a rebuilt book true to what it was built from, and build no more again than that takes.

Sphinx reads a page again when its text changes, and the execution cache knows a page by the text
of its cells alone. Both would keep old numbers after a module that the cells import has changed. So
every page has a key, made of the files that decide what its cells print and of the pinned packages;
where that has changed, the page is read and its cells are executed again. What changes how all
pages are written, these extensions, is part of the environment's version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from docutils import nodes
from jupyter_cache import get_cache
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from .imported import code_cells, decisive_files

EXTENSIONS = Path(__file__).parents[1]
ROOT = Path(__file__).parents[3]
PINS = ("requirements/students.txt", "requirements/book.txt", "constraints.txt")
KEY = "course-key"  # of a page, in its metadata


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


def pins(root: Path) -> list[Path]:
    """Return the files that say which packages pages are made and executed with."""
    return [root / name for name in PINS]


def version() -> int:
    """Return the version of the environment: when it changes, Sphinx reads every page again."""
    return int(digest([*pins(ROOT), *extension_files()])[:8], 16)


def page_key(page: Path, root: Path = ROOT) -> str:
    """Return what changes when a page has to be executed again; "" if it has no cells."""
    if not code_cells(page.read_text(encoding="utf-8")):
        return ""
    return digest([*pins(root), *decisive_files(page, root)])


def forget_stale_outputs(app: Sphinx) -> None:
    """Drop from the execution cache the pages whose key is not that of the last build."""
    stamp = Path(app.outdir).parent / "execution-keys.json"
    before = json.loads(stamp.read_text(encoding="utf-8")) if stamp.is_file() else {}
    now = {page.name: page_key(page) for page in sorted(Path(app.srcdir).glob("*.md"))}
    folder = Path(app.config.nb_execution_cache_path or Path(app.outdir).parent / ".jupyter_cache")
    if folder.is_dir():
        cache = get_cache(folder)
        for record in cache.list_cache_records():
            page = Path(str(record.uri)).name
            if now.get(page) != before.get(page, ""):
                cache.remove_cache(cast(int, record.pk))
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(json.dumps(now, indent=1), encoding="utf-8")


def remember_key(app: Sphinx, _page: nodes.document) -> None:
    """Keep the key of the page that was read, to compare it in the next build."""
    env = app.env
    env.metadata[env.docname][KEY] = page_key(Path(env.doc2path(env.docname)))


def always_read_again(env: BuildEnvironment) -> None:
    """Mark the page being read as one that depends on more files than Sphinx can know."""
    env.metadata[env.docname]["course-always"] = "yes"


def pages_to_read_again(
    _app: Sphinx, env: BuildEnvironment, _added: set[str], _changed: set[str], removed: set[str]
) -> list[str]:
    """Return the marked pages, and those whose key has changed.

    As one page is always new, changed static files get copied too.
    """
    return [
        page
        for page, metadata in env.metadata.items()
        if page not in removed
        and ("course-always" in metadata or metadata.get(KEY) != page_key(Path(env.doc2path(page))))
    ]
