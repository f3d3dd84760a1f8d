"""What the grammar's French shows is found in every sentence, and judged one by one."""

import pytest

from lab.corpus import sentence_pairs
from lab.phenomena import (
    AFTER,
    AGREEMENT,
    BEFORE,
    CLITIC,
    ELISION,
    LONG,
    NEGATION,
    PHENOMENA,
    shares_right,
    spans,
    telling_pairs,
)

PAIRS = sentence_pairs(2000)


def shown(french: str) -> dict[str, list[str]]:
    """The phenomena of a sentence with the words that show each."""
    words = french.split()
    return {
        name: [" ".join(words[i] for i in place) for place in places]
        for name, places in spans(french).items()
    }


@pytest.mark.parametrize(
    ("french", "expected"),
    [
        ("le chat dort .", {}),
        ("la petite maison est calme .", {AGREEMENT: ["petite"], BEFORE: ["petite maison"]}),
        ("il voit un chat noir .", {AFTER: ["chat noir"]}),
        ("l' ami n' est pas ici .", {ELISION: ["l' ami", "n' est"], NEGATION: ["n'", "pas"]}),
        ("je ne les vois pas .", {NEGATION: ["ne", "pas"], CLITIC: ["les vois"]}),
        ("nous voulons le lire .", {CLITIC: ["le lire"]}),
        ("nous voyons le lit .", {}),
        ("il la porte .", {CLITIC: ["la porte"]}),
        ("il ouvre la porte .", {}),
        ("vous nous voyez .", {CLITIC: ["nous voyez"]}),
    ],
)
def test_each_phenomenon_is_found_with_its_words(french, expected):
    assert shown(french) == expected


def test_a_sentence_of_twelve_words_is_long():
    words = "le roi donne un livre à la reine dans le jardin ."
    assert len(words.split()) == 12
    assert LONG in spans(words)
    assert LONG not in spans(words.replace("livre ", "", 1))


def test_french_puts_a_pronoun_before_the_verb_where_english_has_one_as_an_object():
    plain = [pair for pair in PAIRS if not {"her", "you"} & set(pair[0].split())]
    assert len(plain) > 1000
    for english, french in plain:
        pronoun = bool({"me", "him", "us", "them"} & set(english.split()))
        assert (CLITIC in spans(french)) == pronoun, (english, french)


def test_french_negates_where_english_does():
    for english, french in PAIRS:
        negated = bool({"not", "cannot"} & set(english.split()))
        assert (NEGATION in spans(french)) == negated, (english, french)


def test_the_right_translation_is_right_in_all_respects():
    shares = shares_right((french, french) for _, french in PAIRS)
    assert tuple(shares) == PHENOMENA
    assert all(right == there > 0 for right, there in shares.values())


@pytest.mark.parametrize(
    ("french", "said", "wrong"),
    [
        ("la maison blanche .", "la maison blanc .", {AGREEMENT}),
        ("la maison blanche .", "la blanche maison .", {AFTER}),
        ("la maison blanche .", "la blanche blanche maison blanche .", set()),
        ("les petits chats .", "les chats petits .", {BEFORE}),
        ("les petits chats .", "les petit chats .", {AGREEMENT}),
        ("les petits chats .", "des petits chats noirs ici .", set()),
        ("il ne dort pas .", "il dort pas .", {NEGATION}),
        ("il ne dort pas .", "elle ne mange pas .", set()),
        ("je le vois .", "je vois le .", {CLITIC}),
        ("l' ami .", "le ami .", {ELISION}),
        ("l' ami .", "", {ELISION}),
        ("l' ami voit l' ami .", "l' ami dort .", {ELISION}),
    ],
)
def test_a_wrong_translation_is_wrong_in_what_it_gets_wrong(french, said, wrong):
    shares = shares_right([(french, said)])
    assert {name for name, (right, there) in shares.items() if right < there} == wrong


def test_the_sentences_to_watch_show_most():
    chosen = telling_pairs(PAIRS)
    assert len(chosen) == len(set(chosen)) == 4
    assert set(chosen) <= set(PAIRS)
    assert set().union(*(spans(french) for _, french in chosen)) == set(PHENOMENA)
    assert telling_pairs([]) == []
    assert telling_pairs(PAIRS[:1]) in ([], PAIRS[:1])
