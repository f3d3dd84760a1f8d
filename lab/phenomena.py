"""What a sentence of the grammar asks of a translator, and what a translation gets right of it.

French shows each phenomenon by a few words next to each other: "une petite maison" by an adjective
that goes before its noun and by the e of "petite". A translation gets it right if it has these
words, wherever it has them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise

from lab.grammar import SUBJECTS, conjugate
from lab.words import (
    ADJECTIVES,
    ADJECTIVES_AFTER,
    ADJECTIVES_BEFORE,
    BE,
    CAN,
    DETERMINERS,
    ELIDED,
    GIVE,
    IL,
    ILS,
    JE,
    NOUNS,
    NOUS,
    VERBS,
    VERBS_ALONE,
    VERBS_WITH_PREPOSITION,
    VOUS,
    WANT,
    Adjective,
)

AGREEMENT = "agreement of adjectives"
BEFORE = "adjective before its noun"
AFTER = "adjective after its noun"
ELISION = "elision (l' d' n' j')"
NEGATION = "negation (ne ... pas)"
CLITIC = "object pronoun before the verb"
LONG = "12 words or more"
PHENOMENA = (AGREEMENT, BEFORE, AFTER, ELISION, NEGATION, CLITIC, LONG)
LONG_FROM = 12  # words, the full stop included

Span = range  # places of words that stand next to each other


def spans(french: str) -> dict[str, list[Span]]:
    """The phenomena of a sentence of the grammar, each with the words that show it."""
    words = french.split()
    found = {
        AGREEMENT: [range(i, i + 1) for i, word in enumerate(words) if word in _agreeing()],
        BEFORE: list(_neighbours(words, _before(), _nouns())),
        AFTER: list(_neighbours(words, _nouns(), _after())),
        ELISION: [range(i, i + 2) for i, word in enumerate(words) if word in _elided()],
        NEGATION: list(_negations(words)),
        CLITIC: [range(i, i + 2) for i in range(1, len(words) - 1) if _is_clitic(words, i)],
        LONG: [range(len(words))] if len(words) >= LONG_FROM else [],
    }
    return {phenomenon: places for phenomenon, places in found.items() if places}


def shares_right(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """How often each phenomenon is translated right, and how often it was there.

    Args:
        pairs: (the right French, what the model says).
    """
    right: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for french, said in pairs:
        for phenomenon, places in spans(french).items():
            there[phenomenon] += 1
            right[phenomenon] += _has_all(french, said, phenomenon, places)
    return {phenomenon: (right[phenomenon], there[phenomenon]) for phenomenon in PHENOMENA}


def telling_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """At most four pairs (English, French) that show most phenomena: the first of each kind."""
    wanted = [{AGREEMENT, AFTER}, {NEGATION, BEFORE}, {CLITIC}, {ELISION, LONG}]
    chosen: dict[int, tuple[str, str]] = {}
    for pair in pairs:
        shown = spans(pair[1]).keys()
        for number, kinds in enumerate(wanted):
            if number not in chosen and kinds <= shown and pair not in chosen.values():
                chosen[number] = pair
        if len(chosen) == len(wanted):
            break
    return [chosen[number] for number in sorted(chosen)]


@cache
def dictionary_forms() -> dict[str, str]:
    """The form under which a dictionary has it, of every form of the grammar's words."""
    persons = (JE, VOUS, IL, NOUS, ILS)
    verbs = {conjugate(verb, person): verb for verb in _infinitives() for person in persons}
    determiners = {
        form: forms[0] for forms in DETERMINERS.values() for form in forms if forms[0] and form
    }
    return (
        verbs | {form: one for form, one in determiners.items() if " " not in form} | _plain_forms()
    )


def _has_all(french: str, said: str, phenomenon: str, places: Sequence[Span]) -> bool:
    """Whether the translation has the words of each place, and as often."""
    words, others = french.split(), said.split()
    if phenomenon == LONG:
        return words == others
    if phenomenon in (BEFORE, AFTER):  # the order alone counts: agreement has its own row
        words, others = _plain(words), _plain(others)
    wanted = Counter(tuple(words[i] for i in place) for place in places)
    return all(_count(others, phrase) >= number for phrase, number in wanted.items())


def _count(words: Sequence[str], phrase: tuple[str, ...]) -> int:
    runs = zip(*(words[start:] for start in range(len(phrase))), strict=False)
    return sum(run == phrase for run in runs)


def _plain(words: Sequence[str]) -> list[str]:
    return [_plain_forms().get(word, word) for word in words]


def _neighbours(
    words: Sequence[str], first: frozenset[str], second: frozenset[str]
) -> Iterator[Span]:
    for i, (one, other) in enumerate(pairwise(words)):
        if one in first and other in second:
            yield range(i, i + 2)


def _negations(words: Sequence[str]) -> Iterator[Span]:
    """Every ne, and every pas."""
    for i, word in enumerate(words):
        if word in ("ne", "n'", "pas"):
            yield range(i, i + 1)


def _is_clitic(words: Sequence[str], i: int) -> bool:
    """Whether this word is an object pronoun: "le" in "je le vois", not in "je vois le lit"."""
    before, word, following = words[i - 1 : i + 2]
    if word not in CLITICS:
        return False
    if following in _infinitives():
        return True
    return following in _finite_forms() and before in _before_clitics()


# Words of the grammar by what they are ------------------------------------------------------------

CLITICS = frozenset(["me", "m'", "vous", "le", "la", "l'", "les", "nous"])


@cache
def _nouns() -> frozenset[str]:
    return frozenset(form for noun in NOUNS for form in (noun.french, noun.french_plural) if form)


@cache
def _before() -> frozenset[str]:
    return frozenset(form for one in ADJECTIVES_BEFORE for form in _forms(one))


@cache
def _after() -> frozenset[str]:
    return frozenset(form for one in ADJECTIVES_AFTER for form in _forms(one))


@cache
def _agreeing() -> frozenset[str]:
    """Forms that show gender or number."""
    return frozenset(
        form
        for one in ADJECTIVES
        for form in (one.masculine_plural, one.feminine, one.feminine_plural)
        if form != one.masculine
    )


@cache
def _plain_forms() -> dict[str, str]:
    """The form in the dictionary of every form of adjectives and nouns."""
    nouns = {noun.french_plural: noun.french for noun in NOUNS if noun.french_plural}
    return nouns | {form: one.masculine for one in ADJECTIVES for form in _forms(one)}


@cache
def _elided() -> frozenset[str]:
    return frozenset(form for form in ELIDED.values() if form.endswith("'"))


@cache
def _infinitives() -> frozenset[str]:
    tables = (VERBS, VERBS_ALONE, VERBS_WITH_PREPOSITION, [BE, GIVE, WANT, CAN])
    return frozenset(verb.french for table in tables for verb in table)


@cache
def _finite_forms() -> frozenset[str]:
    persons = (JE, VOUS, IL, NOUS, ILS)
    return frozenset(conjugate(verb, person) for verb in _infinitives() for person in persons)


@cache
def _before_clitics() -> frozenset[str]:
    """What an object pronoun follows: ne, or the end of the subject."""
    subjects = frozenset(subject.french for subject in SUBJECTS) | {"j'"}
    return subjects | _nouns() | _before() | _after() | {"ne", "n'"}


def _forms(one: Adjective) -> tuple[str, ...]:
    forms = one.masculine, one.masculine_plural, one.feminine, one.feminine_plural
    return (*forms, one.before_vowel) if one.before_vowel else forms
