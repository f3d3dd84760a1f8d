"""How a test can end, in words for each of its readers."""

from collections.abc import Mapping
from typing import NamedTuple


class Words(NamedTuple):
    """One status, as it is said."""

    state: str  # beside the test on its student's page
    sentence: str  # in the report, where nothing else is said of it
    error: str  # where nbgrader shows the name of an exception


STATUSES: Mapping[str, Words] = {
    "passed": Words("passed", "The test passed.", "NotRun"),
    "failed": Words("failed", "The test failed.", "AssertionError"),
    "error": Words("stopped with an error", "The answer raised an error.", "Error"),
    "timeout": Words("not finished in time", "The answer took too long.", "TimeoutError"),
    "died": Words("crashed", "The answer's process ended.", "ProcessDied"),
    "unanswered": Words("not answered", "Not answered yet.", "NotAnswered"),
    "forbidden": Words("not allowed", "A rule was broken.", "NotAllowed"),
    "test-error": Words("not graded", "The test itself is broken.", "TestError"),
}
