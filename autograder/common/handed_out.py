"""What a hand-out keeps for `check`: a notebook's rules, and which cells are not a student's.

Both lie in a folder of the grader's own, so that a notebook may lie anywhere. Cells are kept as
digests of their texts. In a course's own folder there is nothing of it: there `check` looks at the
course.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from autograder.common.whole import require_file

WITHIN = "autograder/checking/released"  # from where the grader's package lies
RULES, TEXTS = ".toml", ".texts"
_HERE = Path(__file__).parents[2] / WITHIN


@dataclass(frozen=True)
class HandedOut:
    """What is known of a notebook that was handed out."""

    assignment: str
    name: str  # the notebook's, without .ipynb
    folder: Path = _HERE

    @property
    def rules(self) -> Path:
        """The rules of its questions."""
        return self.folder / self.assignment / f"{self.name}{RULES}"

    def texts(self) -> set[str]:
        """Digests of the texts of its cells; none where they cannot be read."""
        path = self.folder / self.assignment / f"{self.name}{TEXTS}"
        try:
            require_file(path)
            return set(path.read_text(encoding="utf-8").split())
        except (OSError, UnicodeDecodeError):
            return set()


def digest(text: str) -> str:
    """What a cell's text is known by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def find(notebook: Path, folder: Path = _HERE) -> HandedOut | None:
    """The notebook that a student's own was once, by its name; None if none or several could be.

    Browsers and editors add to a name: `week_3 (1).ipynb` is found, too.
    """
    known = [HandedOut(path.parent.name, path.stem, folder) for path in folder.glob(f"*/*{TEXTS}")]
    named = [one for one in known if notebook.stem.startswith(one.name)]
    longest = max((len(one.name) for one in named), default=0)
    named = [one for one in named if len(one.name) == longest]
    within = [one for one in named if one.assignment == notebook.resolve().parent.name]
    found = within or named
    return found[0] if len(found) == 1 else None
