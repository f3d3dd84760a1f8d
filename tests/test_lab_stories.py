"""The source of stories: its entropy is exact, its texts keep its rules, nobody reads better."""

import math
from collections import Counter

import pytest
import torch

from lab.stories import MEN, NEW, NOUNS, WOMEN, Stories

SOURCE = Stories()
CHANCES, FOLLOWING = SOURCE.tables


def test_probabilities_add_up_and_states_stay_as_frequent_as_they_are():
    assert torch.allclose(CHANCES.sum(1), torch.ones(len(CHANCES), dtype=torch.float64))
    step = torch.zeros(len(CHANCES), len(CHANCES), dtype=torch.float64)
    step.scatter_add_(1, FOLLOWING, CHANCES)
    assert torch.allclose(SOURCE.stationary @ step, SOURCE.stationary, atol=1e-12)
    assert math.isclose(float(SOURCE.stationary.sum()), 1.0, abs_tol=1e-9)
    assert float(SOURCE.stationary.min()) > 0


def test_the_entropy_is_that_of_states_weighed_by_how_often_they_occur():
    by_hand = 0.0
    for share, row in zip(SOURCE.stationary.tolist(), CHANCES.tolist(), strict=True):
        by_hand -= share * sum(p * math.log(p) for p in row if p)
    assert math.isclose(SOURCE.entropy, by_hand, rel_tol=1e-12)


def test_a_long_text_costs_the_entropy_a_word():
    ids = SOURCE.draw(60_000, seed=3)
    losses = SOURCE.best_losses(ids[None])[0]
    tolerance = 4 * float(losses.std()) / len(ids) ** 0.5
    assert abs(float(losses.mean()) - SOURCE.entropy) < tolerance


def test_the_same_seed_gives_the_same_text_and_longer_texts_begin_alike():
    assert torch.equal(SOURCE.draw(50, seed=1), SOURCE.draw(200, seed=1)[:50])
    assert not torch.equal(SOURCE.draw(50, seed=1), SOURCE.draw(50, seed=2))
    assert len(SOURCE.draw(0, seed=1)) == 0
    assert SOURCE.decode(SOURCE.draw(1, seed=5).tolist()) == NEW


def test_texts_keep_the_rules_of_the_stories():
    text = SOURCE.decode(SOURCE.draw(20_000, seed=4).tolist())
    for story in text.split(NEW)[1:-1]:
        hero, *words = story.split()
        assert hero in (*WOMEN, *MEN)
        others = {*WOMEN, *MEN, "she", "he", "her", "him"} - {hero}
        allowed = {"she", "her"} if hero in WOMEN else {"he", "him"}
        assert not (others - allowed) & set(words)
        for sentence in " ".join([hero, *words]).split(" . "):
            agrees(sentence.removesuffix(" .").split())


def agrees(words: list[str]) -> None:
    """The main verb has the subject's number, whatever stands between them."""
    nouns = {*NOUNS, *(noun + "s" for noun in NOUNS)}
    place = next((i for i, word in enumerate(words) if word in nouns), 0)
    if words[0] != "the":
        assert words[1].endswith("s")
        return
    many = words[place].endswith("s")
    after = words[place + 1 :]
    verbs = [after[1], after[4]] if after[0] == "that" else [after[0]]
    for verb in verbs:
        assert verb.endswith("s") is not many, words


def test_losses_are_those_of_the_texts_probability():
    ids = SOURCE.encode("<new> anna sleeps . she sees the cat .")
    losses = SOURCE.best_losses(ids[None])[0]
    assert math.isclose(float(losses[1]), math.log(12), rel_tol=1e-9), (
        "twelve heroes, equally likely"
    )
    assert math.isclose(float(losses[4]), -math.log(0.35), rel_tol=1e-9)
    assert math.isclose(float(losses[3]), -math.log(0.7), rel_tol=1e-9)


def test_who_begins_in_the_middle_knows_less():
    windows = SOURCE.draw(48_001, seed=6)[:48_000].view(-1, 24)
    losses = SOURCE.best_losses(windows).mean(0)
    assert losses[0] > losses[4] > losses[20] > SOURCE.entropy - 0.1
    first = Counter(windows[:, 0].tolist())
    unigram = -sum(n / len(windows) * math.log(n / len(windows)) for n in first.values())
    assert abs(float(losses[0]) - unigram) < 0.2


def test_words_become_ids_and_words_again():
    text = "zoé hides the boats ."
    assert SOURCE.decode(SOURCE.encode(text).tolist()) == text
    sizes = SOURCE.sizes[SOURCE.encode(text)]
    assert int(sizes.sum()) == len(f"{text} ".encode()) == len(text) + 2
    with pytest.raises(ValueError, match="'whale' is no word"):
        SOURCE.encode("the whale sleeps .")
