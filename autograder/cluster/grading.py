"""Grade on a cluster: what `classroom.warm` does on one machine, with the workers on others.

This process hands out bytes and takes bytes; it alone writes journal and gradebook. A worker that
is killed, cut off, slow or says nonsense costs a try: its submission goes to another. While the
scheduler is gone nothing is lost: what was under way is handed out again when it is back.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from autograder.authoring.processes import cores
from autograder.authoring.trials import try_known_mistakes
from autograder.classroom.warm import GRACE, SECONDS, Task
from autograder.cluster import kit, words
from autograder.cluster.crew import Crew, Entry, Flight, Todo, Worker
from autograder.cluster.hand import order
from autograder.cluster.line import Failed, Line, NotYet, wait
from autograder.common.course import Course, CourseError
from autograder.common.names import say
from autograder.isolation.outcomes import Doubtful, Lost
from autograder.judge.received import Refused, received

if TYPE_CHECKING:
    from autograder.judge.assignment import Assignment

BEGIN = "exec(text, space) or space['begin'](name, kit)"
WORK = "(__import__('sys').modules[name].work(data) if name in __import__('sys').modules else b'G')"
END = "(__import__('sys').modules[name].end() if name in __import__('sys').modules else b'')"
GONE, FAILED = b"G", b"F"  # see `remote`
MOST_TRIES = 5  # of one submission that end with nothing
FETCH, FETCH_MOST = 2.0, 60.0  # seconds for a result to come over, at first and later
TICK = 0.5  # seconds between two looks around


@dataclass(frozen=True)
class Patience:
    """How long, in seconds, something is waited for."""

    scheduler: float = 600.0  # that is gone, or is not there yet
    workers: float = 600.0  # when there is none that can grade
    longest: float = 4 * (SECONDS + GRACE)  # for a submission, then it is tried elsewhere
    slow: float = 60.0  # for one, at the end, before an idle worker tries it as well


class Cluster:
    """Workers elsewhere; a context manager, used as `Warm` is."""

    def __init__(
        self,
        on: str,
        course: Course,
        assignments: Mapping[str, "Assignment"],
        *,
        sandboxed: bool = True,
        patience: Patience | None = None,
    ) -> None:
        """Say what will be graded and where; nothing is sent yet."""
        self._course, self._assignments, self._sandboxed = course, assignments, sandboxed
        self._patience = patience or Patience()
        self._line = Line(on)
        self._name = f"autograder_{uuid4().hex}"  # of this run, at the workers
        self._kit, self._mine = b"", dict[str, Any]()
        self._crew = Crew()
        self._flights: dict[int, Flight] = {}
        self._news: SimpleQueue[int] = SimpleQueue()
        self._number = 0
        self._nobody_since = time.monotonic()
        self._looked = 0.0

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Pack what travels, and have the workers that are there make ready."""
        if not self._kit:
            try_known_mistakes(self._course, self._assignments, cores(), self._sandboxed)
            self._kit = kit.pack(self._course, self._assignments, sandboxed=self._sandboxed)
            self._mine = kit.account(self._course, self._assignments)
            self._connect()
            self._look_around()

    def run(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, bytes | Lost]]:
        """Grade; what came of each, in the order in which they are done."""
        first = next(tasks, None)
        if first is None:
            return
        self.start()
        todo = Todo(chain([first], tasks))
        self._nobody_since = time.monotonic()
        while self._flights or not todo.is_empty:
            self._look_around(todo)
            for entry in todo.hopeless(MOST_TRIES):
                lost = Lost(f"{MOST_TRIES} tries gave nothing ({entry.why})")
                yield entry.task, entry.first or lost
            self._hand_out(todo)
            for entry, outcome in self._hear(todo):
                self._is_done(entry)
                yield entry.task, outcome

    def close(self) -> None:
        """End what was started at the workers, and leave."""
        if self._line.members() is not None:
            for flight in self._flights.values():
                self._line.forget(flight.future)
            ended: SimpleQueue[None] = SimpleQueue()
            known = [one for one in self._crew.workers.values() if one.state != "new"]
            space = {"name": self._name}
            futures = [
                self._line.send(one.address, END, dict(space), partial(ended.put, None))
                for one in known
            ]
            with suppress(Empty):
                for _ in futures:
                    ended.get(timeout=10)
        self._flights.clear()
        self._line.close()

    # -- who is there

    def _look_around(self, todo: Todo | None = None) -> None:
        """See who has come and gone, at most so often, and what takes too long."""
        if time.monotonic() < self._looked + TICK:
            return
        members = self._line.members()
        if members is None:
            self._lose_all(todo)
            self._connect()
            members = self._line.members() or {}
        for worker in self._crew.see(members):
            for number in [n for n, one in self._flights.items() if one.worker is worker]:
                self._give_up(number, todo, "its worker has gone")
        self._pass_over_who_hangs(todo)
        for worker in self._crew.in_state("new"):
            worker.state = "asked"
            text = Path(__file__).with_name("remote.py").read_text(encoding="utf-8")
            names = {"text": text, "space": {}, "name": self._name, "kit": self._kit}
            self._send(worker, None, BEGIN, names)
        self._require_somebody()
        self._looked = time.monotonic()

    def _pass_over_who_hangs(self, todo: Todo | None) -> None:
        """A worker that has had something for longer than any submission takes is asked no more."""
        for number, flight in list(self._flights.items()):
            most = self._patience.workers if flight.entry is None else self._patience.longest
            if flight.age > most:
                flight.worker.refuse(f"it has not answered for {round(flight.age)} seconds")
                self._note_refusal(flight.worker)
                self._give_up(number, todo, "it did not answer")

    def _connect(self) -> None:
        """Reach the scheduler, however often that takes, within our patience."""
        until, told = time.monotonic() + self._patience.scheduler, False
        while not self._line.connect():
            if time.monotonic() > until:
                raise CourseError(
                    f"The cluster at {self._line.on} does not answer; what was graded is kept. "
                    "Start its scheduler, and run the same command again: it grades the rest."
                )
            if not told:
                minutes = max(1, round(self._patience.scheduler / 60))
                say(
                    f"note: {self._line.on} does not answer; it is tried for {minutes} min",
                    sys.stderr,
                )
                told = True
            wait(TICK)
        self._nobody_since = time.monotonic()

    def _lose_all(self, todo: Todo | None) -> None:
        """The scheduler is gone: nobody is known, and all that was under way is to be done."""
        self._line.close()
        for number in list(self._flights):
            self._give_up(number, todo)
        self._crew = Crew()

    def _require_somebody(self) -> None:
        """CourseError if nobody can grade, and nobody is to be waited for."""
        if self._crew.in_state("ready") or self._crew.in_state("asked"):
            self._nobody_since = time.monotonic()
            return
        refused = self._crew.in_state("refused")
        waited = time.monotonic() - self._nobody_since
        if refused or waited > self._patience.workers:
            why = (
                f"each of its {len(refused)} workers was refused, as the notes say"
                if refused
                else f"it has had no worker for {round(waited)} seconds"
            )
            raise CourseError(
                f"The cluster at {self._line.on} cannot grade: {why}. What was graded is kept; put "
                "that right, and run the same command again: it grades the rest."
            )

    # -- to the workers

    def _send(self, worker: Worker, entry: Entry | None, text: str, names: dict[str, Any]) -> None:
        self._number += 1
        number = self._number
        worker.load += entry is not None
        future = self._line.send(worker.address, text, names, partial(self._news.put, number))
        self._flights[number] = Flight(worker, entry, future)
        if entry is not None:
            entry.flights += 1

    def _hand_out(self, todo: Todo) -> None:
        """Give submissions to workers that have room."""
        while worker := self._crew.for_entry(None):
            entry = todo.take(alone=not self._flights)
            if entry is None:
                self._help_out(todo)
                return
            self._hand_over(self._crew.for_entry(entry) or worker, entry)

    def _hand_over(self, worker: Worker, entry: Entry) -> None:
        parcel = entry.task.parcel.pack()
        data = order(entry.task.chapter, parcel)
        self._send(worker, entry, WORK, {"name": self._name, "data": data})

    def _help_out(self, todo: Todo) -> None:
        """At the end: what a worker has had for long is tried by an idle one as well."""
        if not todo.exhausted:
            return
        for flight in list(self._flights.values()):
            entry = flight.entry
            if entry is None or entry.flights > 1 or flight.age < self._patience.slow:
                continue
            helper = self._crew.for_entry(entry, ahead=0)
            if helper is not None and helper is not flight.worker:
                self._hand_over(helper, entry)

    def _give_up(self, number: int, todo: Todo | None, why: str = "") -> None:
        """Something will give nothing any more; with a reason it counts as a try."""
        flight = self._take(number)
        if flight.entry is not None and todo is not None:
            self._again(flight, todo, why)

    def _is_done(self, entry: Entry) -> None:
        """Nobody need grade it any more."""
        entry.done = True
        for number in [n for n, one in self._flights.items() if one.entry is entry]:
            self._take(number)

    def _take(self, number: int) -> Flight:
        flight = self._flights.pop(number)
        self._line.forget(flight.future)
        if flight.entry is not None:
            flight.worker.load -= 1
            flight.entry.flights -= 1
        return flight

    def _again(self, flight: Flight, todo: Todo, why: str) -> None:
        entry = flight.entry
        assert entry is not None
        if why:
            entry.tries, entry.why = entry.tries + 1, f"{flight.worker.address}: {why}"
            entry.avoid.add(flight.worker.address)
        if entry.flights == 0:  # else another has it as well
            todo.again(entry)

    # -- from the workers

    def _hear(self, todo: Todo) -> Iterator[tuple[Entry, bytes | Lost]]:
        """What has come, once something has or some time has gone by."""
        with suppress(Empty):
            numbers = [self._news.get(timeout=TICK)]
            with suppress(Empty):
                while True:
                    numbers.append(self._news.get_nowait())
            for number in numbers:
                if number in self._flights:  # else it was given up
                    yield from self._settle(number, todo)

    def _settle(self, number: int, todo: Todo) -> Iterator[tuple[Entry, bytes | Lost]]:
        """Act on the end of something that a worker was asked."""
        flight = self._flights[number]
        said = self._line.fetch(flight.future, min(FETCH_MOST, FETCH * 2**flight.fetched))
        if isinstance(said, NotYet):
            flight.fetched += 1
            self._news.put(number)  # by then it may be known that its worker is gone
            return
        self._take(number)
        if flight.entry is None:
            self._admit(flight.worker, said)
        elif not flight.entry.done:
            yield from self._judge(flight, said, todo)

    def _judge(
        self, flight: Flight, said: object, todo: Todo
    ) -> Iterator[tuple[Entry, bytes | Lost]]:
        """What a worker says of a submission: taken, tried again, or given up."""
        entry = flight.entry
        assert entry is not None
        outcome = self._outcome(flight, entry.task, said)
        if isinstance(outcome, Doubtful) and entry.first is None:
            entry.first = outcome
            todo.later(entry)
        elif isinstance(outcome, bytes) or (isinstance(outcome, Lost) and outcome.its_own):
            yield entry, outcome
        else:
            self._again(flight, todo, outcome.reason if outcome is not None else "")

    def _outcome(self, flight: Flight, task: Task, said: object) -> bytes | Lost | None:
        """What was said, checked as the writer will; Lost if nothing, None if it costs no try."""
        if said is None:
            return None
        if said == GONE:  # a worker that began anew under its old address
            flight.worker.state = "new"
            return None
        if isinstance(said, bytes) and said.startswith(FAILED):
            reason = said[1 : words.LONGEST].decode(errors="replace")
            flight.worker.strike(reason)
            return Lost(reason)
        try:
            outcome = words.heard(said)
            if isinstance(outcome, bytes):
                received(outcome, task.student, task.key, self._assignments[task.chapter])
        except (words.Garbled, Refused) as error:
            flight.worker.strike(str(error))
            self._note_refusal(flight.worker)
            return Lost(str(error))
        if isinstance(outcome, bytes):
            flight.worker.strikes = 0
        return outcome

    def _admit(self, worker: Worker, said: object) -> None:
        """Whether a worker grades as it would be graded here."""
        if said is None or isinstance(said, Failed):
            worker.state = "new"  # it is asked again, if it is still there
            worker.strike("it could not take what travels")
        else:
            why = self._unfit(said)
            worker.state = "ready"
            if why:
                worker.refuse(why)
        self._note_refusal(worker)

    def _unfit(self, said: object) -> str:
        """Why a worker cannot grade, by its own account; empty if it can."""
        try:
            account: dict[str, Any] = json.loads(said) if isinstance(said, bytes) else {}
            failed, python = account.get("failed"), account.get("python")
            if failed and python and python != self._mine["python"]:
                return f"it has Python {python}, and here it is {self._mine['python']}"
            if failed:
                return f"{failed}"
            found = kit.differences(self._mine, account)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            return f"its account of itself cannot be read ({type(error).__name__})"
        return f"it has {', '.join(found)}" if found else ""

    def _note_refusal(self, worker: Worker) -> None:
        if worker.state == "refused":
            say(f"note: {worker.address} grades nothing: {worker.why}", sys.stderr)
