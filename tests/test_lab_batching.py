"""Batches by tokens: every pair once, within the budget, little padding, the same on every run."""

import random

import numpy as np
import pytest
import torch

from lab.batching import EncodedPairs, collate, encode_pairs, padding_share, token_batches
from lab.corpus import sentence_pairs
from lab.text import Tokenizer

PAD = 0


def made_up(count: int, longest: int = 40, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """Pairs whose sides are of similar lengths, as translations are; 3 ids or more on each."""
    rng = random.Random(seed)
    lengths = [rng.randint(3, longest) for _ in range(count)]
    return [
        (
            [rng.randint(4, 99) for _ in range(n)],
            [rng.randint(4, 99) for _ in range(max(3, n + rng.randint(-3, 4)))],
        )
        for n in lengths
    ]


PAIRS = made_up(700)


def places(encoded, indices, multiple: int = 1) -> tuple[int, int]:
    """Places of a batch that the model sees: of the source, and of the decoder input."""
    batch = collate(encoded, indices, PAD, multiple)
    return batch.source.numel(), batch.target[:, 1:].numel()


@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize("max_tokens", [60, 500, 10**6])
def test_every_pair_is_in_one_batch_within_the_budget(max_tokens, multiple):
    planned = token_batches(PAIRS, max_tokens, seed=1, epoch=0, multiple=multiple)
    assert sorted(index for batch in planned for index in batch) == list(range(len(PAIRS)))
    assert all(max(places(PAIRS, batch, multiple)) <= max_tokens for batch in planned)


def test_batches_are_cut_only_where_the_next_pair_does_not_fit():
    real = sum(max(len(source), len(target) - 1) for source, target in PAIRS)
    planned = token_batches(PAIRS, 400, seed=1, epoch=0)
    assert len(planned) < 1.25 * real / 400


def test_little_of_a_batch_is_padding():
    random_order = list(range(len(PAIRS)))
    random.Random(0).shuffle(random_order)
    by_chance = [random_order[start : start + 20] for start in range(0, 700, 20)]
    by_length = token_batches(PAIRS, 500, seed=1, epoch=0)
    assert padding_share(PAIRS, by_length) < 0.1
    assert padding_share(PAIRS, by_chance) > 0.4


def test_where_targets_grow_longer_sources_do_not_jump():
    pairs = [([1] * n, [1] * m) for m in range(20, 30) for n in range(5, 15)]
    for batch in token_batches(pairs, 100, seed=1, epoch=0):
        widths = [len(pairs[index][0]) for index in batch]
        assert max(widths) - min(widths) < len(batch)


def test_the_padding_share_is_what_the_batches_hold():
    planned = token_batches(PAIRS, 300, seed=1, epoch=0, multiple=4)
    total = sum(sum(places(PAIRS, batch, 4)) for batch in planned)
    real = sum(len(source) + len(target) - 1 for source, target in PAIRS)
    assert padding_share(PAIRS, planned, 4) == pytest.approx(1 - real / total)


def test_the_padding_share_by_hand():
    pairs = [([1] * 5, [1] * 4), ([1] * 3, [1] * 7)]  # 2 rows of 5 + 6 places, 5 + 3 + 3 + 6 used
    assert padding_share(pairs, [[0, 1]]) == pytest.approx(5 / 22)
    assert padding_share(pairs, [[0], [1]]) == 0


@pytest.mark.unchecked
def test_batches_depend_on_seed_and_epoch_alone():
    torch.manual_seed(0)
    random.seed(0)
    first = token_batches(PAIRS, 300, seed=5, epoch=2)
    state = random.getstate(), torch.random.get_rng_state()
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    assert token_batches(PAIRS, 300, seed=5, epoch=2) == first
    assert token_batches(PAIRS, 300, seed=5, epoch=3) != first
    assert token_batches(PAIRS, 300, seed=6, epoch=2) != first
    random.setstate(state[0])
    token_batches(PAIRS, 300, seed=5, epoch=2)
    assert random.getstate() == state[0]
    assert torch.random.get_rng_state().equal(state[1])


def test_the_next_epoch_brings_other_pairs_together():
    first, second = (
        {frozenset(batch) for batch in token_batches(PAIRS, 300, seed=1, epoch=epoch)}
        for epoch in (0, 1)
    )
    assert len(first & second) < 0.5 * len(first)


def test_batches_do_not_come_in_order_of_length():
    widths = [len(PAIRS[batch[0]][1]) for batch in token_batches(PAIRS, 300, seed=1, epoch=0)]
    assert widths != sorted(widths)
    assert np.corrcoef(widths, range(len(widths)))[0, 1] < 0.5


def test_lists_and_encoded_pairs_give_the_same_plan_and_the_same_batches():
    compact = EncodedPairs.of(PAIRS)
    assert list(compact) == PAIRS
    assert compact[3:5] == PAIRS[3:5]
    plan = token_batches(PAIRS, 300, seed=1, epoch=0)
    assert token_batches(compact, 300, seed=1, epoch=0) == plan
    for field in ("source", "source_lengths", "target", "target_lengths"):
        ours, theirs = (getattr(collate(data, plan[0], PAD), field) for data in (compact, PAIRS))
        assert ours.equal(theirs)
        assert ours.dtype == torch.int64


def test_a_collated_batch_holds_its_pairs_padded_on_the_right():
    batch = collate([([2, 7, 3], [2, 9, 9, 9, 3]), ([2, 3], [2, 8, 3])], [1, 0], PAD)
    assert batch.source.tolist() == [[2, 3, 0], [2, 7, 3]]
    assert batch.target.tolist() == [[2, 8, 3, 0, 0], [2, 9, 9, 9, 3]]
    assert batch.source_lengths.tolist() == [2, 3]
    assert batch.target_lengths.tolist() == [3, 5]


def test_widths_are_multiples_for_the_source_and_for_what_the_decoder_sees():
    batch = collate(PAIRS, range(50), PAD, multiple=8)
    assert batch.source.shape[1] % 8 == 0
    assert batch.target[:, :-1].shape[1] % 8 == 0
    assert batch.target.shape[1] - 1 < batch.target_lengths.max() + 8


def test_rounded_widths_leave_few_different_shapes():
    planned = token_batches(PAIRS, 400, seed=1, epoch=0, multiple=8)
    widths = {
        (batch.source.shape[1], batch.target.shape[1])
        for batch in (collate(PAIRS, indices, PAD, 8) for indices in planned)
    }
    assert len(widths) <= 15


def test_a_pair_that_is_longer_than_the_budget_is_refused():
    with pytest.raises(ValueError, match=r"max_tokens \(30\) has no room for a pair of 4"):
        token_batches(PAIRS, 30, seed=1, epoch=0)


def test_an_empty_batch_and_an_empty_corpus_are_refused():
    with pytest.raises(ValueError, match="0 pairs"):
        collate(PAIRS, [], PAD)
    with pytest.raises(ValueError, match="0 pairs"):
        token_batches([], 100, seed=1, epoch=0)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train_subwords([s for pair in sentence_pairs(200) for s in pair], 150)


def test_pairs_are_encoded_as_the_tokenisers_do(tokenizer):
    pairs = sentence_pairs(200)
    encoded = encode_pairs(pairs, tokenizer, tokenizer, max_len=1000)
    assert list(encoded) == [(tokenizer.encode(en), tokenizer.encode(fr)) for en, fr in pairs]
    assert encoded.dropped == 0


def test_pairs_that_are_too_long_are_dropped_and_counted(tokenizer):
    pairs = sentence_pairs(200)
    longest = [max(len(tokenizer.encode(side)) for side in pair) for pair in pairs]
    encoded = encode_pairs(pairs, tokenizer, tokenizer, max_len=20)
    assert encoded.dropped == sum(length > 20 for length in longest) > 0
    assert len(encoded) == 200 - encoded.dropped
    assert max(encoded.source.lengths.max(), encoded.target.lengths.max()) == 20


def test_a_corpus_is_encoded_in_chunks_that_join_without_a_seam(tokenizer, monkeypatch):
    pairs = sentence_pairs(203)
    whole = encode_pairs(pairs, tokenizer, tokenizer, max_len=20)
    monkeypatch.setattr("lab.batching.CHUNK", 50)
    chunked = encode_pairs(pairs, tokenizer, tokenizer, max_len=20)
    assert (list(chunked), chunked.dropped) == (list(whole), whole.dropped)


@pytest.mark.parametrize("pairs", [[], [("the cat .", "le chat .")]], ids=["none", "too long"])
def test_nothing_left_to_train_on_is_refused(tokenizer, pairs):
    with pytest.raises(ValueError, match=f"none of the {len(pairs)} pairs"):
        encode_pairs(pairs, tokenizer, tokenizer, max_len=2)
