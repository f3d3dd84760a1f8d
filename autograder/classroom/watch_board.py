"""What a watcher is doing: lines on its terminal, a file, and a page that is written anew.

A status is news and no record: what was graded stands in the journal, and a disk that is full costs
the news alone.
"""

import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from autograder.classroom.journal_lock import is_held
from autograder.classroom.pages import inert_page
from autograder.common.course import CourseError
from autograder.common.names import plain, readable, say, visible
from autograder.common.results import Result
from autograder.common.whole import require_file, write_whole

if TYPE_CHECKING:
    from autograder.classroom.classes import Class

LOCK = "watch.lock"
FILE, PAGE = "watch.json", "watch.html"
SELDOM = 2.0  # seconds between two writings of news that can wait
LAST = 30  # things of a kind that are shown
LONGEST = 500  # characters of a sentence


@dataclass
class News:
    """What there is to know of a watcher."""

    process: int = field(default_factory=os.getpid)
    since: str = ""
    looked: str = ""  # when it last looked, or wrote this
    state: str = "starting"
    waiting: int = 0
    grading: list[str] = field(default_factory=list)
    arrived: int = 0
    graded: int = 0
    zero: int = 0  # of those graded: 0 as a whole, with a reason
    slowest: float = 0.0  # seconds from arrival to released feedback
    last: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


class Board:
    """Where a watcher says what it does."""

    def __init__(self, taught: "Class") -> None:
        """Begin with nothing done."""
        self._folder = taught.folder
        self._news = News(since=_now())
        self._last: deque[str] = deque(maxlen=LAST)
        self._troubles: deque[str] = deque(maxlen=LAST)
        self._written = 0.0
        self._said = ""

    def arrived(self) -> None:
        """A work was collected."""
        self._news.arrived += 1

    def graded(self, result: Result, seconds: float) -> None:
        """A work was graded and its feedback released, so many seconds after it was collected."""
        news = self._news
        news.graded += 1
        news.zero += bool(result.reason)
        news.slowest = max(news.slowest, seconds)
        why = f": {result.reason}" if result.reason else ""
        who = f"{readable(plain(result.student))}, {result.assignment}"
        words = f"{_now()} {who}: graded and released after {seconds:.1f} s{why}"[:LONGEST]
        self._last.appendleft(words)
        say(words)
        self.write()

    def trouble(self, words: str) -> None:
        """Something stands in the way; said once as long as it is the same."""
        words = visible(words)[:LONGEST]
        if words != self._said:
            say(f"{_now()} {words}", sys.stderr)
            self._troubles.appendleft(f"{_now()} {words}")
        self._said = words
        self.write(state="trouble")

    def write(
        self, state: str = "", waiting: int = 0, grading: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Write file and page, unless that was just now and nothing else has come since."""
        news = self._news
        is_same = state in ("", news.state)
        if state:
            news.state, news.waiting = state, waiting
            news.grading = [f"{readable(plain(who))}, {what}" for who, what in grading]
        if is_same and time.monotonic() < self._written + SELDOM:
            return
        self._written = time.monotonic()
        news.looked, news.last, news.troubles = _now(), [*self._last], [*self._troubles]
        with suppress(OSError):
            write_whole(self._folder / FILE, json.dumps(asdict(news), indent=1))
            write_whole(self._folder / PAGE, inert_page("watch.html", news=news))


def tell(taught: "Class") -> None:
    """Print what the watcher is doing, or that there is none."""
    path, runs = taught.folder / FILE, is_held(taught.folder / LOCK)
    try:
        require_file(path)
        news = News(**json.loads(path.read_text(encoding="utf-8")))
        lines = [*_lines(news, runs=runs)]
    except FileNotFoundError:
        begin = "No watcher has run here; start one: python -m autograder watch"
        say("A watcher begins." if runs else begin)
        return
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CourseError(f"{path} cannot be read ({error}); delete it.") from error
    for line in lines:
        say(line)


def _lines(news: News, *, runs: bool) -> Iterable[str]:
    if runs:
        yield f"watcher:  process {news.process}, since {news.since}; {news.state}"
        yield f"last look: {news.looked}"
    else:
        yield f"watcher:  none runs; the last one was seen at {news.looked} ({news.state})"
    grading = f"; being graded: {'; '.join(news.grading)}" if news.grading else ""
    yield f"queue:    {news.waiting} waiting{grading}"
    zero = f", {news.zero} of them 0 as a whole" if news.zero else ""
    yield (
        f"done:     {news.arrived} collected, {news.graded} graded{zero}; the slowest took "
        f"{news.slowest:.1f} s"
    )
    for words in news.last[:10]:
        yield f"  {words}"
    for words in news.troubles[:10]:
        yield f"trouble:  {words}"


def _now() -> str:
    return datetime.now().astimezone().isoformat(" ", "seconds")
