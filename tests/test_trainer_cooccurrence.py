"""Embeddings from counts: what is translated lies close, and nothing else changes."""

import math
import random

import numpy as np
import pytest
import torch

from lab.assembled import load_module
from lab.batching import EncodedPairs, Ragged
from tests import small_training
from tests.small_training import CONFIG, MODULE
from trainer.cooccurrence import cooccurrence_vectors, pair_vectors, set_embeddings
from trainer.loop import Trainer
from trainer.preparation import configured_model

WORDS = 40  # of each language; ids 0 to 3 are special
COUNTED = {"first_embeddings": "cooccurrence"}


def pairs(count: int = 600, seed: int = 0) -> EncodedPairs:
    """Sentences of words 4 .. 43, between <bos> (1) and <eos> (2); a word's translation is + 1."""
    drawn = random.Random(seed)
    sources = [[1, *drawn.sample(range(4, 4 + WORDS), 6), 2] for _ in range(count)]
    turned = [4 + (word - 4 + 1) % WORDS for word in range(4, 4 + WORDS)]
    targets = [
        [1, *(turned[word - 4] for word in drawn.sample(source[1:-1], 6)), 2] for source in sources
    ]
    return EncodedPairs(Ragged.of(sources), Ragged.of(targets))


def model(source: int, target: int) -> torch.nn.Module:
    module = load_module(MODULE)
    torch.manual_seed(0)
    encoding = module.sinusoidal_encoding(16, 64)
    return module.Transformer(source, target, encoding, 64, 1, 4, 64, pad_id=0)


def of(model: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    """Copies of both embeddings."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    names = "source_embedding.weight", "target_embedding.weight"
    first, second = (parameters[name].detach().clone() for name in names)
    return first, second


def test_a_word_lies_closest_to_its_translation():
    translator = model(44, 45)
    drawn = of(translator)
    set_embeddings(translator, pairs(), seed=0)
    source, target = (torch.nn.functional.normalize(rows, dim=1) for rows in of(translator))
    nearest = (source[4:44] @ target[4:44].T).argmax(1)
    assert nearest.tolist() == [(word + 1) % WORDS for word in range(WORDS)]
    before = torch.nn.functional.normalize(drawn[0], dim=1)[4:44] @ drawn[1][4:44].T
    assert (before.argmax(1) == nearest).sum() < 8


def test_lengths_and_what_counts_say_nothing_of_stay():
    translator = model(44, 45)
    drawn = of(translator)
    set_embeddings(translator, pairs(), seed=0)
    for before, after in zip(drawn, of(translator), strict=True):
        assert torch.allclose(before.norm(dim=1), after.norm(dim=1), atol=1e-6)
        # <pad> and <unk> are in no sentence, <bos> and <eos> in all of them
        assert torch.equal(before[:4], after[:4])
        assert not torch.isclose(before[4:44], after[4:44]).all(1).any()
    assert torch.equal(drawn[1][44], of(translator)[1][44])  # the target's word that never came


def test_one_vocabulary_gets_one_table():
    translator = model(44, 44)
    set_embeddings(translator, pairs(), seed=0)
    source, target = of(translator)
    assert torch.equal(source, target)
    parts = dict(translator.named_parameters(remove_duplicate=False))
    assert parts["generator.weight"] is parts["source_embedding.weight"]


def test_the_vectors_are_those_of_a_plain_decomposition():
    found = pairs(80)
    bags = [{*source, *target} for source, target in found]
    rows, count = 44, len(bags)
    measure = np.zeros((rows, rows))
    for i in range(rows):
        for j in range(rows):
            both, of_i, of_j = (
                sum(members <= bag for bag in bags) / count for members in ({i, j}, {i}, {j})
            )
            measure[i, j] = max(0.0, math.log(both / (of_i * of_j))) if both else 0.0
    u, s, _ = np.linalg.svd(measure)
    plain = u * np.sqrt(s)
    plain /= np.maximum(np.linalg.norm(plain, axis=1, keepdims=True), 1e-12)
    known = measure.sum(1) > 0
    numbers = [(bag, member) for bag, members in enumerate(bags) for member in sorted(members)]
    flat = torch.tensor(numbers).T
    ours = cooccurrence_vectors(flat[0], flat[1], rows, rows, seed=3).numpy()
    assert np.array_equal(np.linalg.norm(ours, axis=1) > 0.5, known)
    # a rotation changes no angle
    assert np.allclose(
        (ours @ ours.T)[known][:, known], (plain @ plain.T)[known][:, known], atol=1e-4
    )


def test_more_columns_than_ids_are_filled_by_the_rotation():
    bags, members = torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 1, 0, 1, 2])
    vectors = cooccurrence_vectors(bags, members, 4, 8, seed=0)
    assert vectors.shape == (4, 8)
    assert vectors.norm(dim=1).tolist() == pytest.approx([1, 1, 1, 0])
    assert torch.allclose(vectors[0], vectors[1], atol=1e-5)
    assert abs(float(vectors[0] @ vectors[2])) < 1e-5


def test_the_generator_of_random_numbers_is_left_alone():
    translator, found = model(44, 45), pairs()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    set_embeddings(translator, found, seed=1)
    assert torch.equal(torch.rand(3), expected)


def test_a_recipe_asks_for_it_and_pays_for_it_from_its_budget(monkeypatch):
    config = CONFIG.with_fields({**COUNTED, "steps": None, "cpu_minutes": 1.0})
    module, data = load_module(MODULE), small_training.data(config)
    drawn = configured_model(module, data.tokenizers, config)
    clock = iter(range(1_000_000))
    monkeypatch.setattr("time.process_time", lambda: next(clock) * 20.0)
    trainer = Trainer(module, data, config)
    assert not torch.allclose(of(drawn)[0], of(trainer.model)[0])
    outcome = trainer.train()
    # 20 seconds for the embeddings, then 20 for each of two updates
    assert (outcome.position.step, outcome.position.cpu_seconds) == (2, 60.0)


def test_processes_and_resumed_runs_begin_alike():
    config = CONFIG.with_fields(COUNTED)
    module, data = load_module(MODULE), small_training.data(config)
    first, second = (Trainer(module, data, config) for _ in range(2))
    assert small_training.largest_difference(first, second) == 0.0


def test_of_many_pairs_every_second_one_is_counted(monkeypatch):
    found = pairs(601)
    monkeypatch.setattr("trainer.cooccurrence.MOST_PAIRS", 301)
    half = pair_vectors(found, 44, 88, 16, seed=0)
    monkeypatch.undo()
    second = found[::2]
    kept = EncodedPairs(Ragged.of([a for a, _ in second]), Ragged.of([b for _, b in second]))
    assert torch.equal(half, pair_vectors(kept, 44, 88, 16, seed=0))
    assert not torch.allclose(half, pair_vectors(found, 44, 88, 16, seed=0))


@pytest.mark.parametrize("weight", [None, torch.zeros(64, 44), torch.zeros(44)])
def test_a_model_with_other_embeddings_is_refused_in_a_sentence(weight):
    translator = model(44, 45)
    translator.target_embedding = torch.nn.Identity()
    if weight is not None:
        translator.target_embedding.weight = torch.nn.Parameter(weight[:40])
    with pytest.raises(ValueError, match=r"target_embedding has no weight .*=drawn$"):
        set_embeddings(translator, pairs(), seed=0)
