"""Grade works as they arrive: collected, graded, and their feedback released, seconds later.

    python -m autograder watch

The exchange is looked at every second or so, also while works are graded; processes stay warm in
between. Nothing is remembered that the disk does not say: a watcher that was killed looks through
everything when it begins again, grades what is new or changed, and releases what is not out. While
works are graded this process has the journal's lock, as any grader has; in between others may have
it. Modules that notebooks import are read once: who changes one starts the watcher again.
"""

import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from autograder.authoring.building import build_changed
from autograder.authoring.release import require_fresh
from autograder.classroom import shown as showing
from autograder.classroom.arrival_times import FILE, Times
from autograder.classroom.arrivals import Arrived, Inbound, publish
from autograder.classroom.classes import Class, assignments
from autograder.classroom.grade import Grader
from autograder.classroom.journal_lock import Lock
from autograder.classroom.keeper import refresh
from autograder.classroom.warm import Task, Warm
from autograder.classroom.watch_board import LOCK, Board
from autograder.common.course import Course, CourseError, config_files
from autograder.common.failures import sentence_of
from autograder.common.names import say
from autograder.common.results import Result
from autograder.judge.parcel import collect

if TYPE_CHECKING:
    from autograder.judge.assignment import Assignment

EVERY = 1.0  # seconds between two looks at the exchange
LONGEST_PAUSE = 60.0  # seconds, while something is wrong
DIGITS = 32  # of a work's digest
Place = tuple[str, str]  # student, assignment


class Stopped(KeyboardInterrupt):
    """The system asks this process to end."""


@dataclass
class _Queue:
    """What waits to be graded; who was graded least often of late comes first."""

    waiting: dict[Place, float] = field(default_factory=dict)  # since when
    under_way: dict[Place, float] = field(default_factory=dict)
    turns: Counter[str] = field(default_factory=Counter)  # of each student's, since all was done
    owners: dict[str, int] = field(default_factory=dict)  # accounts, by the names they hand in for
    owners_turns: Counter[int | str] = field(default_factory=Counter)

    def add(self, place: Place) -> None:
        """Have a work graded, if it does not wait already."""
        self.waiting.setdefault(place, time.monotonic())

    def take(self) -> Place | None:
        """The next one; None if none waits that is not being graded in an older state."""
        free = [place for place in self.waiting if place not in self.under_way]
        if not free:
            return None
        place = min(free, key=self._turn)
        self.under_way[place] = self.waiting.pop(place)
        self.turns[place[0]] += 1
        self.owners_turns[self._owner(place)] += 1
        return place

    def _turn(self, place: Place) -> tuple[int, int, float]:
        """An account's turns come first: it may hand in under any number of names."""
        owned = self.owners_turns[self._owner(place)]
        return owned, self.turns[place[0]], self.waiting[place]

    def _owner(self, place: Place) -> int | str:
        return self.owners.get(place[0], place[0])

    def done(self, place: Place) -> float:
        """A work was graded or found unchanged; how many seconds after it came."""
        return time.monotonic() - self.under_way.pop(place, time.monotonic())

    def give_up(self) -> None:
        """What was under way waits again."""
        for place, since in self.under_way.items():
            self.waiting.setdefault(place, since)
        self.under_way.clear()


class Watcher:
    """Watches a course's exchange; use as a context manager."""

    def __init__(
        self, course: Course, names: Sequence[str], jobs: int = 0, every: float = EVERY
    ) -> None:
        """Take the watchers' lock.

        Args:
            course: the course.
            names: of assignments to watch; by default all.
            jobs: works side by side; by default as many as there are cores.
            every: seconds between two looks.
        """
        self._course, self._names, self._jobs, self._every = course, list(names), jobs, every
        assignments(course, names)  # a wrong name is told at once; what goes later may come back
        self._taught = Class(course, course.root)
        self._taught.require_usable()
        self._taught.share()
        with ExitStack() as opened:
            lock = Lock(course.root / LOCK, course.root)
            opened.callback(lock.release)
            self._times = Times(course.root / FILE)
            self._open = opened.pop_all()
        self._board = Board(self._taught)
        self._queue = _Queue()
        self._warm: Warm | None = None
        self._assignments: dict[str, Assignment] = {}
        self._inbound: Inbound | None = None
        self._stamp: tuple = ()  # of the course's files
        self._unreleased: set[Place] = set()
        self._turning: datetime | None = None  # when students may read more, without any work
        self._looked = 0.0

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_warm()
        self._board.write(state="stopped")
        self._open.close()

    def run(self) -> None:
        """Watch until a signal comes."""
        pause = self._every
        with _ending_on_request():
            while True:
                pause = self._every if self.look() else min(LONGEST_PAUSE, 2 * pause)
                time.sleep(pause)

    def look(self) -> bool:
        """Look once, and grade and release what there is; whether nothing stood in the way."""
        try:
            self._read_course()
            self._take_arrivals()
            self._grade()
            self._turn()
            self._release()
        except (CourseError, OSError) as error:
            self._stop_warm()
            self._stamp = ()  # all is looked through again
            self._queue.give_up()
            self._board.trouble(_words(error))
            return False
        self._board.write(state="waiting for works")
        return True

    def _read_course(self) -> None:
        """Read the course, if it was changed; everything is looked at then."""
        stamp = self._seen()
        if stamp == self._stamp:
            return
        self._stop_warm()
        names = assignments(self._course, self._names)
        self._taught = Class(self._course, self._course.root)
        self._taught.require_usable()
        found: dict[str, Assignment] = {}
        for name in names:
            try:
                build_changed(self._course, [name])
                if self._course.chapters():
                    require_fresh(self._course, name)
                found[name] = self._taught.read(name)
            except CourseError as error:  # the others are graded all the same
                self._board.trouble(f"{name} is not graded: {error}")
        if not found:
            raise CourseError("None of the assignments can be graded as they lie there.")
        self._assignments = found
        self._inbound = Inbound(self._course, list(found), self._board.trouble)
        self._take_arrivals()
        for place in self._all_places():
            self._queue.add(place)
            self._unreleased.add(place)
        self._turning = self._next_turn()
        self._stamp = self._seen()

    def _seen(self) -> tuple:
        """Changes when somebody changes the course, or adds an assignment."""
        names = assignments(self._course, self._names)
        paths = [*config_files(self._course.root)]
        for name in names:
            source = self._course.instructor(name).parent
            paths += [*sorted(source.glob("*.ipynb")), source / "rules.toml"]
            paths += [self._course.source(name), self._course.source(name).with_name("rules.toml")]
        return tuple(
            (str(path), status.st_mtime_ns, status.st_size)
            for path in paths
            if path.is_file()
            for status in [path.stat()]
        )

    def _all_places(self) -> Iterator[Place]:
        if not self._taught.submitted.is_dir():
            return
        everybody = self._taught.students()
        left_out = set(self._taught.excluded(everybody))
        for student in everybody:
            for name in self._assignments:
                if student not in left_out and self._taught.place(student, name) is not None:
                    yield student, name

    def _take_arrivals(self) -> None:
        """Collect what has arrived."""
        self._looked = time.monotonic()
        arrived = list(self._inbound.take()) if self._inbound is not None else []
        if not arrived:
            return
        self._taught = Class(self._course, self._course.root)  # it remembers who was there
        left_out = set(self._taught.excluded([one.student for one in arrived]))
        wanted = [one for one in arrived if one.student not in left_out]
        self._note_times(wanted)
        for one in wanted:
            self._queue.owners[one.student] = one.owner
            if one.is_new:
                self._queue.add((one.student, one.assignment))
                self._board.arrived()

    def _note_times(self, arrived: Sequence[Arrived]) -> None:
        """Write down when they arrived; whoever is late by that list is late from now on."""
        for name in self._times.note([replace(one, work=self._work(one)) for one in arrived]):
            listed = self._assignments[name].rules.late.listed if self._assignments else None
            if listed is not None and listed.resolve() == self._times.path.resolve():
                self._assignments[name] = self._taught.read(name)

    def _work(self, one: Arrived) -> str:
        """A digest of what lies here of it: what a student puts in its place is another work."""
        place, assignment = self._taught.place(one.student, one.assignment), one.assignment
        if place is None or assignment not in self._assignments:
            return ""
        parcel = collect(place, self._assignments[assignment])
        return "" if parcel.reason else f"sha256:{parcel.key(ascii(one.folder))[:DIGITS]}"

    def _is_time(self) -> bool:
        return time.monotonic() >= self._looked + self._every

    def _grade(self) -> None:
        """Grade what waits, and what arrives meanwhile."""
        if not self._queue.waiting:
            return
        if self._warm is None:
            self._warm = Warm(self._course, self._assignments, self._jobs, look_every=self._every)
        with Grader(self._taught, self._assignments, self._warm) as grader:
            for result in grader.grade(_Tasks(self, grader)):
                self._graded(result)
            for words in (*grader.put_back, *grader.troubles, *grader.gone):
                self._board.trouble(words)
        self._queue.give_up()
        self._queue.turns.clear()
        self._queue.owners_turns.clear()

    def next_task(self, grader: Grader) -> Task | None:
        """The next work that is to be graded; None if none is there now."""
        if self._is_time():
            if self._seen() != self._stamp:
                return None  # the course was changed: what runs is the last of its kind
            try:
                self._take_arrivals()
            except (CourseError, OSError) as error:
                self._board.trouble(_words(error))
                self._stamp = ()  # some may be collected and not be waiting: all is looked through
                return None
            self._tell_queue()
        while (place := self._queue.take()) is not None:
            task = next(grader.todo([place]), None)
            self._tell_queue()
            if task is not None:
                return task
            self._queue.done(place)
        return None

    def _graded(self, result: Result) -> None:
        place = result.student, result.assignment
        seconds = self._queue.done(place)
        self._unreleased.add(place)
        self._release([place])
        self._board.graded(result, seconds)
        self._tell_queue()

    def _tell_queue(self) -> None:
        queue = self._queue
        self._board.write("grading", len(queue.waiting), queue.under_way)

    def _turn(self) -> None:
        """At midnight, and when something is due, show what students may read from then on."""
        if self._turning is None or showing.now() < self._turning:
            return
        limited = {n: a for n, a in self._assignments.items() if a.rules.feedback.is_limited}
        for words in refresh(self._taught, limited):
            self._board.trouble(words)
        self._unreleased |= {one for one in self._all_places() if one[1] in limited}
        self._turning = self._next_turn()

    def _next_turn(self) -> datetime | None:
        now = showing.now()
        rules = (one.rules.feedback.next_change(now) for one in self._assignments.values())
        return min((when for when in rules if when is not None), default=None)

    def _release(self, places: Sequence[Place] = ()) -> None:
        """Release these pages, or all that are not out yet."""
        for name in self._assignments:
            students = {s for s, a in (places or self._unreleased) if a == name}
            if not students:
                continue
            try:
                publish(self._course, name, students, self._board.trouble)
            except (CourseError, OSError) as error:  # graded it is; it is tried again
                self._board.trouble(_words(error))
            else:
                self._unreleased -= {(student, name) for student in students}

    def _stop_warm(self) -> None:
        warm, self._warm = self._warm, None
        if warm is not None:
            warm.close()


class _Tasks(Iterator[Task]):
    """What there is to grade; after an end there may be more."""

    def __init__(self, watcher: Watcher, grader: Grader) -> None:
        self._watcher, self._grader = watcher, grader

    def __next__(self) -> Task:
        task = self._watcher.next_task(self._grader)
        if task is None:
            raise StopIteration
        return task


def run(course: Course, names: Sequence[str], jobs: int, every: float) -> None:
    """Watch until somebody stops it."""
    with Watcher(course, names, jobs, every) as watcher:
        say(f"watching; {course.root / 'watch.html'} shows what is going on. Ctrl-C ends it.")
        watcher.run()


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, CourseError) else sentence_of(error, "") or str(error)


@contextmanager
def _ending_on_request() -> Iterator[None]:
    """Inside, a request of the system's to end ends what is under way, as Ctrl-C does."""

    def end(*_: object) -> NoReturn:
        raise Stopped

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
