"""Small runs with a student's own parts, for the eyes: seconds long, and seen only in a notebook.

`Reader` is the model of chapter 4, one attention layer that reads who did what to whom.
`learning_curve` is chapter 5's, a deep stack that learns a small task, or does not.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lab.batching import pad_ids
from lab.grammar import clause, noun_phrase
from lab.text import Tokenizer
from lab.words import ADJECTIVES, NOUNS, VERBS

ROLES = ("who", "did what", "to whom")
HELD_OUT = 300


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread: for small matrices several are slower, on a busy machine by far."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def role_sentences(count: int, seed: int = 0) -> dict[str, tuple[int, int, int]]:
    """English sentences, and at which token each of the three roles stands; `<bos>` is token 0."""
    rng = random.Random(seed)
    persons = [noun for noun in NOUNS if "person" in noun.kinds]
    deeds = [verb for verb in VERBS if "person" in verb.kinds and " " not in verb.english]
    traits = [adjective for adjective in ADJECTIVES if "person" in adjective.kinds]
    found: dict[str, tuple[int, int, int]] = {}
    while len(found) < count:
        subject, other = (
            noun_phrase(rng.choice(["the", "this"]), one, rng.sample(traits, rng.choice([0, 1, 2])))
            for one in rng.sample(persons, 2)
        )
        english, _ = clause(subject, rng.choice(deeds), other, [])
        who = len(subject.english.split())
        found[f"{english} ."] = (who, who + 1, who + 1 + len(other.english.split()))
    return found


class Reader(nn.Module):
    """One attention layer in which `<bos>` asks: who, did what, to whom?

    Args:
        attention: a multi-head attention that has `w_q`, and gives output and weights.
        count: how many sentences to learn from, those held out included.
    """

    def __init__(self, attention: Any, count: int = 1500) -> None:
        super().__init__()
        sentences = role_sentences(count)
        self.tokenizer = Tokenizer.train(sentences)
        self.ids, _ = pad_ids([self.tokenizer.encode(s) for s in sentences], self.tokenizer.pad_id)
        self.answers = self.ids.gather(1, torch.tensor(list(sentences.values())))
        self.attention, width = attention, attention.w_q.in_features
        self.embedding = nn.Embedding(len(self.tokenizer), width)
        self.position = nn.Parameter(torch.randn(self.ids.shape[1], width))
        self.answer = nn.Linear(width, 3 * len(self.tokenizer))

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, 3, V) for the three roles, and the weights (B, H, N) of every head."""
        x = self.embedding(ids) + self.position[: ids.shape[1]]
        shown = (ids != self.tokenizer.pad_id)[:, None]
        output, weights = self.attention(x[:, :1], x, x, shown)
        return self.answer(output[:, 0]).unflatten(-1, (3, -1)), weights[:, :, 0]

    @one_thread()
    def learn(self, steps: int = 400) -> None:
        """Train on all sentences but those held out: some seconds."""
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        for _ in range(steps):
            batch = torch.randint(HELD_OUT, len(self.ids), (64,))
            logits, _ = self(self.ids[batch])
            loss = cross_entropy(logits.flatten(0, 1), self.answers[batch].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    @torch.no_grad()
    def right(self, off: int | None = None) -> list[float]:
        """The share of right answers on held-out sentences by role, with one head switched off."""
        w_o = self.attention.w_o.weight
        kept = w_o.clone()
        if off is not None:
            width = w_o.shape[1] // self.attention.num_heads
            w_o[:, off * width : (off + 1) * width] = 0.0
        logits, _ = self(self.ids[:HELD_OUT])
        w_o.copy_(kept)
        hits = (logits.argmax(-1) == self.answers[:HELD_OUT]).double().mean(0)
        return [round(share, 2) for share in hits.tolist()]

    @torch.no_grad()
    def looks(self, sentence: str) -> tuple[list[str], Tensor]:
        """The tokens of a sentence, and what weight (H, N) each head puts on each of them."""
        ids = self.tokenizer.encode(sentence)
        _, weights = self(torch.tensor([ids]))
        return ["<bos>", *sentence.split(), "<eos>"], weights[0]


@one_thread()
def learning_curve(
    stack: Callable[[Tensor, nn.ModuleList], Tensor],
    parts: nn.ModuleList,
    steps: int = 150,
    width: int = 32,
    back: int = 2,
    length: int = 12,
) -> list[float]:
    """Losses of a stack that learns which digit stood so many places before each digit.

    Args:
        stack: takes tokens (B, N, width) and `parts`, gives tokens of the same shape.
        parts: the modules of the stack, whose numbers learn.
        steps: updates of 32 sentences each.
        width: of the tokens.
        back: how many places; the first digits of a sentence have nothing to answer.
        length: digits of a sentence.
    """
    embedding, place = nn.Embedding(10, width), nn.Embedding(length, width)
    last = nn.Linear(width, 10)
    learned = nn.ModuleList([embedding, place, last, parts])
    optimizer = torch.optim.Adam(learned.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        digits = torch.randint(10, (32, length))
        logits = last(stack(embedding(digits) + place.weight, parts))[:, back:]
        loss = cross_entropy(logits.flatten(0, 1), digits[:, : length - back].flatten())
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


@one_thread()
def reversing_map(decoder: Any, steps: int = 250, width: int = 32) -> tuple[float, Tensor]:
    """Let a decoder learn to write six digits backwards; the share it gets right, and its map.

    Args:
        decoder: called as decoder(x, memory, target_mask, memory_mask); the first of its `layers`
            has a `cross_attention` that gives output and weights.
        steps: updates of 64 sentences each.
        width: of the tokens.

    Returns:
        The share of right digits in the last update, and the weights (H, 6, 6) of the first
        layer's cross-attention for the digits 0 to 5.
    """
    source_table, target_table = nn.Embedding(10, width), nn.Embedding(11, width)  # 10: <bos>
    place, last = nn.Embedding(6, width), nn.Linear(width, 10)
    learned = nn.ModuleList([source_table, target_table, place, last, decoder])
    optimizer = torch.optim.Adam(learned.parameters(), lr=3e-3)
    seen = torch.ones(6, 6, dtype=torch.bool).tril()
    maps: list[Tensor] = []
    hook = decoder.layers[0].cross_attention.register_forward_hook(
        lambda _module, _given, found: maps.append(found[1].detach())
    )

    def logits(digits: Tensor) -> Tensor:
        written = nn.functional.pad(digits.flip(1)[:, :-1], (1, 0), value=10)
        memory = source_table(digits) + place.weight
        return last(decoder(target_table(written) + place.weight, memory, seen, None))

    right = 0.0
    for _ in range(steps):
        digits = torch.randint(10, (64, 6))
        found = logits(digits)
        right = (found.argmax(-1) == digits.flip(1)).double().mean().item()
        loss = cross_entropy(found.flatten(0, 1), digits.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    logits(torch.arange(6)[None])
    hook.remove()
    return right, maps[-1][0]
