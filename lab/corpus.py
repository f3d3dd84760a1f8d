"""English sentences with their French translations, made by a small grammar.

Every pair is correct by construction, and one English sentence has exactly one French sentence:
"you" is always "vous", "they" is always "ils". Words are lower case and separated by spaces;
"l'", "n'" and "qu'" are words of their own, and so are "'s" and the full stop.

Three modules read one after the other: tables of words (`lab.words`); functions that build a
phrase or a sentence from chosen words (`lab.grammar`); and here, functions that choose at random
(`_draw_...`).
"""

import random
from collections.abc import Callable, Sequence
from functools import lru_cache

from lab.grammar import OBJECTS, SUBJECTS, Phrase, agree, both, clause, elide, noun_phrase
from lab.words import (
    ADJECTIVES,
    ADJECTIVES_AFTER,
    ADJECTIVES_BEFORE,
    ANIMALS_TOO,
    AVOIDED,
    BE,
    CAN,
    CONJUNCTIONS,
    GIVE,
    IL,
    ILS,
    JE,
    NOUNS,
    NOUS,
    NUMBERS,
    PLACES,
    POSSESSIVES,
    TIMES,
    VERBS,
    VERBS_ALONE,
    VERBS_WITH_PREPOSITION,
    VOUS,
    WANT,
    Adjective,
    Noun,
    Verb,
)

# --- What the rest of the course uses -----------------------------------------------------------


def sentence_pairs(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return n pairs (English, French), no English sentence twice.

    The same seed gives the same pairs, and the first pairs are the same whatever n is.

    Raises:
        ValueError: if n is negative, or there are fewer than n different sentences.
    """
    if n < 0:
        raise ValueError(f"n ({n}) must be at least 0")
    rng = random.Random(seed)
    pairs: dict[str, str] = {}
    repeated = 0
    while len(pairs) < n:
        english, french = _draw_sentence(rng)
        repeated = repeated + 1 if english in pairs else 0
        if repeated == 1000:
            raise ValueError(
                f"{n} sentences asked for, but 1000 draws in a row gave nothing new "
                f"after {len(pairs)}; ask for fewer"
            )
        pairs[english] = french
    return list(pairs.items())


def split_pairs(
    pairs: Sequence[tuple[str, str]], held_out: float = 0.1, seed: int = 0
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Split pairs in two that share no sentence, neither English nor French.

    Pairs that share a sentence ("he sees his cat" and "he sees her cat" are the same in French)
    go to the same side, so the share of held-out pairs is met up to the size of such a group.

    Args:
        pairs: (English, French).
        held_out: the share of pairs to hold out, above 0 and below 1.
        seed: which pairs are held out.

    Returns:
        The pairs to train on and the held-out pairs, both in random order.

    Raises:
        ValueError: if `held_out` is not between 0 and 1, or leaves a side empty.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out ({held_out}) must be above 0 and below 1")
    groups = _groups(pairs)
    random.Random(seed).shuffle(groups)
    wanted = round(held_out * len(pairs))
    train: list[tuple[str, str]] = []
    held: list[tuple[str, str]] = []
    for group in groups:
        side = held if len(held) + len(group) <= wanted else train
        side.extend(group)
    if not train or not held:
        raise ValueError(
            f"{len(pairs)} pairs in {len(groups)} groups with no sentence in common "
            f"are too few to hold out a share of {held_out}"
        )
    return train, held


def _groups(pairs: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Group the pairs that are linked by common sentences."""
    parent = list(range(len(pairs)))  # of each pair; the pair on top of a tree names its group

    def top(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first_with: dict[tuple[str, str], int] = {}
    for index, (english, french) in enumerate(pairs):
        for sentence in [("english", english), ("french", french)]:
            parent[top(index)] = top(first_with.setdefault(sentence, index))
    groups: dict[int, list[tuple[str, str]]] = {}
    for index, pair in enumerate(pairs):
        groups.setdefault(top(index), []).append(pair)
    return list(groups.values())


# --- Chance: which words ------------------------------------------------------------------------

FORMS = ["statement", "statement", "negation", "question"]
DEFINITE = ["the", "the", "my", "this"]  # "my" stands for all possessives, "this" for "these"
WITH_A = [*DEFINITE, "a"]
EVERY = [*DEFINITE, "a", "some"]


def _draw_sentence(rng: random.Random) -> tuple[str, str]:
    """One sentence with its translation."""
    if rng.random() < 0.12:
        english, french = _draw_joined(rng)
        end = "."
    else:
        form = rng.choice(FORMS)
        english, french = rng.choice(PATTERNS)(rng, form)
        end = "?" if form == "question" else "."
    return f"{english} {end}", elide(f"{french} {end}")


def _draw_joined(rng: random.Random) -> tuple[str, str]:
    """Two short clauses, such as "he sleeps because she works"."""
    english, french = rng.choice(list(CONJUNCTIONS.items()))
    forms = [rng.choice(FORMS[:3]) for _ in range(2)]
    first, second = (_simple(rng, rng.choice(VERBS_ALONE), form) for form in forms)
    return f"{first[0]} {english} {second[0]}", f"{first[1]} {french} {second[1]}"


def _simple(rng: random.Random, verb: Verb, form: str) -> tuple[str, str]:
    """He sleeps."""
    return clause(_draw_subject(rng, verb), verb, form=form)


def _transitive(rng: random.Random, form: str) -> tuple[str, str]:
    """The boy sees a small cat in the garden."""
    verb = rng.choice(VERBS)
    subject = _draw_subject(rng, verb)
    rest = _draw_place(rng, ["in", "at", "near"]) if rng.random() < 0.25 else _draw_time(rng)
    what = _draw_object(rng, subject, verb, negated=form == "negation")
    return clause(subject, verb, what, rest, modal=_draw_modal(rng), form=form)


def _alone(rng: random.Random, form: str) -> tuple[str, str]:
    """The cat sleeps under the table."""
    verb = rng.choice(VERBS_ALONE)
    rest = _draw_place(rng) + _draw_time(rng)
    return clause(_draw_subject(rng, verb), verb, rest=rest, modal=_draw_modal(rng), form=form)


def _with_preposition(rng: random.Random, form: str) -> tuple[str, str]:
    """The man goes to the museum."""
    verb = rng.choice(VERBS_WITH_PREPOSITION)
    subject, what = _draw_subject(rng, verb), _draw_noun_phrase(rng, verb.kinds, WITH_A)
    return clause(subject, verb, what, _draw_time(rng), modal=_draw_modal(rng), form=form)


def _give(rng: random.Random, form: str) -> tuple[str, str]:
    """The king gives a book to the child."""
    what = _draw_noun_phrase(rng, GIVE.kinds, EVERY, negated=form == "negation")
    whom = _draw_noun_phrase(rng, frozenset({"person"}), WITH_A)
    rest = [(f"to {whom.english}", f"à {whom.french}")]
    return clause(_draw_subject(rng, GIVE), GIVE, what, rest, modal=_draw_modal(rng), form=form)


def _be_somewhere(rng: random.Random, form: str) -> tuple[str, str]:
    """The cat is under the bed."""
    return clause(_draw_subject(rng, BE), BE, rest=_draw_place(rng), form=form)


def _be_somehow(rng: random.Random, form: str) -> tuple[str, str]:
    """The old house is very beautiful."""
    adjective = rng.choice([one for one in ADJECTIVES if one.english != "new"])
    if adjective.kinds & {"person"} and rng.random() < 0.3:
        subject = rng.choice([who for who in SUBJECTS if who.person in (IL, ILS)])
    else:
        kind = frozenset({rng.choice(sorted(adjective.kinds))})
        subject = _draw_noun_phrase(rng, kind, DEFINITE)
        if rng.random() < 0.2:
            subject = both(subject, _draw_noun_phrase(rng, kind, DEFINITE))
    very = ("very ", "très ") if rng.random() < 0.3 else ("", "")
    french = agree(adjective, subject.feminine, subject.plural)
    rest = [(very[0] + adjective.english, very[1] + french)]
    return clause(subject, BE, rest=rest, form=form)


PATTERNS: list[Callable[[random.Random, str], tuple[str, str]]] = [
    _transitive,
    _transitive,
    _transitive,
    _alone,
    _with_preposition,
    _give,
    _be_somewhere,
    _be_somehow,
]


def _draw_subject(rng: random.Random, verb: Verb) -> Phrase:
    """Somebody, or an animal if the verb suits one, or a pronoun."""
    if rng.random() < 0.35:
        return rng.choice(SUBJECTS)
    animals_too = verb is BE or verb.english in ANIMALS_TOO
    living = frozenset({"person", "animal"} if animals_too else {"person"})
    subject = _draw_noun_phrase(rng, living, WITH_A)
    if rng.random() < 0.1:
        return both(subject, _draw_noun_phrase(rng, living, WITH_A))
    return subject


def _draw_object(rng: random.Random, subject: Phrase, verb: Verb, *, negated: bool) -> Phrase:
    """What the verb is done to; a pronoun only if it is somebody else than the subject."""
    if "person" in verb.kinds and rng.random() < 0.2:
        same = {JE: {JE, NOUS}, NOUS: {JE, NOUS}, VOUS: {VOUS}}.get(subject.person, set())
        return rng.choice([pronoun for pronoun in OBJECTS if pronoun.person not in same])
    if verb.english == "love":  # "i love cats" would need another article in French
        return _draw_noun_phrase(rng, verb.kinds, DEFINITE)
    return _draw_noun_phrase(rng, verb.kinds, EVERY, negated=negated)


def _draw_noun_phrase(
    rng: random.Random,
    kinds: frozenset[str],
    determiners: Sequence[str],
    *,
    negated: bool = False,
) -> Phrase:
    noun = rng.choice(_nouns(kinds))
    suited = [word for word in determiners if (word, noun.english) not in AVOIDED]
    if "mass" in noun.kinds:
        determiner = rng.choice([word for word in suited if word != "a"])
        return _choose_rest(rng, noun, determiner, plural=False, negated=negated)
    determiner = rng.choice(suited)
    often = 0.1 if noun.kinds & {"place", "area"} else 0.35
    plural = determiner == "some" or (determiner != "a" and rng.random() < often)
    return _choose_rest(rng, noun, determiner, plural=plural, negated=negated)


def _choose_rest(
    rng: random.Random, noun: Noun, determiner: str, *, plural: bool, negated: bool
) -> Phrase:
    """Everything about a noun phrase that the noun and the kind of determiner leave open."""
    number, owner = "", None
    if plural and rng.random() < 0.25:
        number = rng.choice(list(NUMBERS))
        determiner = "" if determiner == "some" else determiner
    if determiner == "the" and "person" not in noun.kinds and rng.random() < 0.15:
        owner = _draw_owner(rng)
    if determiner == "my":
        determiner = rng.choice(list(POSSESSIVES))
    if determiner == "this" and plural:
        determiner = "these"
    adjectives = _draw_adjectives(rng, noun)
    return noun_phrase(
        determiner, noun, adjectives, plural=plural, number=number, owner=owner, negated=negated
    )


def _draw_owner(rng: random.Random) -> Phrase:
    """One person, such as "my uncle"."""
    noun = rng.choice(_nouns(frozenset({"person"})))
    owned = ("my", noun.english) not in AVOIDED
    return noun_phrase(rng.choice(["the", *POSSESSIVES] if owned else ["the"]), noun)


def _draw_adjectives(rng: random.Random, noun: Noun) -> list[Adjective]:
    """None, one or two; of two, one goes before the noun in French and the other one after."""
    adjectives: list[Adjective] = []
    for table, chance in [(ADJECTIVES_BEFORE, 0.25), (ADJECTIVES_AFTER, 0.2)]:
        suited = [
            adjective
            for adjective in table
            if adjective.kinds & noun.kinds and (adjective.english, noun.english) not in AVOIDED
        ]
        if suited and rng.random() < chance:
            adjectives.append(rng.choice(suited))
    return adjectives


def _draw_place(
    rng: random.Random, prepositions: Sequence[str] = tuple(PLACES)
) -> list[tuple[str, str]]:
    """Where something happens, such as "in the garden"."""
    english = rng.choice(prepositions)
    french, kinds = PLACES[english]
    determiners = DEFINITE if english == "at" else WITH_A  # "à un hôtel" is no good French
    where = _draw_noun_phrase(rng, frozenset(kinds.split()), determiners)
    return [(f"{english} {where.english}", f"{french} {where.french}")]


def _draw_time(rng: random.Random) -> list[tuple[str, str]]:
    """When, sometimes."""
    return [rng.choice(list(TIMES.items()))] if rng.random() < 0.15 else []


def _draw_modal(rng: random.Random) -> Verb | None:
    return rng.choice([WANT, CAN]) if rng.random() < 0.2 else None


@lru_cache
def _nouns(kinds: frozenset[str]) -> list[Noun]:
    return [noun for noun in NOUNS if noun.kinds & kinds]
