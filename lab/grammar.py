"""From chosen words to phrases and clauses in English and French.

French grows in a plain form first ("de le ami ne a pas de eau"); `elide` then joins what French
joins ("de l' ami n' a pas d' eau").
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lab.words import (
    ASPIRATED,
    BE,
    CAN,
    CONTRACTED,
    DETERMINERS,
    ELIDED,
    IL,
    ILS,
    IRREGULAR,
    JE,
    NOUS,
    NUMBERS,
    VOUS,
    VOWELS,
    Adjective,
    Noun,
    Verb,
)


@dataclass(frozen=True)
class Phrase:
    """A noun phrase or pronoun in both languages, with what other words must agree with."""

    english: str
    french: str  # in the plain form, before `elide`
    person: int = IL
    feminine: bool = False
    pronoun: bool = False  # French puts it before the verb when it is an object

    @property
    def plural(self) -> bool:
        """Whether the phrase stands for more than one."""
        return self.person in (NOUS, ILS)


SUBJECTS = [
    Phrase("i", "je", JE),
    Phrase("you", "vous", VOUS),
    Phrase("he", "il", IL),
    Phrase("she", "elle", IL, feminine=True),
    Phrase("we", "nous", NOUS),
    Phrase("they", "ils", ILS),
]
OBJECTS = [
    Phrase("me", "me", JE, pronoun=True),
    Phrase("you", "vous", VOUS, pronoun=True),
    Phrase("him", "le", IL, pronoun=True),
    Phrase("her", "la", IL, feminine=True, pronoun=True),
    Phrase("us", "nous", NOUS, pronoun=True),
    Phrase("them", "les", ILS, pronoun=True),
]


def noun_phrase(
    determiner: str,
    noun: Noun,
    adjectives: Sequence[Adjective] = (),
    *,
    plural: bool = False,
    number: str = "",
    owner: Phrase | None = None,
    negated: bool = False,
) -> Phrase:
    """Build a noun phrase, such as "my two small red cats" or "the doctor 's house".

    Args:
        determiner: a key of DETERMINERS; replaced by the owner, where there is one.
        noun: its head.
        adjectives: in English order, at most one of them `before` the noun in French.
        plural: more than one.
        number: a key of NUMBERS, for a plural.
        owner: whose it is.
        negated: object of a negated verb, where French says "pas de" for un, une, des, du.
    """
    indefinite = determiner in ("a", "some") and owner is None
    masculine, feminine, several = DETERMINERS["the" if owner else determiner]
    article = several if plural else feminine if noun.feminine else masculine
    before = [adjective for adjective in adjectives if adjective.before]
    after = [adjective for adjective in adjectives if not adjective.before]
    # "de petits chats": des becomes de in front of an adjective.
    if indefinite and (negated or (plural and before)):
        article = "de"
    french_noun = noun.french_plural if plural else noun.french
    french = [article, NUMBERS.get(number, "")]
    french += [
        agree(adjective, noun.feminine, plural, next_word=french_noun) for adjective in before
    ]
    french += [french_noun]
    french += [agree(adjective, noun.feminine, plural) for adjective in after]
    if owner:
        french += ["de", owner.french]

    english = [number, *[adjective.english for adjective in adjectives]]
    english += [noun.english_plural if plural else noun.english]
    if owner:
        english = [owner.english, "'s", *english]
    else:
        english = [_english_determiner(determiner, english, negated), *english]
    return Phrase(_join(english), _join(french), ILS if plural else IL, noun.feminine)


def both(first: Phrase, second: Phrase) -> Phrase:
    """Two phrases joined by "and"; masculine as soon as one of them is."""
    english, french = f"{first.english} and {second.english}", f"{first.french} et {second.french}"
    return Phrase(english, french, ILS, first.feminine and second.feminine)


def clause(
    subject: Phrase,
    verb: Verb,
    what: Phrase | None = None,
    rest: Sequence[tuple[str, str]] = (),
    *,
    modal: Verb | None = None,
    form: str = "statement",
) -> tuple[str, str]:
    """Build a clause in both languages, without its full stop and before `elide`.

    Args:
        subject: who; the verb agrees with it.
        verb: in the present tense.
        what: the object, if the verb takes one.
        rest: further phrases (English, French), such as a place.
        modal: WANT or CAN, which puts the verb into the infinitive.
        form: "statement", "negation" or "question".
    """
    english_link, french_link = verb.preposition
    english_object = [english_link, what.english] if what else []
    french_object = [french_link, what.french] if what else []
    clitic = []
    if what and what.pronoun:  # je le vois
        clitic, french_object = french_object, []
    finite = conjugate((modal or verb).french, subject.person)
    negation = ("ne", "pas") if form == "negation" else ("", "")
    if modal:  # je ne veux pas le voir
        group = [negation[0], finite, negation[1], *clitic, verb.french]
    else:
        group = [negation[0], *clitic, finite, negation[1]]
    question = ["est-ce que"] if form == "question" else []
    english = [*_english_verb(subject, verb, modal, form), *english_object, *[en for en, _ in rest]]
    french = [*question, subject.french, *group, *french_object, *[fr for _, fr in rest]]
    return _join(english), _join(french)


def agree(adjective: Adjective, feminine: bool, plural: bool, next_word: str = "") -> str:
    """The French form of an adjective; `next_word` is the noun, if the adjective precedes it."""
    if feminine:
        return adjective.feminine_plural if plural else adjective.feminine
    if plural:
        return adjective.masculine_plural
    if adjective.before_vowel and next_word and begins_with_vowel(next_word):
        return adjective.before_vowel
    return adjective.masculine


def conjugate(infinitive: str, person: int) -> str:
    """The present tense of a French verb for one of JE, VOUS, IL, NOUS, ILS."""
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive].split()[person]
    stem = infinitive.removesuffix("er")
    if person == NOUS and stem.endswith("g"):  # nous mangeons
        stem += "e"
    return stem + ["e", "ez", "e", "ons", "ent"][person]


def elide(french: str) -> str:
    """Join what French joins: "de le ami" becomes "de l' ami", "à le roi" becomes "au roi"."""
    words = french.split()
    for index, following in enumerate(words[1:]):
        if begins_with_vowel(following):
            words[index] = ELIDED.get(words[index], words[index])
    joined: list[str] = []
    for word in words:
        if joined and (joined[-1], word) in CONTRACTED:
            joined[-1] = CONTRACTED[joined[-1], word]
        else:
            joined.append(word)
    return " ".join(joined)


def begins_with_vowel(word: str) -> bool:
    """Whether a French word begins with a vowel as it is spoken: "homme" does, "hibou" does not."""
    return word[0] in VOWELS or (word[0] == "h" and word not in ASPIRATED)


def _english_determiner(determiner: str, words: Sequence[str], negated: bool) -> str:
    following = next(word for word in words if word)
    if determiner == "a":
        return "an" if following[0] in "aeiou" or following == "honest" else "a"
    if determiner == "some" and negated:
        return "any"
    return determiner


def _english_verb(subject: Phrase, verb: Verb, modal: Verb | None, form: str) -> list[str]:
    """Subject and verb in English, with do, be or can where a negation or question needs it."""
    who, main = subject.english, modal or verb
    infinitive = [verb.english] if modal else []
    third = subject.person == IL
    if main is BE:
        finite = helper = {JE: "am", IL: "is"}.get(subject.person, "are")
        bare = []
    elif main is CAN:
        finite = helper = "can"
        bare = []
    else:
        finite = _third_person(main.english) if third else main.english
        helper = "does" if third else "do"
        bare = [main.english]
    if form == "question":
        return [helper, who, *bare, *infinitive]
    if form == "negation":
        not_ = "cannot" if main is CAN else f"{helper} not"
        return [who, not_, *bare, *infinitive]
    return [who, finite, *infinitive]


def _third_person(verb: str) -> str:
    """The English form for he or she: "look at" becomes "looks at"."""
    first, *others = verb.split()
    if first == "have":
        first = "has"
    elif first.endswith(("o", "ch", "sh", "s", "x")):
        first += "es"
    elif first.endswith("y") and first[-2] not in "aeiou":
        first = first[:-1] + "ies"
    else:
        first += "s"
    return " ".join([first, *others])


def _join(words: Sequence[str]) -> str:
    return " ".join(word for word in words if word)
