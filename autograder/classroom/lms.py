"""How Canvas, Moodle and Blackboard name what is handed in: a collector for each."""

import re
from functools import cached_property
from pathlib import Path

from traitlets import Unicode

from autograder.classroom.archives import begin_alike
from autograder.classroom.collector import SafeCollector
from autograder.classroom.file_names import ATTEMPT, INNER, Said, names_in, stem_of

# How systems name what is handed in. `lms_id` tells apart whom they call the same and is a part of
# the name here; where `place` differs they are two people whom nothing tells apart for good. Of two
# files that go to one place the one with the higher `lms_number` was handed in later.
CANVAS_FORM = (
    r"(?:.*/)?(?P<student_id>{})(?:_(?i:late))?_(?P<lms_id>{})_(?P<lms_number>\d+)_"
    r"(?:[^/]+/)?(?P<file_id>.+)"
)
CANVAS = CANVAS_FORM.format(r"[^/]+?", r"\d+")
CANVAS_NUMBERED = CANVAS_FORM.format(r"[^/]+?_\d+", r"\d+")  # the name ends in a number of its own
CANVAS_BLIND = CANVAS_FORM.format("anon", r"[0-9A-Za-z]{5}")
MOODLE = (
    r"(?:.*/)?(?P<student_id>[^/]+?)_(?P<place>\d+)_assignsubmission_file"
    r"(?:_?/(?:[^/]+\.unpacked/)?|_(?:[^/]+/)?)(?P<file_id>.+)"
)
MOODLES = re.compile(r"(.+?)_(\d+)_assignsubmission_")  # begins a name
MOODLES_SIGN = re.compile(r"_\d+_assignsubmission_")  # which a person's own name may hold, too
# what Moodle calls everybody where names are hidden, behind a group's name perhaps
HIDDEN = re.compile(
    r"(?:.+-)?(?:participant[ei]?|partecipante|teilnehmer(?:in)?|deelnemer|uczestnik|"
    r"deltagare|deltaker|deltager|osallistuja)",
    re.IGNORECASE,
)
BLACKBOARD = (
    r"(?:.*/)?(?P<place>[^/]*?)_(?P<student_id>[^/_]+)_attempt_"
    r"(?P<timestamp>\d{4}(?:-\d\d?){5})_(?:[^/]+/)?(?P<file_id>.+)"
)
BLACKBOARDS = re.compile(r"(.+?_[^_]+)_attempt_\d{4}(?:-\d\d?){5}[_.]")  # begins a name


class FromCanvas(SafeCollector):
    """For what Canvas gives: `adaminsanne_LATE_123_456_numbers-2.ipynb`; she is adaminsanne_123.

    Canvas takes numbers out of the middle of a name, not from its end: `bo_12_34_56_x.ipynb` is
    bo's or bo_12's. It is his whose number the roster has; or bo's, if what is left of the name is
    a notebook of the assignment. Else it is nobody's: `bo` may call his file `56_x.ipynb`.
    """

    named_regexp = Unicode(CANVAS).tag(config=True)
    doubt = "which number is the student's? A roster.csv with everybody's lms_id says so"

    def _found(self, path: str) -> "re.Match[str] | None":
        if self.named_regexp != CANVAS:
            return super()._found(path)
        forms = (re.match(form, path) for form in (CANVAS, CANVAS_BLIND))
        found = [match for match in forms if match]
        start = max((match.start("student_id") for match in found), default=0)
        found = [match for match in found if match.start("student_id") == start]
        if found and found[-1]["student_id"] == "anon" and self._of_folder(path[:start]):
            return found[-1]  # in a folder where all are
        numbered = re.match(CANVAS_NUMBERED, path)
        if numbered and numbered.end("student_id") in [match.end("lms_id") for match in found]:
            found.append(numbered)
        people = {(match["student_id"], match["lms_id"]): match for match in found}
        return self._meant(list(people.values()), numbered)

    def _meant(
        self, found: "list[re.Match[str]]", numbered: "re.Match[str] | None"
    ) -> "re.Match[str] | None":
        """The one of these ways to read a name that is right; None if nobody knows."""
        listed = [match for match in found if match["lms_id"] in self._numbers]
        named = [match for match in found if match is not numbered and self._is_released(match)]
        return next((ones[0] for ones in (found, listed, named) if len(ones) == 1), None)

    def _is_released(self, match: "re.Match[str]") -> bool:
        """Whether a file that was handed in is called as a notebook of the assignment."""
        name = match.string[match.end("lms_number") + 1 :].partition("/")[0]
        stem = stem_of(name.removesuffix(INNER))
        return stem in self._released or ATTEMPT.sub("", stem) in self._released

    @cached_property
    def _numbers(self) -> set[str]:
        """The numbers by which Canvas knows those on the roster."""
        return {person.lms_id for person in self._roster.values()}

    def _learnt(self, folder: str) -> bool:
        """Whether nobody's name is in these names."""
        names = names_in(folder)
        return bool(names) and all(name.startswith("anon_") for name in names)

    def _named(self, folder: Path, part: str, suffix: str, before: int) -> "Said | None":
        """What a part of a path says; no less than all of it says where the name ends."""
        said = self._said(folder / (part if part.endswith(suffix) else f"{part}{suffix}"))
        inside = len(str(folder / "x")) - 1
        is_here = inside <= said.start <= said.end <= min(before, inside + len(part))
        return said if is_here else None


class FromMoodle(SafeCollector):
    """For what Moodle gives: `Anne Adamins_123_assignsubmission_file_/numbers.ipynb`.

    Where names are hidden everybody is called `Participant`, in the site's language; the number,
    which is of one assignment, is a part of the name then. Who calls himself
    `Bo_5_assignsubmission_file` is not Bo: a name with two such signs says nobody.
    """

    named_regexp = Unicode(MOODLE).tag(config=True)
    doubt = "it can be read as two people's; collect it by hand"

    def _who(self, match: "re.Match[str]") -> tuple[str, str]:
        name, place = super()._who(match)
        if self._is_two(match.string[match.start("student_id") :].partition("/")[0]):
            return "", ""
        hidden = HIDDEN.fullmatch(name) or self._of_folder(
            match.string[: match.start("student_id")]
        )
        return (f"{name}_{place}", "") if hidden and place else (name, place)

    def _named(self, folder: Path, part: str, suffix: str, before: int) -> "Said | None":
        """What a part of a path says; nothing of how it begins if all of it says two people."""
        return None if self._is_two(part) else super()._named(folder, part, suffix, before)

    def _is_two(self, part: str) -> bool:
        """Whether a part of a path can be read as two people's."""
        return self.named_regexp == MOODLE and len(MOODLES_SIGN.findall(part)) > 1

    def _learnt(self, folder: str) -> bool:
        """Whether all of three or more have one name."""
        found = {match.groups() for name in names_in(folder) if (match := MOODLES.match(name))}
        return len(found) > 2 and len({name for name, _ in found}) == 1


class FromBlackboard(SafeCollector):
    """For what Blackboard gives: `ps1_anne_attempt_2026-01-01-12-00-00_numbers.ipynb`.

    A column's name may hold an underscore, a user's too. Of one download all have the same column:
    that by which most users are known, by roster or gradebook, or else the longest.
    """

    named_regexp = Unicode(BLACKBOARD).tag(config=True)
    doubt = "where does the user's name begin? Put everybody into roster.csv, in the column student"

    def _who(self, match: "re.Match[str]") -> tuple[str, str]:
        name, place = super()._who(match)
        if self.named_regexp != BLACKBOARD:
            return name, place
        column = self._of_folder(match.string[: match.start("place")])
        if column is None:
            return ("", "") if "_" in place else (name, place)
        both = f"{place}_{name}"
        if column and both.startswith(f"{column}_"):
            return both[len(column) + 1 :], column
        return name, place  # nothing is there to compare with

    def _learnt(self, folder: str) -> str | None:
        """The column's name; empty if no file is there to say it, None if nobody knows."""
        found = {match[1] for name in names_in(folder) if (match := BLACKBOARDS.match(name))}
        if not found:
            return ""
        shared = min(found)[: begin_alike(found)]
        shortest = min(map(len, found))
        columns = [shared[: cut.start()] for cut in re.finditer("_", shared)]
        columns = [column for column in columns if column and len(column) + 1 < shortest]
        known = [sum(name[len(one) + 1 :] in self._students for name in found) for one in columns]
        best = [one for one, count in zip(columns, known, strict=True) if count == max(known)]
        if best and (len(found) > 1 or len(best) == 1):
            return best[-1]
        name = self._course.assignment_id if self._course else ""
        best = [one for one in columns if name and one.endswith(name)]
        return best[-1] if best else None
