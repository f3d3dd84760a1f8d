"""Journal and gradebook together: what one lost the other has, and what changes is written down.

The gradebook may be deleted, put back from an older copy or moved to another server. It is known
again by a sign that the last run left in it, in a table of its own that nbgrader does not look at.
Without the sign it is filled again from the journal, with what people had entered; where it says
something itself, that stays.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from autograder.classroom import changes
from autograder.classroom.changes import Change
from autograder.classroom.classes import read_those_there
from autograder.classroom.counted import Marks
from autograder.classroom.journal import Journal, results
from autograder.classroom.journal_lines import Graded
from autograder.classroom.journal_lock import Busy
from autograder.classroom.whose import Owner, refusal, taken_over
from autograder.common.course import CourseError
from autograder.common.names import say

if TYPE_CHECKING:
    from autograder.classroom.classes import Class
    from autograder.classroom.store import Store
    from autograder.judge.assignment import Assignment


MOST_NAMED = 20  # things of one kind on the terminal


class Keeper:
    """Writes results into a class's gradebook, and into its journal how grades changed."""

    def __init__(
        self,
        taught: "Class",
        journal: Journal,
        store: "Store",
        assignments: "Mapping[str, Assignment]",
    ) -> None:
        self._taught = taught
        self._journal = journal
        self._store = store
        self._assignments = assignments
        self._changed: set[str] = set()  # assignments
        self._taken: dict[str, Owner] = {}  # those that were another folder's, and whose
        self.restored = 0  # results that the gradebook did not hold, stored again
        self.given_back = 0  # submissions with grades, comments or time by people, entered again

    def enter(self, names: Iterable[str]) -> None:
        """Make the gradebook know these assignments; CourseError if it has another course's."""
        from autograder.classroom.gradebook import shown_database

        is_own = self._taught.has_own_gradebook
        for name in names:
            mine, other = self._owner(), self._store.owner(name)
            if not is_own and other is not None and not mine.is_known(other):
                if not mine.may_follow(other):
                    raise CourseError(refusal(name, shown_database(self._taught), mine, other))
                self._taken[name] = other
            self._store.enter(self._assignments[name])

    def put_back(self) -> None:
        """Fill the gradebook again, if it is another one than the last run has left."""
        missing = {name for name in self._assignments if self._is_another(name)}
        if not missing:
            return
        self.enter(missing)
        held = {name: self._store.held(name) for name in missing}
        for graded in self._journal.results():
            name = graded.result.assignment
            if name in missing:
                self._put_back(graded, held[name])
        self.refresh(one for one in self._journal.results() if one.result.assignment in missing)
        self._changed |= missing

    def save(self, graded: Graded, before: Graded | None = None, *, fresh: bool = False) -> None:
        """Put a result into the gradebook; `fresh` says that it was graded just now.

        Other arguments as for `Store.save`.
        """
        marks = self._store.save(graded, self._assignments[graded.result.assignment], before)
        if marks:
            self.note(graded, marks, fresh=fresh)

    def restore(self, kept: Iterable[tuple[str, str]]) -> None:
        """Store again what of these the gradebook does not hold, and bring the others up to date.

        Args:
            kept: student and assignment of what is graded already.
        """
        kept = list(kept)
        held = {name: self._store.held(name) for name in {name for _, name in kept}}
        for graded in (self._journal.last(*who) for who in kept):
            if not self._holds(held[graded.result.assignment], graded):
                self.save(graded, graded)
                self.restored += 1
        self.refresh(self._journal.last(*who) for who in kept)

    def refresh(self, graded: Iterable[Graded]) -> None:
        """See that lateness and pages are those of today, and note what people have entered."""
        for one, marks in self._store.refresh(self._assignments, graded):
            self.note(one, marks)

    def note(self, graded: Graded, marks: Mapping[str, Marks], *, fresh: bool = False) -> None:
        """Write down how somebody's grade has changed, if it has."""
        now = changes.change(graded, marks, self._before(graded), fresh=fresh)
        if now is not None:
            self._journal.changed(changes.written(now))
            self._changed.add(now.assignment)

    def sign(self) -> None:
        """Leave a new sign in the gradebook, if it says something else than before."""
        name = self._journal.name or secrets.token_hex(8)
        graded = self._journal.assignments() & self._assignments.keys()
        for assignment in self._changed | {one for one in graded if not self._journal.sign(one)}:
            sign = secrets.token_hex(8)
            self._store.leave_sign(name, assignment, sign)
            self._journal.signed(name, assignment, sign)
        for assignment in graded:
            if self._store.owner(assignment) != self._owner():
                self._store.own(assignment, self._owner())
        self._changed.clear()

    def words(self) -> list[str]:
        """What was put back, in sentences."""
        said = []
        if self.restored:
            said.append(
                f"{self.restored} of the results were not in the gradebook (was an older one put "
                "back?); they were stored there again from the journal."
            )
        if self.given_back:
            said.append(
                f"Grades, comments or extensions by hand of {self.given_back} submissions were not "
                "in it either; they were entered there again as the last run saw them."
            )
        said += [taken_over(name, other) for name, other in sorted(self._taken.items())]
        return said

    def _owner(self) -> Owner:
        return Owner.of(self._journal.name, self._taught.course_id, self._taught.course.root)

    def _is_another(self, assignment: str) -> bool:
        sign = self._journal.sign(assignment)
        return bool(sign) and self._store.sign(self._journal.name, assignment) != sign

    def _put_back(self, graded: Graded, held: "Mapping") -> None:
        before = self._before(graded)
        if not self._holds(held, graded):
            self._store.save(graded, self._assignments[graded.result.assignment], graded)
            self.restored += 1
        if before is not None and before.is_by_hand():
            self.given_back += self._store.give_back(before)

    def _before(self, graded: Graded) -> Change | None:
        result = graded.result
        return changes.read(self._journal.last_change(result.student, result.assignment))

    def _holds(self, held: "Mapping", graded: Graded) -> bool:
        from autograder.classroom.store import holds

        return holds(held, graded, self._assignments[graded.result.assignment])


def refresh(
    taught: "Class", assignments: "Mapping[str, Assignment]", student: str = ""
) -> list[str]:
    """See that gradebook and pages say what they should today.

    Returns what was put back, and what could not be written, in sentences. While a grader is
    at work it is the one who looks for what is missing.

    Args:
        taught: the class.
        assignments: those to look at.
        student: look at this one's alone.
    """
    from autograder.classroom.store import Store

    if not taught.journal.is_file():
        return []
    try:
        with Journal(taught) as journal, Store(taught, history=journal.changes) as store:
            keeper = Keeper(taught, journal, store, assignments)
            keeper.put_back()
            mine = (one for one in journal.results() if student in ("", one.result.student))
            keeper.refresh(mine)
            keeper.sign()
            return [*keeper.words(), *not_written(store.troubles)]
    except Busy:
        with Store(taught) as store:
            for _ in store.refresh(assignments, results(taught)):
                pass
            return not_written(store.troubles)


def refreshed(
    taught: "Class",
    names: Sequence[str],
    tell: Callable[[str], None] = say,
    student: str = "",
) -> "tuple[dict[str, Assignment], dict[str, str]]":
    """The same of the assignments with these names; gives them as `read_those_there` does.

    Args:
        taught: the class.
        names: of assignments that were graded once.
        tell: is told each sentence.
        student: as above.
    """
    there, gone = read_those_there(taught, names)
    for sentence in refresh(taught, there, student):
        tell(sentence)
    return there, gone


def not_written(troubles: Sequence[str]) -> list[str]:
    """What could not be written, as lines for the terminal."""
    return few("not written", troubles)


def few(what: str, sentences: Sequence[str]) -> list[str]:
    """The first of these sentences, a line each, and how many there are more."""
    more = len(sentences) - MOST_NAMED
    lines = [f"{what}: {sentence}" for sentence in sentences[:MOST_NAMED]]
    return [*lines, f"{what}: {more} more"] if more > 0 else lines
