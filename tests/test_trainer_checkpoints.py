"""Checkpoints: bit-exact after a real kill -9 at any point, refused by name when damaged."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.conftest import ROOT
from trainer import checkpoints
from trainer.checkpoints import Checkpoint, Position

IDENTITY = {"recipe": {"steps": 100}, "module's SHA-256": "abc"}


@pytest.fixture(scope="module")
def drill(tmp_path_factory) -> dict[str, dict[str, str]]:
    """What came of trainings that were killed at several points, and of one that was not."""
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    done = subprocess.run(
        [sys.executable, "-m", "tests.training_drill", str(tmp_path_factory.mktemp("drill"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_kill_9_at_any_point_and_resuming_gives_the_same_bits(drill):
    whole = drill.pop("never killed")
    assert whole["step"] == "step-00000012"
    assert {"model.safetensors", "optimizer.safetensors", "ema.safetensors"} <= whole.keys()
    assert len(drill) == 9
    for name, killed in drill.items():
        assert killed.pop("left") == "0", f"{name}: something unfinished was left"
        assert killed == whole, name


# one checkpoint


@pytest.fixture
def checkpoint() -> Checkpoint:
    generator = torch.Generator().manual_seed(0)
    model = {"a": torch.randn(3, 5, generator=generator), "b": torch.arange(4)}
    return Checkpoint(
        Position(step=7, epoch=1, index=2, cpu_seconds=0.1 + 0.2, loss_sum=1 / 3),
        model,
        {"a/exp_avg": torch.randn(3, 5, generator=generator), "a/step": torch.tensor(7.0)},
        {},
    )


@pytest.fixture
def saved(tmp_path, checkpoint) -> Path:
    (tmp_path / "checkpoints").mkdir()
    return checkpoints.save(tmp_path, checkpoint, 2, IDENTITY)


def test_a_checkpoint_is_read_as_it_was_written(saved, checkpoint):
    read = checkpoints.read(saved, IDENTITY)
    assert read.position == checkpoint.position  # floats to the last bit, through JSON
    for tensors, own in ((read.model, checkpoint.model), (read.optimizer, checkpoint.optimizer)):
        assert tensors.keys() == own.keys()
        assert all(torch.equal(tensors[name], own[name]) for name in own)
        assert all(tensors[name].dtype == own[name].dtype for name in own)
    assert read.ema == {}
    assert sorted(path.suffix for path in saved.iterdir()) == [
        ".json",
        ".safetensors",
        ".safetensors",
    ]


def test_only_the_last_checkpoints_stay(tmp_path, saved, checkpoint):
    for step in (8, 9):
        position = replace(checkpoint.position, step=step)
        checkpoints.save(tmp_path, replace(checkpoint, position=position), 2, IDENTITY)
    names = [path.name for path in checkpoints.checkpoint_paths(tmp_path)]
    assert names == ["step-00000008", "step-00000009"]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == names


def test_every_flipped_byte_is_noticed(saved):
    for path in sorted(saved.iterdir()):
        whole = path.read_bytes()
        places = range(0, len(whole), max(1, len(whole) // 40))
        for place in places:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(ValueError, match=r"damaged|of no checkpoint") as refused:
                checkpoints.read(saved, IDENTITY)
            assert path.name in str(refused.value)
        path.write_bytes(whole)
    checkpoints.read(saved, IDENTITY)


@pytest.mark.parametrize("left", [0, 5, 60, -1])
def test_a_file_that_was_cut_is_refused_by_name(saved, left):
    path = saved / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged: .*; delete .*step-0"):
        checkpoints.read(saved)
    if left in (60, -1):
        with pytest.raises(ValueError, match=r"it is cut, [0-9]+ bytes are missing"):
            checkpoints.read_weights(saved)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ValueError, match=name):
        checkpoints.read(saved)


def test_foreign_state_is_refused(saved):
    (saved / "state.json").write_text('{"weights": 3}', encoding="utf-8")
    with pytest.raises(ValueError, match="of no checkpoint that this trainer knows"):
        checkpoints.read(saved)


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        ({"recipe": {"steps": 200}}, "belongs to another run: its recipe's steps is 100, not 200"),
        ({"module's SHA-256": "xyz"}, "belongs to another run: its module's SHA-256 is abc, not"),
        ({"corpus": 1}, "belongs to another run: its corpus is None, not 1"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(saved, identity, message):
    with pytest.raises(ValueError, match=message):
        checkpoints.read(saved, identity)


# weights


def test_the_mean_is_of_what_is_floating_point():
    states = [{"x": torch.tensor([1.0, 5.0]), "n": torch.tensor(n)} for n in (1, 2)]
    states[1]["x"] = torch.tensor([2.0, 9.0])
    mean = checkpoints.mean_of(states)
    assert mean["x"].tolist() == [1.5, 7.0]
    assert int(mean["n"]) == 2


# single files and run directories


@pytest.mark.parametrize("file", ["module.py", "tokenizer.json"])
def test_a_run_whose_files_were_changed_is_refused(tmp_path, file):
    checkpoints.write_run(tmp_path, {"recipe": {}}, "x = 1\n", "{}")
    assert checkpoints.read_run(tmp_path)["recipe"] == {}
    path = tmp_path / file
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(ValueError, match=f"{file} was changed or damaged"):
        checkpoints.read_run(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match=f"{file} is missing"):
        checkpoints.read_run(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "holds no training run"),
        ("{", "is damaged: it is no JSON"),
        ("[]", "is damaged: it holds no object"),
        ('{"format": 99}', "is of no training run that this trainer knows"),
    ],
)
def test_what_is_no_run_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        checkpoints.read_run(tmp_path)


def test_nothing_in_the_lab_reads_or_writes_a_pickle():
    for path in (ROOT / "trainer").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for word in ("torch.load", "torch.save", "import pickle", "allow_pickle=True"):
            assert word not in text, path
