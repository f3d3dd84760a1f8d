"""A small course with an exchange, into which works are put as `nbgrader submit` puts them."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader.utils import notebook_hash

from autograder.common.course import Course
from autograder.judge.parcel import SECRET_FILE, STAMP
from tests.small_course import NAME, PAGE, hand_in, make_course, release

FIRST = datetime(2026, 2, 1, 12, tzinfo=UTC)
RELEASE = 'c.ExchangeFactory.release_feedback = "autograder.classroom.outbound.SafeRelease"\n'


class Exchange:
    """A course that has released its assignment, and what students do with it."""

    def __init__(self, folder: Path) -> None:
        """Make both below a folder."""
        self.root, self.shared = folder / "course", folder / "exchange"
        self.root.mkdir()
        make_course(self.root, hooks=True)
        release(self.root)
        for name in ("inbound", "outbound", "feedback"):
            (self.shared / "small" / name).mkdir(parents=True)
        with (self.root / "nbgrader_config.py").open("a") as file:
            file.write(f'{PAGE}{RELEASE}c.Exchange.root = "{self.shared}"\n')
            file.write("c.ExchangeCollect.check_owner = False\n")
        self.course = Course(self.root)
        self._submitted = 0

    @property
    def inbound(self) -> Path:
        """Where works arrive."""
        return self.shared / "small" / "inbound"

    def submit(self, student: str, answers: dict[str, str], *, whole: bool = True) -> Path:
        """Hand in; without `whole`, what is written last is missing still."""
        self._submitted += 1
        when = FIRST + timedelta(seconds=self._submitted)
        stamp = when.strftime("%Y-%m-%d %H:%M:%S.%f %Z")
        folder = self.inbound / f"{student}+{NAME}+{stamp}"
        folder.mkdir()
        written = hand_in(self.root, f"made-{self._submitted}", answers)
        shutil.move(written, folder / written.name)
        shutil.rmtree(written.parents[1])
        if whole:
            self.finish(folder, student, stamp)
        return folder

    def finish(self, folder: Path, student: str, stamp: str = "") -> None:
        """Write what is written last."""
        (folder / STAMP).write_text(stamp or folder.name.rpartition("+")[2])
        (folder / SECRET_FILE).write_text(secret_of(student))

    def page(self, student: str) -> str:
        """What a student's fetched feedback says; empty if none was released."""
        name = notebook_hash(secret=secret_of(student), notebook_id="numbers")
        path = self.shared / "small" / "feedback" / f"{name}.html"
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def rules(self, text: str) -> None:
        """Write rules.toml."""
        (self.root / "source" / NAME / "rules.toml").write_text(text, encoding="utf-8")

    def news(self) -> dict:
        """What the watcher last said of itself."""
        return json.loads((self.root / "watch.json").read_text(encoding="utf-8"))


def secret_of(student: str) -> str:
    """By which a student's feedback is found."""
    return student.encode().hex().ljust(128, "0")[:128]
