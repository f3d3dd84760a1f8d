"""Small stories without end, from a source whose entropy is known exactly.

A story has a hero, who is named at its beginning and decides what is done and seen in it. A noun
decides the form of its verb, also when a relative clause stands between the two ("the cats that see
the dog sleep ."). The next word is drawn from a distribution that depends on a state alone, and the
word decides the next state; so whoever has read from the beginning knows the state, and the best
possible loss is the mean entropy of those distributions.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import SupportsInt, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

State: TypeAlias = tuple[str, ...]  # hero, place in the sentence, number of the subject
Choice: TypeAlias = tuple[float, str, State]  # probability, word, next state

NEW = "<new>"  # begins a story
WOMEN = "anna", "chloé", "emma", "lucy", "mary", "zoé"
MEN = "ben", "hugo", "jack", "paul", "rené", "tom"
NOUNS = "cat", "dog", "bird", "horse", "house", "tree", "boat", "car", "lamp", "book", "song", "hat"
ADJECTIVES = "old", "small", "red", "green", "quiet"
ALONE = "sleep", "run", "wait", "sing", "fall"  # verbs without an object
WITH_OBJECT = "see", "find", "like", "draw", "hide", "paint"
TIMES = "today", "again", "here"


class Stories:
    """The source: its words, its entropy, texts drawn from it, and the best possible losses.

    Attributes:
        words: the vocabulary; a word's id is its place in it.
        entropy: nats for a word, on average, for a reader who has read from the beginning.
    """

    def __init__(self) -> None:
        self._start: State = ("", "story", "")
        self._states = _reached(self._start)
        self._number = {state: i for i, state in enumerate(self._states)}
        named = {word for state in self._states for _, word, _ in _choices(state)}
        self.words = [NEW, *sorted(named - {NEW})]
        self._ids = {word: i for i, word in enumerate(self.words)}
        shape = len(self._states), len(self.words)
        self._chances = torch.zeros(shape, dtype=torch.float64)  # of each word in each state
        self._following = torch.zeros(shape, dtype=torch.int64)  # the state after that word
        for i, state in enumerate(self._states):
            for chance, word, following in _choices(state):
                self._chances[i, self._ids[word]] = chance
                self._following[i, self._ids[word]] = self._number[following]
        self.entropy = float(self.stationary @ self.entropies)

    def __len__(self) -> int:
        """How many different words there are."""
        return len(self.words)

    @cached_property
    def entropies(self) -> Float[Tensor, "S"]:
        """The entropy of the next word in each state, in nats."""
        return torch.special.entr(self._chances).sum(1)

    @cached_property
    def stationary(self) -> Float[Tensor, "S"]:
        """How often each state occurs in a text without end."""
        count = len(self._states)
        step = torch.zeros(count, count, dtype=torch.float64)  # from state to state
        step.scatter_add_(1, self._following, self._chances)
        equations = torch.cat([step.T - torch.eye(count), torch.ones(1, count)])
        right = torch.zeros(count + 1, 1, dtype=torch.float64)
        right[-1] = 1
        return torch.linalg.lstsq(equations.double(), right, driver="gelsd").solution[:, 0]

    @cached_property
    def _steps(self) -> Float[Tensor, "V S S"]:
        """The probability that a word is written in a state and leads to another."""
        states, count = torch.arange(len(self._states))[:, None], len(self.words)
        steps = torch.zeros(count, len(states), len(states), dtype=torch.float64)
        steps[torch.arange(count), states, self._following] = self._chances
        return steps

    @property
    def tables(self) -> tuple[Float[Tensor, "S V"], Int[Tensor, "S V"]]:
        """The probability of each word in each state, and the state that it leads to."""
        return self._chances.clone(), self._following.clone()

    def draw(self, count: int, seed: int) -> Int[Tensor, "count"]:
        """The ids of the first `count` words of a text; it begins with `<new>`."""
        rng, state, ids = random.Random(seed), self._start, [self._ids[NEW]]
        known: dict[State, tuple[list[Choice], list[float]]] = {}
        while len(ids) < count:
            if state not in known:
                choices = list(_choices(state))
                known[state] = choices, list(accumulate(chance for chance, *_ in choices))
            choices, sums = known[state]
            _, word, state = rng.choices(choices, cum_weights=sums)[0]
            ids.append(self._ids[word])
        return torch.tensor(ids[:count])

    def encode(self, text: str) -> Int[Tensor, "n"]:
        """The ids of a text's words.

        Raises:
            ValueError: if a word is not one of the source's.
        """
        strange = [word for word in text.split() if word not in self._ids]
        if strange:
            raise ValueError(f"{strange[0]!r} is no word of the stories")
        return torch.tensor([self._ids[word] for word in text.split()], dtype=torch.int64)

    def decode(self, ids: Iterable[SupportsInt]) -> str:
        """The words with these ids, with blanks between them."""
        return " ".join(self.words[int(i)] for i in ids)

    @cached_property
    def sizes(self) -> Int[Tensor, "V"]:
        """The bytes of each word in UTF-8, with the blank after it."""
        return torch.tensor([len(f"{word} ".encode()) for word in self.words])

    def best_losses(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """Minus the logarithm of each word's probability, given those before it in its row.

        A row may begin anywhere in a text: in front of its first word a reader knows of each state
        only how often it occurs. No model that sees no more than the row has a lower loss on
        average.
        """
        belief = self.stationary.expand(len(ids), -1)
        losses = []
        for words in ids.T:
            reached = torch.empty_like(belief)  # probability of the word and of each state after it
            for word in words.unique():
                reached[words == word] = belief[words == word] @ self._steps[word]
            chance = reached.sum(1)
            losses.append(-chance.log())
            belief = reached / chance[:, None]
        return torch.stack(losses, dim=1)


def _reached(start: State) -> list[State]:
    """All states that a text can come to."""
    found, waiting = [start], [start]
    while waiting:
        for _, _, state in _choices(waiting.pop()):
            if state not in found:
                found.append(state)
                waiting.append(state)
    return found


def _choices(state: State) -> Iterator[Choice]:
    """What can come next in a state; the probabilities add up to 1."""
    hero, place, number = state
    if place == "story":
        for name in (*WOMEN, *MEN):
            yield 1 / 12, name, (name, "verb", "one")
    else:
        yield from _PLACES[place](hero, number)


def _sentence(hero: str, number: str) -> Iterator[Choice]:
    yield 0.35, "she" if hero in WOMEN else "he", (hero, "verb", "one")
    yield 0.2, hero, (hero, "verb", "one")
    yield 0.3, "the", (hero, "subject", "")
    yield 0.15, NEW, ("", "story", "")


def _subject(hero: str, number: str) -> Iterator[Choice]:
    yield from _spread(0.25, ADJECTIVES, (hero, "subject noun", ""))
    for chance, word, (who, _, _) in _subject_noun(hero, number):
        yield 0.75 * chance, word, (who, "after", "many" if word.endswith("s") else "one")


def _subject_noun(hero: str, number: str) -> Iterator[Choice]:
    for share, ending, many in ((0.6, "", "one"), (0.4, "s", "many")):
        yield from _spread(share, [noun + ending for noun in NOUNS], (hero, "after", many))


def _after(hero: str, number: str) -> Iterator[Choice]:
    yield 0.3, "that", (hero, "relative", number)
    for chance, word, state in _verb(hero, number):
        yield 0.7 * chance, word, state


def _relative(hero: str, number: str) -> Iterator[Choice]:
    yield from _spread(1, _forms(WITH_OBJECT, number), (hero, "relative the", number))


def _relative_the(hero: str, number: str) -> Iterator[Choice]:
    yield 1, "the", (hero, "relative noun", number)


def _relative_noun(hero: str, number: str) -> Iterator[Choice]:
    for share, ending in ((0.5, ""), (0.5, "s")):
        yield from _spread(share, [noun + ending for noun in NOUNS], (hero, "verb", number))


def _verb(hero: str, number: str) -> Iterator[Choice]:
    yield from _spread(0.4, _forms(ALONE, number), (hero, "end", ""))
    yield from _spread(0.6, _forms(_turned(WITH_OBJECT, hero), number), (hero, "object", ""))


def _object(hero: str, number: str) -> Iterator[Choice]:
    yield 0.8, "the", (hero, "object noun", "")
    yield 0.2, "her" if hero in WOMEN else "him", (hero, "end", "")


def _object_noun(hero: str, number: str) -> Iterator[Choice]:
    yield from _spread(0.2, ADJECTIVES, (hero, "thing", ""))
    for chance, word, state in _thing(hero, number):
        yield 0.8 * chance, word, state


def _thing(hero: str, number: str) -> Iterator[Choice]:
    yield from _spread(1, _turned(NOUNS, hero), (hero, "end", ""))


def _end(hero: str, number: str) -> Iterator[Choice]:
    yield 0.7, ".", (hero, "sentence", "")
    yield from _spread(0.3, TIMES, (hero, "stop", ""))


def _stop(hero: str, number: str) -> Iterator[Choice]:
    yield 1, ".", (hero, "sentence", "")


_PLACES = {
    "sentence": _sentence,
    "subject": _subject,
    "subject noun": _subject_noun,
    "after": _after,
    "relative": _relative,
    "relative the": _relative_the,
    "relative noun": _relative_noun,
    "verb": _verb,
    "object": _object,
    "object noun": _object_noun,
    "thing": _thing,
    "end": _end,
    "stop": _stop,
}


def _spread(share: float, words: Sequence[str], state: State) -> Iterator[Choice]:
    """This probability over words, each half as likely as the one before."""
    whole = sum(0.5**rank for rank in range(len(words)))
    for rank, word in enumerate(words):
        yield share * 0.5**rank / whole, word, state


def _turned(words: Sequence[str], hero: str) -> list[str]:
    """The words in an order of the hero's own: what is likely differs from story to story."""
    first = (*WOMEN, *MEN).index(hero) % len(words)
    return [*words[first:], *words[:first]]


def _forms(verbs: Sequence[str], number: str) -> list[str]:
    return [verb + "s" for verb in verbs] if number == "one" else list(verbs)
