"""Which notebooks a student has begun: those in which an answer is not as it was handed out."""

from pathlib import Path

from autograder.checking.allowed import released_texts
from autograder.checking.check import read
from autograder.common.course import CourseError
from autograder.common.handed_out import digest


def begun(folder: Path) -> list[Path]:
    """The notebooks in a folder and those below it that hold an answer, or are broken."""
    found = [path for pattern in ("*.ipynb", "*/*.ipynb") for path in folder.glob(pattern)]
    shown = sorted(one for one in found if not any(part.startswith(".") for part in one.parts))
    if not shown:
        raise CourseError(
            f"There are no notebooks in {folder}/ here; go to the folder that holds it, or name "
            "one: python -m autograder check NOTEBOOK"
        )
    return [path for path in shown if _is_begun(path)]


def _is_begun(path: Path) -> bool:
    try:
        questions, _ = read(path)
    except CourseError:
        return True
    answers = [cell for question in questions for cell in question.of_kind("solution", "manual")]
    texts = released_texts(path)
    return any(digest(cell.source) not in texts for cell in answers)
