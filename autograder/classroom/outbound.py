"""`nbgrader release_feedback`, by which every page is published, whatever its student is called.

nbgrader_config.py names the class:

    c.ExchangeFactory.release_feedback = "autograder.classroom.outbound.SafeRelease"

A student's name may hold what a terminal takes for a command, or a line end, at which nbgrader
reads no further. A page that cannot be published is named, and the others are.
"""

import glob
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.utils import notebook_hash

from autograder.common.failures import sentence_of
from autograder.common.names import clean_log, composed, shown
from autograder.judge.parcel import SECRET_FILE


class SafeRelease(ExchangeReleaseFeedback):
    """Publishes students' pages, each under a name that its student alone knows."""

    def init_dest(self) -> None:
        """Find the exchange's folder; what is in its way is a sentence."""
        try:
            super().init_dest()
        except OSError as error:
            self.fail(sentence_of(error, str(error.filename)) or str(error))

    def copy_files(self) -> None:
        """Publish each page for itself."""
        clean_log(self.log)
        here: Any = self.coursedir
        left_out = {composed(name.strip()) for name in here.student_id_exclude.split(",")}
        for page in self._pages():
            student = page.parents[1].name
            if composed(student) not in left_out:
                self._publish(page, student)

    def _pages(self) -> Iterable[Path]:
        """The pages that grading wrote."""
        return map(Path, sorted(glob.glob(f"{self.src_path}/*.html")))  # noqa: PTH207 - a pattern

    def _is_out(self, page: Path, copy: Path) -> bool:
        """Whether a page need not be published again."""
        return False

    def _publish(self, page: Path, student: str) -> None:
        what = shown(f"{student}/{page.name}")
        try:
            secret = page.with_name(SECRET_FILE).read_text(encoding="utf-8")
            if not secret:
                raise ValueError(f"{SECRET_FILE} beside it is empty")
            name = notebook_hash(secret=secret, notebook_id=page.stem)
            if self._is_out(page, Path(self.dest_path, f"{name}.html")):
                return
            if page.is_symlink():  # what it leads to would be published
                raise ValueError("it is a link; make the page again")
            begun = Path(self.dest_path, f"{name}-tmp.html")
            shutil.copy(page, begun)  # its permissions too, as nbgrader was told them
            begun.replace(begun.with_name(f"{name}.html"))
        except (OSError, ValueError) as error:
            self.log.error("%s was not released: %s", what, sentence_of(error, what) or error)
        else:
            self.log.info("Released: %s", what)
