"""A run of five minutes on disk: read as it was written, refused by name where it is damaged."""

import json
import re
from pathlib import Path

import pytest
import torch

from lab.assembled import load_module
from lab.five_minutes import Progress, Recipe, grammar_data, grammar_model
from lab.kept import FILES, RUN, Keeper, free_place, is_kept, read_kept
from lab.weights import weights_of

MODULE = Path(__file__).parents[1] / "solutions" / "transformer.py"
SMALL = Recipe(d_model=16, num_layers=1, num_heads=2, d_ff=24)
DATA = grammar_data(60)


def progress(steps: int) -> Progress:
    return Progress(steps, 0.5, steps / 40, 3.0, 900.0, 1e-3, 70 * steps, steps / 50)


@pytest.fixture
def kept(tmp_path) -> tuple[Path, torch.nn.Module]:
    """A run with two stages, and its model as it was at the second."""
    folder = tmp_path / "runs" / "mine"
    copy = tmp_path / "my_transformer.py"
    copy.write_text(MODULE.read_text(encoding="utf-8"), encoding="utf-8")
    keeper = Keeper(folder, copy, DATA, SMALL, pairs=60, seed=0)
    model = grammar_model(load_module(copy), DATA, SMALL)
    keeper.keep(model, progress(20))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.25)
    keeper.keep(model, progress(40))
    return folder, model


def test_a_run_is_read_as_it_was_written(kept):
    folder, model = kept
    run = read_kept(folder)
    assert (run.recipe, run.notes, run.content["pairs"]) == (SMALL, (), 60)
    stages = run.stages()
    assert [(s.steps, s.minutes, s.cpu_minutes, s.tokens) for s in stages] == [
        (20, 0.5, 0.4, 1400),
        (40, 1.0, 0.8, 2800),
    ]
    again = run.model(stages[-1].tensors(), "x")
    assert not again.training
    first, second = weights_of(model), weights_of(again)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    sentence = DATA.train[0][0]
    assert run.source.encode(sentence) == DATA.source.encode(sentence)


def test_a_longer_sentence_than_any_of_the_corpus_finds_positions(kept):
    run = read_kept(kept[0])
    tensors = run.stages()[0].tensors()
    ids = torch.ones(1, DATA.max_len + 7, dtype=torch.int64)
    assert run.model(tensors, "x", max_len=DATA.max_len + 7)(ids, ids[:, :2]).shape[1] == 2


def test_a_module_that_was_edited_since_is_told_of(kept, tmp_path):
    original = tmp_path / "my_transformer.py"
    original.write_text("x = 1\n", encoding="utf-8")
    [note] = read_kept(kept[0]).notes
    assert note == f"{original} has changed since; the run's own copy of it is used"


@pytest.mark.parametrize("file", FILES.values())
def test_a_file_that_was_changed_or_lost_is_named(kept, file):
    path = kept[0] / file
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(ValueError, match=f"{file} was changed or damaged"):
        read_kept(kept[0])
    path.unlink()
    with pytest.raises(ValueError, match=f"{file} is missing"):
        read_kept(kept[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 9}, "is of no run that this lab knows"),
        ({"recipe": {"depth": 3}}, "is damaged (TypeError"),
        ({"seed": "x"}, "is damaged (ValueError"),
        ({"sha256": []}, "is damaged (AttributeError"),
    ],
)
def test_a_damaged_description_is_refused(kept, change, message):
    path = kept[0] / RUN
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | change), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)):
        read_kept(kept[0])
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="is damaged"):
        read_kept(kept[0])


def test_weights_that_were_cut_are_named(kept):
    path = read_kept(kept[0]).stages()[0].path
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match=f"{path.name} is cut: 8 bytes are missing"):
        read_kept(kept[0]).stages()


def test_a_folder_without_a_run_is_said_to_be_none(tmp_path):
    assert not is_kept(tmp_path)
    with pytest.raises(
        ValueError, match=r"holds no run of python -m lab train: it has no run\.json"
    ):
        read_kept(tmp_path)


def test_the_next_free_place_has_a_number(tmp_path):
    mine = tmp_path / "mine"
    assert free_place(mine) == mine
    mine.mkdir()
    assert free_place(mine) == mine, "an empty folder is free"
    (mine / "x").touch()
    (tmp_path / "mine-2").touch()
    assert free_place(mine) == tmp_path / "mine-3"


def test_nothing_is_written_over(kept):
    with pytest.raises(ValueError, match="is taken"):
        Keeper(kept[0], MODULE, DATA, SMALL, pairs=60, seed=0)
    with pytest.raises(ValueError, match="cannot be kept in"):
        Keeper(kept[0] / RUN / "inside", MODULE, DATA, SMALL, pairs=60, seed=0)
