"""Two processes with gloo on the CPU compute what one does with the same global batch."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.conftest import ROOT
from tests.small_training import CONFIG, MODULE
from trainer import checkpoints
from trainer.distributed import Ranks, find_device

ALONE = {"RANK": "", "WORLD_SIZE": "", "LOCAL_RANK": ""}


def train(out: Path, processes: int, config: Path) -> None:
    """`python -m trainer train` in so many processes, each with its share of four micro-batches."""
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m"]
    recipe = ["--config", str(config), "--set", f"accumulate={4 // processes}"]
    arguments = [str(MODULE), "--pairs", "300", "--device", "cpu", "--out", str(out), *recipe]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            *(launcher if processes > 1 else []),
            "trainer",
            "train",
            *arguments,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("saved        in") == 1, "one process speaks"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[int, Path]:
    """The same training by one process and by two."""
    folder = tmp_path_factory.mktemp("distributed")
    config = folder / "small.json"
    steps = {"steps": 20, "ema": 0.9, "model.dropout": 0.2, "validate_every": 10}
    config.write_text(json.dumps(CONFIG.with_fields(steps).to_json()), encoding="utf-8")
    for processes in (1, 2):
        train(folder / str(processes), processes, config)
    return {processes: folder / str(processes) for processes in (1, 2)}


ENDED = """
import pathlib
import torch
from torch.nn.parallel import DistributedDataParallel
from trainer.distributed import Ranks, together

def step():
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.ones(2, 4)).sum().backward()

def threads():
    return [task.read_text() for task in pathlib.Path("/proc/self/task").glob("*/comm")]

with together(Ranks.from_environment(), torch.device("cpu")):
    step()
    assert any("gloo" in name for name in threads())
assert not any("gloo" in name for name in threads()), threads()
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux")
def test_no_thread_of_the_group_outlives_it(tmp_path):
    # one that frees a tensor while Python ends aborts the process, now and then
    script = tmp_path / "ended.py"
    script.write_text(ENDED, encoding="utf-8")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launcher, str(script)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_curves_are_those_of_one_process(runs):
    logs = [
        [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        for run in runs.values()
    ]
    assert [line["kind"] for line in logs[0]] == ["train", "valid"] * 2
    for one, two in zip(*logs, strict=True):
        assert two.keys() == one.keys()
        for name in one.keys() - {"kind", "cpu_seconds", "seconds", "tokens_per_second"}:
            assert two[name] == pytest.approx(one[name], rel=1e-5), name


def test_the_weights_are_those_of_one_process_dropout_included(runs):
    one, two = (checkpoints.read(checkpoints.checkpoint_paths(run)[-1]) for run in runs.values())
    assert one.position.tokens == two.position.tokens
    assert one.position.micro_batches == two.position.micro_batches == 80
    for first, second in ((one.model, two.model), (one.ema, two.ema)):
        assert first.keys() == second.keys()
        for name, tensor in first.items():
            torch.testing.assert_close(second[name], tensor, rtol=0, atol=1e-5)


# who and where


def test_without_torchrun_a_process_is_alone(monkeypatch):
    for name in ALONE:
        monkeypatch.delenv(name, raising=False)
    ranks = Ranks.from_environment()
    assert (ranks.rank, ranks.world, ranks.main) == (0, 1, True)


def test_torchruns_variables_are_read_and_half_of_them_refused(monkeypatch):
    for name, value in (("RANK", "3"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    ranks = Ranks.from_environment()
    assert (ranks.rank, ranks.world, ranks.local, ranks.main) == (3, 4, 1, False)
    monkeypatch.delenv("WORLD_SIZE")
    with pytest.raises(ValueError, match=r"WORLD_SIZE=None.*; start several processes with python"):
        Ranks.from_environment()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "device 'gpu' is not one of auto, cpu, cuda, cuda:1 (a number), mps"),
        ("cuda:x", "device 'cuda:x' is not one of"),
        ("cuda:99", "device 'cuda:99': torch sees"),
        ("", "device '' is not one of"),
    ],
)
def test_a_device_that_is_not_there_is_refused(name, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        find_device(name)


def test_devices_are_found(monkeypatch):
    assert find_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device("auto", local=1) == torch.device("cuda", 1)
    assert find_device("cuda:0", local=1) == torch.device("cuda", 0)
    with pytest.raises(ValueError, match="device 'cuda': torch sees 2 GPUs here"):
        find_device("cuda", local=2)
