"""What an answer logs, for a test that listens: handed to the loggers of the test's process.

As with what it prints and warns of, its end tells with each reply what was logged meanwhile: the
logger's name, level, text and line, and nothing else. Levels that the test has set hold there too.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

MAX_LOGGED = 500  # records of one call
MAX_TEXT = 4000
MAX_NAME = 200
MAX_LINE = 10**6
MAX_LEVELS = 50


class Logged:
    """At a test's end what it has set; at an answer's what was logged."""

    def __init__(self) -> None:
        self.listens = False
        self.before: dict[str, int] = {}  # levels with which the test began
        self.handlers: dict[str, list[logging.Handler]] = {}  # and what heard each logger
        self.records: list[list[Any]] = []

    def begin(self, source: str) -> None:
        """A test with this text begins."""
        self.listens = "logging" in source or "assertLogs" in source
        loggers = _loggers() if self.listens else {}
        self.before = {name: one.level for name, one in loggers.items()}
        self.handlers = {name: [*one.handlers] for name, one in loggers.items()}

    def end(self) -> None:
        """Nothing of the test's hears another one: it may have failed before it let go."""
        for name, one in _loggers().items() if self.listens else ():
            one.handlers[:] = self.handlers.get(name, [])
            one.setLevel(self.before.get(name, logging.NOTSET))

    def ask(self, tree: dict[str, Any]) -> None:
        """Say in a request which levels the test has set."""
        if self.listens:
            now = {name: one.level for name, one in _loggers().items()}
            new = [[name, now[name]] for name in now if now[name] != self.before.get(name, 0)]
            tree["logs"] = new[:MAX_LEVELS]

    def hear(self, tree: dict[str, Any]) -> None:
        """Hand to the loggers here what a reply tells."""
        told = tree.get("logged") if self.listens else None
        for one in told[:MAX_LOGGED] if type(told) is list else ():
            if type(one) is list and [*map(type, one)] == [str, int, str, int]:
                name, level, text, line = one
                logging.getLogger(name[:MAX_NAME]).handle(
                    logging.makeLogRecord(
                        {
                            "name": name[:MAX_NAME],
                            "levelno": level % 1000,
                            "levelname": logging.getLevelName(level % 1000),
                            "msg": text[:MAX_TEXT],
                            "lineno": abs(line) % MAX_LINE,
                            "pathname": "<answer>",
                        }
                    )
                )

    # --- the answer's end -------------------------------------------------------------------------

    @contextmanager
    def during(self, levels: list[Any]) -> Iterator[None]:
        """While a call runs for a test that listens and has set these levels."""
        before = [(name, logging.getLogger(name).level) for name, _ in levels]
        usual: Any = logging.Logger.callHandlers
        kept = self

        def note(self: logging.Logger, record: logging.LogRecord) -> None:
            with suppress(Exception):  # a text that cannot be made is none
                text = record.getMessage()[:MAX_TEXT]
                if len(kept.records) < MAX_LOGGED:
                    kept.records.append([record.name, record.levelno, text, record.lineno])
            usual(self, record)

        _set(levels)
        logging.Logger.callHandlers = note
        try:
            yield
        finally:
            logging.Logger.callHandlers = usual
            _set(before)

    def leave(self, answered: dict[str, Any]) -> None:
        """Put into a reply what was logged."""
        if self.records:
            answered["logged"], self.records = self.records, []


def _loggers() -> dict[str, logging.Logger]:
    known = logging.root.manager.loggerDict.items()
    own = {name: one for name, one in known if isinstance(one, logging.Logger)}
    return {"root": logging.root, **own}


def _set(levels: Any) -> None:
    for name, level in levels:
        logging.getLogger(name).setLevel(level)
