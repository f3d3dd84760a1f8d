"""Greedy and beam search: with a cache as without, alone as in company, against plain loops."""

import itertools
import math
import types
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lab.assembled import load_module
from lab.text import Tokenizer
from trainer import stepping
from trainer.decoding import beam, greedy, top, translate
from trainer.fused.adoption import adopt
from trainer.stepping import Way, way

MODULE = Path(__file__).parents[1] / "solutions" / "transformer.py"
PAD, BOS, EOS = 0, 2, 3
LIMIT = 12
SEEDS = (0, 2, 8, 11)  # of models that end sentences after different numbers of tokens


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def module() -> types.ModuleType:
    return load_module(MODULE)


def make(module: types.ModuleType, seed: int = 0, vocab: int = 40, norm_first: bool = True) -> Any:
    """A random model with a liking for <eos>."""
    torch.manual_seed(seed)
    table = module.sinusoidal_encoding(20, 16)
    model = module.Transformer(
        vocab,
        vocab,
        table,
        d_model=16,
        num_layers=2,
        num_heads=2,
        d_ff=24,
        dropout=0.1,
        pad_id=PAD,
        norm_first=norm_first,
        tied=False,
    )
    module.initialise(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
        model.generator.weight[EOS] *= 2.5
    return model


def draw(*lengths: int, vocab: int = 40, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, vocab, (len(lengths), max(lengths)), generator=generator)
    return ids.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)


SOURCE = draw(9, 5, 7, 1, 9, 3, 8, 2)


def forced(model: Any, found: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(stepping._ways, model, found)


WAYS = [Way(True, True, ""), Way(True, False, ""), Way(False, False, "")]


@pytest.mark.parametrize("seed", SEEDS)
def test_greedy_writes_what_the_module_writes_by_every_way(module, seed, monkeypatch):
    model = make(module, seed, norm_first=seed % 2 == 0)
    expected = module.greedy_decode(model, SOURCE, BOS, EOS, LIMIT)
    assert len({len(row) for row in expected}) > 1, "the sentences should end at different times"
    assert not any(PAD in row for row in expected)
    assert greedy(module, model, SOURCE, BOS, EOS, LIMIT, cache=False) == expected
    for found in WAYS:
        forced(model, found, monkeypatch)
        assert greedy(module, model, SOURCE, BOS, EOS, LIMIT) == expected
        assert beam(module, model, SOURCE, BOS, EOS, LIMIT, beam_size=1) == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_beam_is_the_plain_search_by_every_way(module, seed, length_penalty, monkeypatch):
    model = make(module, seed, norm_first=seed % 2 == 0)
    expected = [plain_beam(model, row[row != PAD], 4, length_penalty) for row in SOURCE]
    for found in WAYS:
        forced(model, found, monkeypatch)
        assert beam(module, model, SOURCE, BOS, EOS, LIMIT, 4, length_penalty) == expected


def plain_beam(model: Any, source: Tensor, size: int, length_penalty: float) -> list[int]:
    """One sentence, all hypotheses in a list, no cache; ends by the same rules."""
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []
    model.eval()
    with torch.no_grad():
        memory, mask = model.encode(source[None])
        for n in range(1, LIMIT + 1):
            candidates = []
            for log_prob, ids in live:
                logits = model.decode(torch.tensor([[BOS, *ids]]), memory, mask)[0, -1]
                logits[PAD] = -math.inf
                steps = logits.log_softmax(-1).tolist()
                candidates += [(log_prob + step, [*ids, i]) for i, step in enumerate(steps)]
            best = sorted(candidates, key=lambda candidate: -candidate[0])[: 2 * size]
            penalty = ((5 + n) / 6) ** length_penalty
            finished += [(p / penalty, ids[:-1]) for p, ids in best[:size] if ids[-1] == EOS]
            live = [(p, ids) for p, ids in best if ids[-1] != EOS][:size]
            if len(finished) >= size:
                break
    model.train()
    return max(finished or live)[1]


def test_a_wide_beam_finds_the_best_of_all_sentences(module):
    vocab, limit = 6, 3
    model = make(module, seed=5, vocab=vocab)
    source = draw(4, 3, 2, vocab=vocab)
    words = [i for i in range(vocab) if i not in (PAD, EOS)]
    found = beam(module, model, source, BOS, EOS, limit, beam_size=200, length_penalty=0.8)
    for row, chosen in zip(source, found, strict=True):
        scores = {}
        for n in range(limit):
            for ids in itertools.product(words, repeat=n):
                scores[ids] = score(model, row[None], [*ids, EOS], 0.8)
        assert tuple(chosen) == max(scores, key=lambda ids: scores[ids])


@torch.no_grad()
def score(model: Any, source: Tensor, ids: list[int], length_penalty: float) -> float:
    model.eval()
    logits = model(source, torch.tensor([[BOS, *ids[:-1]]]))[0]
    logits[:, PAD] = -math.inf
    log_probs = logits.log_softmax(-1)[range(len(ids)), ids]
    return float(log_probs.sum()) / ((5 + len(ids)) / 6) ** length_penalty


def test_neither_order_nor_company_changes_a_translation(module):
    model = make(module, seed=2)
    for search in (greedy, beam):
        together = search(module, model, SOURCE, BOS, EOS, LIMIT)
        backwards = search(module, model, SOURCE.flip(0), BOS, EOS, LIMIT)
        alone = [search(module, model, row[None], BOS, EOS, LIMIT)[0] for row in SOURCE]
        assert together == backwards[::-1] == alone


def test_the_model_comes_out_as_it_went_in(module):
    model = make(module)
    model.encoder.eval()
    adopt(module, model)
    parts = {name: (part, type(part), part.training) for name, part in model.named_modules()}
    state = list(model.state_dict())
    greedy(module, model, SOURCE, BOS, EOS, LIMIT)
    beam(module, model, SOURCE, BOS, EOS, LIMIT)
    after = {name: (part, type(part), part.training) for name, part in model.named_modules()}
    assert after == parts
    assert list(model.state_dict()) == state


def test_the_model_comes_out_as_it_went_in_when_decoding_fails(module):
    model = make(module)
    way(module, model)
    parts = dict(model.named_modules())
    with pytest.raises(IndexError):
        greedy(module, model, torch.full((2, 3), 10_000), BOS, EOS, LIMIT)
    assert dict(model.named_modules()) == parts


def test_an_adopted_model_writes_the_same(module):
    own, ours = make(module, 2), make(module, 2)
    adopt(module, ours)
    assert way(module, ours) == Way(True, True, "")
    for search in (greedy, beam):
        assert search(module, ours, SOURCE, BOS, EOS, LIMIT) == search(
            module, own, SOURCE, BOS, EOS, LIMIT
        )


def test_padding_is_never_written(module):
    model = make(module)
    with torch.no_grad():
        model.generator.weight[PAD] = 100 * model.generator.weight[EOS]
        model.generator.weight[PAD + 1] = -model.generator.weight[PAD]
    for search in (greedy, beam):
        assert not any(PAD in row for row in search(module, model, SOURCE, BOS, EOS, LIMIT))


def test_no_more_tokens_than_positions_or_asked_for(module):
    model = make(module)
    for search in (greedy, beam):
        assert all(len(row) == 20 for row in search(module, model, SOURCE, BOS, -1, 99))
        assert all(len(row) == 4 for row in search(module, model, SOURCE, BOS, -1, 4))


def test_beams_below_1_are_refused(module):
    with pytest.raises(ValueError, match=r"beam_size \(0\) must be at least 1"):
        beam(module, make(module), SOURCE, BOS, EOS, LIMIT, beam_size=0)


# caches that cannot be used


def changed(tmp_path: Path, old: str, new: str) -> types.ModuleType:
    text = MODULE.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "changed.py"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return load_module(path)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        # what d2l's decoder does: every single token is at position 0
        ("self.encoding[offset:end]", "self.encoding[: x.shape[1]]", "step by step differ by"),
        ("def use_cache(", "def use_no_cache(", "the module has no use_cache"),
        ("caches = []\n", "raise NotImplementedError('soon')\n", "NotImplementedError: soon"),
        (
            "caches += [layer.self",
            "return []; [layer.self",
            "found no attention of a decoder layer",
        ),
        ("if self.kept is None or self.grows:", "if self.kept is None:", "step by step differ by"),
    ],
)
def test_a_cache_that_fails_is_not_used_and_that_is_said(tmp_path, old, new, reason):
    module = changed(tmp_path, old, new)
    model = make(module)
    with pytest.warns(UserWarning, match=f"decoding without a cache: .*{reason}"):
        written = greedy(module, model, SOURCE, BOS, EOS, LIMIT)
    assert written == module.greedy_decode(model, SOURCE, BOS, EOS, LIMIT)
    assert written == beam(module, model, SOURCE, BOS, EOS, LIMIT, beam_size=1)  # no second warning


def test_an_own_cache_of_another_make_is_used_as_it_is(tmp_path):
    module = changed(
        tmp_path,
        "self.w_v, self.w_o = attention.w_v, attention.w_o",
        "self.w_v, self.w_o = attention.w_v, attention.w_o\n"
        "        self.w_k = nn.Sequential(attention.w_k)",
    )
    model = make(module)
    found = way(module, model)
    assert (found.cached, found.fused) == (True, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = greedy(module, model, SOURCE, BOS, EOS, LIMIT)
    assert written == module.greedy_decode(model, SOURCE, BOS, EOS, LIMIT)


def test_the_memory_is_projected_once(module, monkeypatch):
    model = make(module)
    calls = []
    forced(model, Way(True, False, ""), monkeypatch)
    linear = model.decoder.layers[0].cross_attention.w_k
    linear.register_forward_hook(lambda part, given, out: calls.append(out.shape))
    beam(module, model, SOURCE, BOS, EOS, LIMIT)
    assert calls == [(len(SOURCE), SOURCE.shape[1], 16)]


# the k best


@pytest.mark.parametrize("classes", [7, 128, 1000, 1290, 10_000])
@pytest.mark.parametrize("k", [1, 4])
def test_top_is_topk(classes, k):
    x = torch.randn(9, classes, generator=torch.Generator().manual_seed(0))
    x[:, 0] = -math.inf
    values, places = top(x, k)
    expected = x.topk(k, dim=-1)
    assert torch.equal(values, expected.values)
    assert torch.equal(places, expected.indices)


# text


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["a b c d e f g h i j k l m n o p"])


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("max_tokens", [1, 12, 10_000])
def test_translate_keeps_the_order_whatever_the_batches(module, tokenizer, beam_size, max_tokens):
    model = make(module, seed=2, vocab=len(tokenizer))
    sentences = ["a b c", "", "d", "e f g h i j", "a b c", "k l m n", "p o"]
    said = translate(
        module, model, sentences, tokenizer, tokenizer, beam_size=beam_size, max_tokens=max_tokens
    )
    alone = [
        translate(module, model, [sentence], tokenizer, tokenizer, beam_size=beam_size)[0]
        for sentence in sentences
    ]
    assert said == alone
    assert said[0] == said[4]


def test_translate_refuses_a_sentence_longer_than_the_model(module, tokenizer):
    model = make(module, vocab=len(tokenizer))
    with pytest.raises(ValueError, match="sentence 2 has 23 tokens, more than the model's 20 pos"):
        translate(module, model, ["a", "b " * 21], tokenizer, tokenizer)


def test_translate_of_nothing_is_nothing(module, tokenizer):
    assert translate(module, make(module), [], tokenizer, tokenizer) == []
