"""Find answers that are nearly the same: token fingerprints, compared through an inverted index.

Comments, docstrings, layout and the names a student chose are taken out first; then a window slides
over the tokens and the smallest hash in each stays (Schleimer, Wilkerson and Aiken, "Winnowing",
2003). What the release, the reference or a good part of the class has too says nothing and is left
out. Code that does not compile is read like any other. The result accuses nobody: it says where
to look.
"""

import keyword
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice, pairwise

from autograder.common import scan
from autograder.common.results import Flag

TOKENS = 6  # in one shingle
WINDOW = 5  # shingles of which one is kept: 10 equal tokens in a row are always noticed
SHORTEST = 40  # tokens; shorter answers have too few ways of being right
SHARED = 12  # uncommon fingerprints that two answers must share: about 40 tokens
ALIKE = 0.8  # of the shorter one's uncommon fingerprints
LONGER = 3  # times as many fingerprints: what is shared is then a part of the longer one alone
COMMON_SHARE, COMMON_COUNT = 0.25, 5  # of the class: what more students have is common
CROWDED = 30  # a fingerprint in more different answers than this starts no comparison
LONGEST = 200_000  # characters of an answer that are read
MOST = 8000  # of its tokens, without comments and line ends
NAMED = 3  # students named in one flag

BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
NAMING = {"def", "class", "as", "import", "global", "nonlocal"}


@dataclass(frozen=True)
class Pair:
    """Two students whose answers to one question are nearly the same."""

    first: str
    second: str
    question: str
    shared: int  # uncommon fingerprints that both have
    share: float  # of the shorter one's
    longer: str = ""  # which of them is so much longer that the other is a part of it


def flags(
    answers: Mapping[str, Mapping[str, str]], common: Mapping[str, Iterable[str]], where: str
) -> dict[str, list[Flag]]:
    """Who should be looked at, and with whom.

    Args:
        answers: student -> question (grade_id) -> source.
        common: question -> sources that everybody was given, or that are the expected answer.
        where: the notebook's name.
    """
    others: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    found: dict[str, list[Flag]] = defaultdict(list)
    for student, given in sorted(answers.items()):
        if cut := [question for question, source in sorted(given.items()) if _is_cut(source)]:
            place = f"{where}/{', '.join(cut)}"
            words = f"more than {MOST} tokens in {place}, of which the first were compared with"
            found[student].append(Flag("similar", place, f"{words} other answers: have a look"))
    for pair in pairs(answers, common):
        for student, other in ((pair.first, pair.second), (pair.second, pair.first)):
            if pair.longer in ("", student):  # a part of another's answer is nobody's copy of it
                others[student, pair.question, bool(pair.longer)].append(other)
    together: dict[tuple[str, tuple[str, ...], bool], list[str]] = defaultdict(list)
    for (student, question, holds), names in sorted(others.items()):
        together[student, tuple(sorted(set(names))), holds].append(question)
    for (student, names, holds), questions in together.items():
        place = f"{where}/{', '.join(questions)}"
        named, several = _named(names, len(questions)), len(names) > 1 or len(questions) > 1
        words = f"near-identical to {named} in {place}: have a look"
        if holds:
            verb = "are" if several else "is"
            words = f"{named} {verb} contained in the much longer one in {place}: have a look"
        found[student].append(Flag("similar", place, words))
    return dict(found)


def pairs(
    answers: Mapping[str, Mapping[str, str]], common: Mapping[str, Iterable[str]]
) -> list[Pair]:
    """Pairs of near-identical answers; of many that are the same, each is paired with the first."""
    questions = sorted({question for given in answers.values() for question in given})
    found = []
    for question in questions:
        given = {name: texts[question] for name, texts in answers.items() if question in texts}
        found += [
            replace(pair, question=question) for pair in _alike(given, common.get(question, ()))
        ]
    return found


def fingerprints(source: str) -> frozenset[int]:
    """The winnowed fingerprints of an answer."""
    return _winnowed(tuple(tokens(source)))


def tokens(source: str) -> list[str]:
    """An answer's tokens without layout, comments, docstrings and the student's own names."""
    found: list[tuple[str, str]] = []
    count = 0
    for kind, text in _all_tokens(source):
        found.append((kind, text))
        count += kind != "line"
        if count == MOST:
            break
    own = _own_names(found)
    kept = []
    for place, (kind, text) in enumerate(found):
        if kind == "line" or _stands_alone(found, place):
            continue
        if kind == "string":
            text = "'text'"
        elif kind == "name" and text in own:
            text = "own"
        kept.append(text)
    return kept


def _all_tokens(source: str) -> Iterator[tuple[str, str]]:
    return (one for one in scan.tokens(source[:LONGEST]) if one[0] != "comment")


def _is_cut(source: str) -> bool:
    """Whether there is more of an answer than is compared."""
    if len(source) <= MOST:
        return False
    counted = (kind for kind, _ in _all_tokens(source) if kind != "line")
    return next(islice(counted, MOST, None), None) is not None


def _alike(given: Mapping[str, str], common: Iterable[str]) -> list[Pair]:
    """Pairs within one question."""
    everybody = frozenset().union(*(fingerprints(source) for source in common))
    same: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for student in sorted(given):
        found = tuple(tokens(given[student]))
        if len(found) >= SHORTEST:
            same[found].append(student)
    prints = {names[0]: _winnowed(found) - everybody for found, names in same.items()}
    members = {names[0]: names for names in same.values()}
    uncommon = _uncommon(prints, members, len(given))
    kept = {name: marks & uncommon for name, marks in prints.items()}
    kept = {name: marks for name, marks in kept.items() if len(marks) >= SHARED}
    found = [
        Pair(first, other, "", len(kept[first]), 1.0)
        for first, names in members.items()
        if first in kept
        for other in names[1:]
    ]
    for (first, second), shared in _meetings(kept).items():
        short, long = sorted((first, second), key=lambda name: len(kept[name]))
        share = shared / len(kept[short])
        if shared >= SHARED and share >= ALIKE:
            longer = long if len(kept[long]) > LONGER * len(kept[short]) else ""
            found.append(Pair(first, second, "", shared, share, longer))
    return sorted(found, key=lambda pair: (-pair.share, -pair.shared, pair.first, pair.second))


def _uncommon(
    prints: Mapping[str, frozenset[int]], members: Mapping[str, Sequence[str]], students: int
) -> frozenset[int]:
    """Fingerprints that are not had by a good part of the class."""
    owners: Counter[int] = Counter()
    for name, marks in prints.items():
        for mark in marks:
            owners[mark] += len(members[name])
    return frozenset(
        mark
        for mark, count in owners.items()
        if count < COMMON_COUNT or count <= COMMON_SHARE * students
    )


def _meetings(kept: Mapping[str, frozenset[int]]) -> Counter[tuple[str, str]]:
    """How many fingerprints each pair shares that shares any; crowded ones start no pair."""
    index: dict[int, list[str]] = defaultdict(list)
    for name, marks in kept.items():
        for mark in marks:
            index[mark].append(name)
    met = {
        pair
        for names in index.values()
        if len(names) <= CROWDED
        for pair in combinations(sorted(names), 2)
    }
    return Counter({(a, b): len(kept[a] & kept[b]) for a, b in met})


@lru_cache(maxsize=4096)
def _winnowed(found: tuple[str, ...]) -> frozenset[int]:
    """The smallest hash of each window of shingles."""
    hashes = [
        zlib.crc32("\0".join(found[start : start + TOKENS]).encode("utf-8", "replace"))
        for start in range(len(found) - TOKENS + 1)
    ]
    last = max(1, len(hashes) - WINDOW + 1)
    return frozenset(min(hashes[start : start + WINDOW]) for start in range(last) if hashes)


def _own_names(found: Sequence[tuple[str, str]]) -> set[str]:
    """Names that the answer itself gives: what it defines, assigns, takes or loops over."""
    own: set[str] = set()
    line: list[str] = []  # names so far on this line that may turn out to be assigned
    depth, taking, looping = 0, 0, False
    for (_, before), (kind, text) in pairwise([("", ""), *found]):
        if step := BRACKETS.get(text):
            depth = max(0, depth + step)
            taking = 0 if depth < taking else taking
        elif kind == "line" and depth == 0:
            line, looping = [], False
        elif kind == "name" and not keyword.iskeyword(text):
            if before in NAMING or looping or _is_parameter(before, depth, taking):
                own.add(text)
            line.append(text)
        elif text == "def":
            taking = depth + 1
        elif text in ("for", "lambda"):
            looping = True
        elif text in ("in", ":") and looping:
            looping = False
        elif text in ("=", ":=") and line:
            own.update(_assigned(line, is_statement=depth == 0 and text == "="))
    return own


def _assigned(line: list[str], *, is_statement: bool) -> list[str]:
    """Which of the names so far on a line are assigned: all, and taken out; or the last alone."""
    if not is_statement:
        return line[-1:]
    names = line.copy()
    line.clear()
    return names


def _is_parameter(before: str, depth: int, taking: int) -> bool:
    return bool(taking) and depth == taking and before in ("(", ",", "*", "**", "\n")


def _stands_alone(found: Sequence[tuple[str, str]], place: int) -> bool:
    """Whether this is a string that is a line of its own: a docstring, or as good as one."""
    if found[place][0] != "string":
        return False
    starts = place == 0 or found[place - 1][0] == "line"
    ends = place + 1 == len(found) or found[place + 1][0] == "line"
    return starts and ends


def _named(names: Sequence[str], answers: int) -> str:
    """Such as "bruno's answer", "bruno's answers", "the answers of bruno, chen and 2 others"."""
    if len(names) == 1:
        return f"{names[0]}'s answer{'s' if answers > 1 else ''}"
    if len(names) <= NAMED:
        return f"the answers of {', '.join(names[:-1])} and {names[-1]}"
    more = len(names) - NAMED
    return f"the answers of {', '.join(names[:NAMED])} and {more} other{'s' if more > 1 else ''}"
