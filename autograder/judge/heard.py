"""What was heard of the reference a moment ago, in the place of what is kept of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from autograder.common.results import TestRun, Transcript
from autograder.judge.assignment import Assignment, Notebook
from autograder.judge.differences import keep


@dataclass
class Heard:
    """What the reference gives in each test, by the test's name in the assignment."""

    references: dict[str, Transcript] = field(default_factory=dict)
    besides: dict[str, Transcript] = field(default_factory=dict)
    unable: frozenset[str] = frozenset()

    def of(self, test: str) -> tuple[Transcript | None, tuple[()]]:
        """What the reference gives in a test; no mistake is known."""
        return self.references.get(test), ()

    def beside(self, test: str) -> Transcript | None:
        """What comes from it otherwise than by calls."""
        return self.besides.get(test)


def heard(assignment: Assignment, notebook: Notebook, runs: Mapping[str, TestRun]) -> Heard:
    """What came of running some tests of a notebook with the reference, by the test's own name."""
    found = Heard()
    for test, run in runs.items():
        name = assignment.name_of(notebook, test)
        found.references[name], found.besides[name] = keep(run.transcript), keep(run.beside)
    return found
