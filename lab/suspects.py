"""Small Transformers under suspicion: a right one with a seam at each part, and its training.

A wrong one is made by replacing one method or one module of it; students get this file, so no wrong
one is in it. The task is to write some words backwards: whoever cannot tell places apart, or does
not read all of the source, cannot do it.
"""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.blocks import Decoder, DecoderLayer, Encoder, EncoderLayer, LayerNorm, causal_mask
from lab.check import expect_no_error
from lab.small_runs import greedy
from lab.translator import sinusoids

LONGEST = 12  # tokens of a source or target, at most
BATCH = 64  # sentences of a step
WORDS = 3, 4, 5  # how many a sentence of the training has
GRAIN = 1e-6  # what two computations of the same may differ by, about


class Suspect(nn.Module):
    """A Transformer in which each part can be replaced.

    Args:
        seed: of its first numbers.
        width: of its vectors.
        heads: of every attention.
        depth: layers of the encoder, and of the decoder.
        dropout: probability of dropping an entry.
        norm_first: normalise before each sub-layer, and once more at the end.
        vocab: number of ids.
        pad: id of padding; bos and eos are ids as well, all others are words.
        bos: id that a target begins with.
        eos: id that a target ends with.
    """

    table: Tensor

    def __init__(
        self,
        seed: int = 0,
        *,
        width: int = 16,
        heads: int = 2,
        depth: int = 2,
        dropout: float = 0.1,
        norm_first: bool = False,
        vocab: int = 13,
        pad: int = 2,
        bos: int = 0,
        eos: int = 1,
    ) -> None:
        super().__init__()
        self.vocab, self.pad, self.bos, self.eos = vocab, pad, bos, eos
        with torch.random.fork_rng(devices=[]):
            # torch.manual_seed would first write down where it was called from, for CUDA
            torch.default_generator.manual_seed(seed)
            sizes = width, heads, 2 * width, dropout, norm_first
            norms = [LayerNorm(width) if norm_first else None for _ in range(2)]
            self.source_table, self.target_table = (nn.Embedding(vocab, width) for _ in range(2))
            self.encoder = Encoder(lambda: EncoderLayer(*sizes), depth, norms[0])
            self.decoder = Decoder(lambda: DecoderLayer(*sizes), depth, norms[1])
            self.output = nn.Linear(width, vocab)
        self.register_buffer("table", sinusoids(LONGEST + 1, width), persistent=False)

    @property
    def words(self) -> list[int]:
        """The ids of words."""
        return [i for i in range(self.vocab) if i not in (self.pad, self.bos, self.eos)]

    # Seams: one for each thing that may go wrong --------------------------------------------------

    def placed(self, vectors: Tensor, offset: int = 0) -> Tensor:
        """Vectors of tokens with their positions."""
        return vectors + self.table[offset:][: vectors.shape[1]]

    def real(self, ids: Tensor) -> Tensor:
        """Which source tokens the encoder may attend to, (B, 1, M)."""
        return (ids != self.pad).unsqueeze(1)

    def seen(self, target: Tensor) -> Tensor:
        """Which target tokens the decoder may attend to, (N, N)."""
        return causal_mask(target.shape[1])

    def read(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """What the decoder gets of a source: vectors, and which of them it may attend to."""
        real = self.real(source)
        return self.encoder(self.placed(self.source_table(source)), real), real

    def written(self, target: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        """The decoder's logits."""
        x = self.placed(self.target_table(target))
        return self.output(self.decoder(x, memory, self.seen(target), real))

    def judged(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of logits beside labels."""
        return F.cross_entropy(logits.mT, labels, ignore_index=self.pad)

    def first_row(self, step: int) -> int:
        """The position of a token that is written alone."""
        return step

    def new_memory(self) -> list[Tensor | None]:
        """What the layers of the decoder remember before the first step."""
        return [None] * len(self.decoder.layers)

    # What others call -----------------------------------------------------------------------------

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores of all ids after each target token, (B, N, vocab)."""
        return self.written(target, *self.read(source))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """The same."""
        return self.logits(source, target)

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """The loss of whole targets, bos and eos included."""
        return self.judged(self.logits(source, target[:, :-1]), target[:, 1:])

    def steps(self, source: Tensor, target: Tensor) -> Tensor:
        """The logits again, the target's tokens handed in one by one."""
        (memory, real), kept, rows = self.read(source), self.new_memory(), []
        for i in range(target.shape[1]):
            x = self.placed(self.target_table(target[:, [i]]), self.first_row(i))
            seen = self.seen(target[:, : i + 1])
            for j, layer in enumerate(self.decoder.layers):
                old = kept[j]  # what the layer was given in the steps before
                given = x if old is None else torch.cat([old, x], dim=1)
                kept[j] = given
                n = given.shape[1]
                x = layer(given, memory, seen[-n:, -n:] if len(seen) >= n else None, real)[:, -1:]
            rows.append(self.output(self.decoder.norm(x) if self.decoder.norm else x))
        return torch.cat(rows, dim=1)


class BlackBox:
    """A model of which only the answers can be seen.

    No number is the same to the last digit when it is computed in another order, on another
    machine, or in other company. Here that always shows: each answer has a grain of `GRAIN`.

    Attributes:
        vocab: number of ids.
        words: the ids of words, at least eight.
        pad: id of padding.
        bos: id that a target begins with.
        eos: id that a target ends with.
    """

    def __init__(self, suspect: Suspect) -> None:
        self.vocab, self.words = suspect.vocab, suspect.words
        self.pad, self.bos, self.eos = suspect.pad, suspect.bos, suspect.eos
        suspect.train()
        # in a function: through what an object itself holds the grader looks at each call
        self._suspect = lambda: suspect
        self._generator = torch.Generator().manual_seed(0)

    def train(self) -> None:
        """Behave as in training."""
        self._suspect().train()

    def eval(self) -> None:
        """Behave as in evaluation."""
        self._suspect().eval()

    @torch.no_grad()
    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores of all ids after each target token, (B, N, vocab)."""
        return self._grained(self._suspect().logits(source, target))

    @torch.no_grad()
    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """The loss of whole targets, bos and eos included."""
        return self._grained(self._suspect().loss(source, target))

    @torch.no_grad()
    def steps(self, source: Tensor, target: Tensor) -> Tensor:
        """The logits again, computed with a cache, the target's tokens handed in one by one."""
        return self._grained(self._suspect().steps(source, target))

    def _grained(self, numbers: Tensor) -> Tensor:
        return numbers + GRAIN * torch.randn(numbers.shape, generator=self._generator)


def backwards(suspect: Suspect, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Sentences of words, and the same backwards, with bos and eos; padded."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.tensor(suspect.words)
    longest = max(WORDS)
    lengths = torch.randint(min(WORDS), longest + 1, (rows, 1), generator=generator)
    source = words[torch.randint(len(words), (rows, longest), generator=generator)]
    places = torch.arange(longest + 1)
    back = source.gather(1, (lengths - 1 - places[:-1]).clamp(min=0))
    ended = torch.where(places < lengths, F.pad(back, (0, 1)), suspect.pad)
    ended = ended.masked_fill(places == lengths, suspect.eos)
    target = F.pad(ended, (1, 0), value=suspect.bos)
    return source.masked_fill(places[:-1] >= lengths, suspect.pad), target


def learn(suspect: Suspect, steps: int = 300, seed: int = 0, rate: float = 3e-3) -> list[float]:
    """Train on sentences backwards; the loss before each step."""
    optimizer = torch.optim.Adam(suspect.train().parameters(), rate, betas=(0.9, 0.98))
    curve = torch.zeros(steps)
    for step in range(steps):
        optimizer.zero_grad()
        loss = suspect.loss(*backwards(suspect, BATCH, seed=10_000 * seed + step))
        curve[step] = loss.detach()
        loss.backward()
        optimizer.step()
    return curve.tolist()


def share_right(suspect: Suspect, rows: int = 200, seed: int = 77) -> float:
    """The share of new sentences that it writes backwards without a mistake, alone."""
    source, target = backwards(suspect, rows, seed=1_000_000 + seed)
    said = greedy(suspect, source, suspect.bos, suspect.eos, max(WORDS) + 1)
    pairs = zip(said, target.tolist(), strict=True)
    right = sum(row == [i for i in ids if i in suspect.words] for row, ids in pairs)
    return right / rows


Check = Callable[[BlackBox], None]


def accusation(check: Check, model: BlackBox) -> str:
    """What a check says of a model: the text of its AssertionError, or "" if it has none."""
    try:
        check(model)
    except AssertionError as error:
        return str(error) or "(no word)"
    return ""


def assert_judges(check: Check, *cases: tuple[BlackBox, str, str]) -> None:
    """Fail unless a check says of each model what it should; all are asked before one is judged.

    Args:
        check: raises an AssertionError that begins with a part's name, or returns.
        cases: models; each with the part that should be accused, or "", and with the claim.
    """
    __tracebackhide__ = True
    heard = []
    for model, _, claim in cases:
        with expect_no_error(claim):
            heard.append(accusation(check, model))
    for said, (_, part, claim) in zip(heard, cases, strict=True):
        if part and not said.startswith(part):
            instead = f"says {said[:60]!r}" if said else "lets it pass"
            raise AssertionError(f"{claim}\nYours {instead}; it should begin with {part!r}.")
        if said and not part:
            raise AssertionError(f"{claim}\nYours says {said[:60]!r}.")


def interrogate(
    checks: Mapping[str, Check], models: Mapping[str, BlackBox]
) -> dict[str, list[str]]:
    """For each model what each check says of it, "?" for a check that is not written yet."""
    said: dict[str, list[str]] = {}
    for name, model in models.items():
        said[name] = []
        for check in checks.values():
            try:
                said[name].append(accusation(check, model))
            except NotImplementedError:
                said[name].append("?")
    return said
