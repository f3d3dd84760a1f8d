"""A training of `python -m lab train` on disk: what it keeps on its way, and reading it again.

A run's folder holds

    module.py                  a copy of the module that is trained
    source.json, target.json   the words of both languages
    log.jsonl                  loss, learning rate and translations on the way, a line a record
    weights/step-00001234.safetensors   the model on the way and at the end
    run.json                   sizes, corpus, the module's name, digests

All of it is text and numbers: only module.py is ever run.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from lab.assembled import build, load_module
from lab.files import digest, write_text
from lab.five_minutes import GrammarData, Progress, Recipe
from lab.text import Tokenizer
from lab.weights import load_weights, read_tensors, weights_of, write_tensors

FORMAT = 1
RUN = "run.json"
FILES = {"module": "module.py", "source": "source.json", "target": "target.json"}


@dataclass(frozen=True)
class Stage:
    """The model at one moment of its training: a file of weights, and what it says of itself."""

    path: Path
    steps: int
    minutes: float
    cpu_minutes: float
    tokens: int

    def tensors(self) -> dict[str, Tensor]:
        """The weights."""
        return read_tensors(self.path)[0]


@dataclass(frozen=True)
class Kept:
    """A run that was read.

    Attributes:
        path: its folder.
        module: the run's own copy of the module.
        source: words of the language to translate from.
        target: words of the other.
        recipe: sizes of the model and its training.
        content: all of `run.json`.
        notes: what somebody who uses the run should know, in sentences.
    """

    path: Path
    module: ModuleType
    source: Tokenizer
    target: Tokenizer
    recipe: Recipe
    content: Mapping[str, Any]
    notes: tuple[str, ...]

    def stages(self) -> list[Stage]:
        """The model on its way, oldest first."""
        return [_stage(path) for path in sorted((self.path / "weights").glob("step-*.safetensors"))]

    def model(self, tensors: Mapping[str, Tensor], where: str, max_len: int = 0) -> nn.Module:
        """The model with these weights, ready to translate.

        Args:
            tensors: the weights.
            where: what they are, for a refusal.
            max_len: ids of the longest sentence, if that is longer than the corpus's.
        """
        rows = max(max_len, self.content["max_len"])
        vocabularies = len(self.source), len(self.target)
        model = build(
            self.module,
            vocabularies,
            rows,
            self.target.pad_id,
            self.recipe.sizes(),
            self.content["seed"],
        )
        load_weights(model, tensors, where)
        return model.eval()


class Keeper:
    """Writes a run's folder while the model trains.

    Args:
        path: a folder that holds no run yet.
        module: file of the module.
        data: the corpus.
        recipe: sizes of the model and its training.
        pairs: sentences of the corpus, held-out ones included.
        seed: decides corpus, first weights and order.

    Raises:
        ValueError: if there is a run already, or the folder cannot be made.
    """

    def __init__(
        self, path: Path, module: Path, data: GrammarData, recipe: Recipe, pairs: int, seed: int
    ) -> None:
        refuse_taken(path)
        self.path = path
        texts = {
            "module": module.read_text(encoding="utf-8"),
            "source": data.source.to_json(),
            "target": data.target.to_json(),
        }
        content = {
            "format": FORMAT,
            "recipe": asdict(recipe),
            "pairs": pairs,
            "seed": seed,
            "max_len": data.max_len,
            "module": str(module.absolute()),
            "sha256": {name: digest(text) for name, text in texts.items()},
        }
        try:
            (path / "weights").mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                write_text(path / FILES[name], text)
            # last, so that a folder that has it is whole
            write_text(path / RUN, json.dumps(content, indent=2) + "\n")
        except OSError as error:
            raise ValueError(f"the run cannot be kept in {path} ({error})") from error

    def log(self, kind: str, record: Mapping[str, Any]) -> None:
        """Append a line to the log."""
        with (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **record}, ensure_ascii=False) + "\n")

    def keep(self, model: nn.Module, progress: Progress) -> Path:
        """Write the model's weights as they are now."""
        path = self.path / "weights" / f"step-{progress.steps:08d}.safetensors"
        names = ("steps", "minutes", "cpu_minutes", "tokens")
        words = {name: str(getattr(progress, name)) for name in names}
        write_tensors(path, weights_of(model), words)
        return path


def is_kept(path: Path) -> bool:
    """Whether a folder holds a run of `python -m lab train`."""
    return (path / RUN).is_file()


def refuse_taken(path: Path) -> None:
    """Refuse a place that holds something already.

    Raises:
        ValueError: if it is a file, or a folder with something in it.
    """
    if _is_taken(path):
        raise ValueError(f"--out {path} is taken; choose another, or remove it")


def free_place(path: Path) -> Path:
    """This folder, or the next one with a number that holds nothing: runs/mine, runs/mine-2."""
    place, number = path, 1
    while _is_taken(place):
        number += 1
        place = path.with_name(f"{path.name}-{number}")
    return place


def _is_taken(path: Path) -> bool:
    return path.exists() and (not path.is_dir() or any(path.iterdir()))


def read_kept(path: Path) -> Kept:
    """Read a run.

    Raises:
        ValueError: if there is none, or one of its files is missing, damaged or was changed.
    """
    if not is_kept(path):
        raise ValueError(f"{path} holds no run of python -m lab train: it has no {RUN}")
    content = _read_content(path / RUN)
    texts = {}
    for name, file in FILES.items():
        if not (path / file).is_file():
            raise ValueError(f"{path / file} is missing; it was written when the run began")
        texts[name] = (path / file).read_text(encoding="utf-8")
        if digest(texts[name]) != content["sha256"][name]:
            raise ValueError(f"{path / file} was changed or damaged since the run began")
    return Kept(
        path,
        load_module(path / FILES["module"]),
        Tokenizer.from_json(texts["source"]),
        Tokenizer.from_json(texts["target"]),
        Recipe(**content["recipe"]),
        content,
        changed(Path(content["module"]), content["sha256"]["module"]),
    )


def changed(original: Path, sha256: str) -> tuple[str, ...]:
    """A note if the module that a run has a copy of is no longer the same."""
    if not original.is_file() or digest(original.read_text(encoding="utf-8")) == sha256:
        return ()
    return (f"{original} has changed since; the run's own copy of it is used",)


def _read_content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = content["format"] == FORMAT and content["sha256"].keys() >= FILES.keys()
        numbers = [int(content[name]) for name in ("max_len", "seed", "pairs")]
        known = known and min(numbers) >= 0 and isinstance(content["module"], str)
        Recipe(**content["recipe"])
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({type(error).__name__}: {error})") from error
    if not known:
        raise ValueError(f"{path} is of no run that this lab knows (format {FORMAT})")
    return content


def _stage(path: Path) -> Stage:
    words = read_tensors(path)[1]
    try:
        numbers = float(words["minutes"]), float(words["cpu_minutes"])
        return Stage(path, int(words["steps"]), *numbers, int(words["tokens"]))
    except (LookupError, ValueError) as error:
        raise ValueError(f"{path} does not say how long it was trained ({error})") from error
