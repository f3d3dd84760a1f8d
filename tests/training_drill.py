"""Kill trainings with SIGKILL at chosen points, resume them, and print what came of each.

Run as `python -m tests.training_drill FOLDER`: one process imports torch once and forks a child
for every training. Prints a JSON object: scenario -> digests of the last checkpoint and the log.
"""

import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch._dynamo  # the optimisers import it; once here is quicker than in every child

from lab.assembled import load_module
from tests.small_training import CONFIG, MODULE
from trainer import checkpoints
from trainer.configs import TrainConfig
from trainer.datasets import load
from trainer.loop import Trainer
from trainer.preparation import EncodedCorpus, encode_corpus, learn_tokenizers

DRILL = CONFIG.with_fields(
    {"steps": 12, "save_every": 4, "keep": 1, "ema": 0.9, "validate_every": 6, "bleu_sentences": 4}
)


def die() -> None:
    """What `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_on_call(owner: object, name: str, call: int, before: Callable[..., None]) -> None:
    """Replace a function; at its call number `call`, do `before` with its arguments, and die."""
    real, calls = getattr(owner, name), iter(range(1, 1_000_000))

    def counted(*arguments: object, **named: object) -> object:
        if next(calls) == call:
            before(*arguments)
            die()
        return real(*arguments, **named)

    setattr(owner, name, counted)


def half_a_file(tensors: object, path: Path, *rest: object) -> None:
    """Write the beginning of a tensors' file, as a kill within the write would leave it."""
    path.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00half a header")


def half_removed(path: Path) -> None:
    """Remove one of a folder's files."""
    next(iter(sorted(path.iterdir()))).unlink()


def nothing(*arguments: object) -> None:
    """Just die."""


def points() -> dict[str, Callable[[], None]]:
    """Where to die; step 4's checkpoint is the first, step 8's the second, step 12's the last."""
    save = checkpoints
    return {
        "before the first checkpoint": lambda: die_on_call(Trainer, "_update", 3, nothing),
        "between two checkpoints": lambda: die_on_call(Trainer, "_update", 7, nothing),
        "right after a checkpoint": lambda: die_on_call(Trainer, "_update", 9, nothing),
        "within a validation": lambda: die_on_call(Trainer, "_valid_bleu", 1, nothing),
        "within the first tensors": lambda: die_on_call(save, "save_file", 1, half_a_file),
        "within the second checkpoint": lambda: die_on_call(save, "save_file", 5, half_a_file),
        "before the state": lambda: die_on_call(save, "write_text", 2, nothing),
        "before the rename": lambda: die_on_call(Path, "rename", 2, nothing),
        "while an old one is removed": lambda: die_on_call(shutil, "rmtree", 1, half_removed),
    }


def digests(run: Path) -> dict[str, str]:
    """Digests of the last checkpoint's tensors, and of what the log says but for the times."""
    last = checkpoints.checkpoint_paths(run)[-1]
    found = {path.name: digest(path.read_bytes()) for path in sorted(last.glob("*.safetensors"))}
    times = ("cpu_seconds", "seconds", "tokens_per_second")
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    said = [{name: value for name, value in line.items() if name not in times} for line in lines]
    return {"step": last.name, **found, "log": digest(json.dumps(said).encode())}


def digest(content: bytes) -> str:
    """SHA-256."""
    return hashlib.sha256(content).hexdigest()


def train(run: Path, data: EncodedCorpus, config: TrainConfig) -> None:
    """Train, or go on."""
    module = load_module(MODULE)
    trainer = Trainer(module, data, config, run=run)
    trainer.resume()
    trainer.train()


def in_a_child(work: Callable[[], None]) -> int:
    """Do something in a fork of this process; how it ended, as `os.waitstatus_to_exitcode` says."""
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path) -> None:
    """Run all scenarios below a folder and print their digests."""
    torch.set_num_threads(1)
    corpus = load("grammar", pairs=300)
    data = encode_corpus(corpus, learn_tokenizers(corpus, DRILL), DRILL)

    def new_run(name: str) -> Path:
        run = folder / name.replace(" ", "-")
        (run / "checkpoints").mkdir(parents=True)
        return run

    whole = new_run("never killed")
    assert in_a_child(lambda: train(whole, data, DRILL)) == 0
    results = {"never killed": digests(whole)}
    for name, arm in points().items():
        run = new_run(name)

        def doomed(arm: Callable[[], None] = arm, run: Path = run) -> None:
            arm()
            train(run, data, DRILL)

        assert in_a_child(doomed) == -signal.SIGKILL, name
        assert in_a_child(lambda run=run: train(run, data, DRILL)) == 0, name
        results[name] = digests(run)
        results[name]["left"] = str(len(list((run / "checkpoints").glob(".*"))))
    print(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
