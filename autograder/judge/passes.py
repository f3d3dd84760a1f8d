"""What a notebook is run for: each pass over its tests, what it may change of a grade, and why.

A submission is graded by one pass over its tests in order. Where something is doubtful another pass
looks at the notebook in another environment, in new processes. What a pass is like is data: a
`Pass`. `PASSES` lists them all; the code asks a pass what it is like, and never which one it is.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Pass:
    """One way to run a notebook and its tests; the first four say it in words."""

    name: str
    environment: str  # whose answers run, beside what
    counts_for: str  # what it may change of a grade
    told_from: str  # what a student is told of it
    doubted: bool = True  # whether answers are compared with the reference, and looked at again
    with_hidden: bool = True  # whether the hidden parts of tests run
    whole: bool = True  # whether all statements are there, so that rules can be read
    looks_apart: bool = False  # whether what fails is tried beside the reference's other answers
    looks_without: bool = False  # whether what passes is tried without what nobody could read
    beside_reference: bool = False  # whether the reference stands in the place of other answers
    goes_on: bool = False  # whether tests find what answers have done to the instructor's values
    tries_reference: bool = False  # whether the answers are the reference's, doubted all the same

    def apart(self) -> "Pass":
        """The pass that tries answers of this one beside the reference's."""
        return self._second(APART)

    def as_left(self) -> "Pass":
        """The pass in which nothing that answers did to the instructor's values is undone."""
        return self._second(AS_LEFT)

    def _second(self, other: "Pass") -> "Pass":
        tried = self.tries_reference
        return replace(other, tries_reference=tried, looks_without=not tried)


GRADE = Pass(
    "grade",
    "the student's answers, tests in a process of their own",
    "every point",
    "visible failures, if no hidden test ran before them",
    looks_apart=True,
    looks_without=True,
)
IN_PRIVATE = Pass(
    "in private",
    "the student's answers, in a process that has met no hidden test",
    "nothing: what it finds replaces words, not points",
    "visible failures that a hidden test ran before",
    with_hidden=False,
)
APART = Pass(
    "apart",
    "the student's answers to one question, the reference elsewhere",
    "points that another answer of the student's has cost",
    "a note that another cell of theirs changes what it uses",
    looks_without=True,
    beside_reference=True,
)
AS_LEFT = Pass(
    "as left",
    "the student's answers; the instructor's values stay as answers have left them",
    "points of a question that goes on where an earlier one ended, where no reference stands in",
    "nothing",
    looks_without=True,
    beside_reference=True,
    goes_on=True,
)
READ_ALONE = Pass(
    "read alone",
    "the student's answers without the statements whose meaning cannot be read off",
    "a question with rules loses its points if it fails without them",
    "what could not be read",
    whole=False,
)
IN_ONE_PROCESS = Pass(
    "in one process",
    "answers and the visible parts of tests in one process of students', as in the notebook",
    "a test that passed in two processes and fails here, by its own fault, loses its point; "
    "one that failed there and passes here is pointed out to the instructor",
    "that failure, or that it passes here only",
    with_hidden=False,
    looks_apart=True,
    looks_without=True,
)
REFERENCE = Pass(
    "reference",
    "the instructor's answers, or known answers among them",
    "whether a test can be used, and what is known of mistakes",
    "nothing",
    doubted=False,
)
STEADY = Pass(
    "steady",
    "the reference, doubted as a student's answers are",
    "whether a test can be used, and whether an answer may differ when it is asked in another "
    "order: only if the reference does",
    "nothing",
    looks_apart=True,
    tries_reference=True,
)
PASSES = (GRADE, IN_PRIVATE, APART, AS_LEFT, READ_ALONE, IN_ONE_PROCESS, REFERENCE, STEADY)
