"""By which secret each student fetches feedback: the one handed in, if nobody else's is the same.

nbgrader's exchange publishes a page under a name that is made of the secret and the notebook's name
alone. Of two students with one secret each would get the page that is published last. Nothing tells
which of the two has taken the other's, so neither is used.
"""

import hashlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from autograder.classroom.journal import secrets
from autograder.classroom.journal_lines import Graded, Who
from autograder.common.names import plain, readable

if TYPE_CHECKING:
    from autograder.classroom.classes import Class


class Secrets:
    """The secrets of a class, as its journal has them and as they are graded."""

    def __init__(self, taught: "Class"):
        self._submitted = taught.submitted
        self._held: dict[Who, tuple[str, str]] = {}  # secret and key of what was handed in
        self._holders: dict[str, set[Who]] = {}
        self._met: set[str] = set()  # those of several students that came up
        for who, (secret, key) in secrets(taught).items():
            self._take(who, secret, key)

    def take(self, graded: Graded) -> dict[Who, str]:
        """Note what was handed in; returns what others are to have beside their pages now."""
        who = graded.result.student, graded.result.assignment
        before, _ = self._held.get(who, ("", ""))
        self._take(who, graded.secret, graded.result.key)
        others = self._holders.get(before, set()) | self._holders.get(graded.secret, set())
        return {other: self._written(other) for other in others - {who}}

    def own(self, graded: Graded) -> str:
        """What is to be written beside the pages of this result, which was taken."""
        return self._written((graded.result.student, graded.result.assignment))

    def sentences(self) -> Iterator[str]:
        """Who handed in the same, as far as it came up."""
        for secret in sorted(self._met):
            here = filter(self._is_here, {student for student, _ in self._holders[secret]})
            names = sorted(readable(plain(student)) for student in here)
            if len(names) > 1:
                yield (
                    f"the submission_secret.txt that {', '.join(names)} each handed in, the same: "
                    "by nbgrader's exchange one would fetch another's page. None of them can fetch "
                    "feedback there; give them their pages in another way."
                )

    def _take(self, who: Who, secret: str, key: str) -> None:
        before, _ = self._held.get(who, ("", ""))
        if before:
            self._holders[before].discard(who)
        self._held[who] = secret, key
        if secret:
            self._holders.setdefault(secret, set()).add(who)

    def _written(self, who: Who) -> str:
        secret, key = self._held[who]
        if secret and not self._is_shared(secret, who[0]):
            return secret
        return made_up(key)

    def _is_shared(self, secret: str, student: str) -> bool:
        """Whether another student has it; one whose folder was renamed since is no other."""
        others = {other for other, _ in self._holders[secret]} - {student}
        shared = any(map(self._is_here, others))
        if shared:
            self._met.add(secret)
        return shared

    def _is_here(self, student: str) -> bool:
        return os.path.lexists(self._submitted / student)


def made_up(key: str) -> str:
    """A secret that nobody knows, lest nobody's feedback be released for want of one."""
    return hashlib.sha512(f"no secret: {key}".encode()).hexdigest()
