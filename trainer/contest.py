"""The course's contest: who translates best after so many minutes of a processor.

`python -m autograder contest` calls it. An entry is one of two:

    a recipe    recipe.toml, and the module as my_transformer.py; trained here
    weights     model.safetensors, and the other files of a run: of `python -m lab train` module.py,
                run.json, source.json and target.json; of `python -m trainer train` module.py,
                config.json and tokenizer.json

    # recipe.toml, all of it optional
    config = "cpu10"              # a recipe by name, to begin with
    warmup = 200
    model.d_model = 128

c.Contest.settings in nbgrader_config.py may hold data, data_dir, source, target, pairs and seed (as
`trainer.datasets.load` takes them), `test` (which of the corpus's tests; by default the first),
`sentences` (of it), `decides` ("BLEU", the default, or "exact match"), `accepts` (["recipe",
"weights"]) and `module`, a file that is trained where a recipe comes without one.
"""

import json
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from lab.assembled import load_module
from lab.text import Tokenizer
from lab.weights import load_weights, read_tensors
from trainer import datasets
from trainer.checkpoints import Position
from trainer.configs import CONFIGS, TrainConfig
from trainer.datasets import Corpus
from trainer.decoding import translate
from trainer.loop import Trainer
from trainer.preparation import configured_model, encode_corpus, learn_tokenizers
from trainer.runs import Weights, open_run
from trainer.scoring import bleu

PACKAGES = ("lab", "trainer")
RECIPE, WEIGHTS, OWN, MODULE = "recipe.toml", "model.safetensors", "my_transformer.py", "module.py"
OF_RUNS = ("run.json", "source.json", "target.json", "config.json", "tokenizer.json")
FILES = (RECIPE, WEIGHTS, OWN, MODULE, *OF_RUNS)
DATA = "data.json"
WRITTEN = (RECIPE, OWN, MODULE)  # all that a recipe is made of
MOST_WRITTEN = 100_000  # bytes, together; the course's module has 35,000
KINDS = {"recipe": "recipe, trained here", "weights": "weights, trained before"}
OF_CORPUS = ("data", "data_dir", "source", "target", "raw", "pairs", "seed")
OF_CONTEST = ("test", "sentences", "decides", "accepts", "module")
SCORES = ("BLEU", "exact match")
# What decides how long, how often and on how many processors is the contest's.
OF_TRAINING = ("peak_rate", "vocab_size", "max_tokens", "accumulate", "optimiser", "betas")
OF_TRAINING += ("matrix_rate", "momentum", "newton_schulz", "weight_decay", "schedule", "warmup")
OF_TRAINING += (
    "target_vocab_size",
    "first_embeddings",
    "warmup_share",
    "label_smoothing",
    "clip",
    "ema",
    "precision",
    "seed",
)
OF_MODEL = ("d_model", "num_layers", "num_heads", "d_ff", "dropout", "norm_first")
MAY_SET = (*OF_TRAINING, "beam_size", "length_penalty", *(f"model.{name}" for name in OF_MODEL))
OF_ALL = {  # what no entry needs, and would only cost it time
    "steps": None,
    "cpu_minutes": 1.0,
    "compile": False,
    "threads": 1,
    "average": 1,
    "validate_every": 0,
    "bleu_sentences": 0,
    "model.max_len": 256,
}


@dataclass(frozen=True)
class Contest:
    """What every entry is given, and what none is.

    Attributes:
        given: files, by name.
        right: the right translations, in order.
        tokenised: whether they are counted as they stand.
        decides: the score that decides.
        accepts: kinds of entries.
    """

    given: Mapping[str, bytes]
    right: Sequence[str]
    tokenised: bool
    decides: str
    accepts: Sequence[str]

    def kind(self, names: Sequence[str]) -> str:
        """What an entry with these files is.

        Raises:
            ValueError: if it is none.
        """
        found = [kind for kind, file in (("recipe", RECIPE), ("weights", WEIGHTS)) if file in names]
        if len(found) != 1:
            raise ValueError(
                f"hand in one of {RECIPE} and {WEIGHTS}; {len(found)} of them are there"
            )
        if found[0] not in self.accepts:
            raise ValueError(f"this contest takes {' and '.join(self.accepts)} only")
        odd = [name for name in names if name not in WRITTEN]
        if found[0] == "recipe" and odd:
            raise ValueError(f"a recipe is {RECIPE} and {OWN} alone; take {odd[0]} out")
        return KINDS[found[0]]

    def score(self, said: Sequence[str]) -> dict[str, float]:
        """BLEU and the share of sentences that are right word for word, in percent."""
        exact = sum(map(str.__eq__, said, self.right)) / len(self.right)
        scores = {
            "BLEU": bleu(said, self.right, tokenised=self.tokenised).bleu,
            "exact match": 100 * exact,
        }
        return {name: scores[name] for name in (self.decides, *SCORES) if name in scores}


def begin(settings: Mapping[str, Any], root: Path) -> Contest:
    """The contest that these settings describe; a path in them begins at the course's root.

    Raises:
        ValueError: if they name something that there is not.
    """
    for name in settings:
        if name not in (*OF_CORPUS, *OF_CONTEST):
            known = ", ".join((*OF_CORPUS, *OF_CONTEST))
            raise ValueError(f"a contest has no setting {name}; it may have {known}")
    decides, accepts = settings.get("decides", SCORES[0]), settings.get("accepts", list(KINDS))
    if decides not in SCORES or not set(accepts) <= KINDS.keys():
        raise ValueError(
            f"decides must be one of {', '.join(SCORES)}, and accepts a list of {', '.join(KINDS)}"
        )
    chosen = {name: settings[name] for name in OF_CORPUS if name in settings}
    if "data_dir" in chosen:
        chosen["data_dir"] = root / chosen["data_dir"]
    data = chosen.pop("data", "grammar")
    corpus = datasets.load(data if data in datasets.NAMES else str(root / data), **chosen)
    pairs = _questions(corpus, settings)
    files = {DATA: _as_bytes(corpus, [source for source, _ in pairs])}
    if "module" in settings:
        files[MODULE] = _text_of(root / settings["module"]).encode()
    return Contest(files, [target for _, target in pairs], corpus.tokenised, decides, accepts)


def enter(folder: Path, *, seconds: float) -> list[str]:
    """In the sandbox: the translations of an entry.

    Args:
        folder: holds what was handed in, and what everybody is given.
        seconds: of a processor, to train.

    Raises:
        ValueError: that says why the entry cannot be used.
    """
    began, entry = time.process_time(), folder / "entry"
    data = json.loads((folder / "given" / DATA).read_text(encoding="utf-8"))
    sources = data.pop("sources")
    if (entry / RECIPE).is_file():
        return _trained(entry, folder / "given", Corpus(**data), sources, began + seconds)
    try:
        weights = Weights(read_tensors(entry / WEIGHTS)[0], WEIGHTS, Position())
    except ValueError as error:
        raise ValueError(f"{error}; hand in a file of weights that a training wrote") from error
    if (entry / OWN).is_file() and not (entry / MODULE).is_file():
        (entry / OWN).rename(entry / MODULE)
    run = open_run(entry)
    model = run.model(weights, _longest(run.source_tokenizer, sources))
    tokenizers = run.source_tokenizer, run.target_tokenizer
    return _said(run.module, model, sources, tokenizers, run.beam_size, run.length_penalty)


def read_recipe(text: str) -> TrainConfig:
    """A recipe that was handed in.

    Raises:
        ValueError: if it is no TOML, or sets what the contest sets.
    """
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of many digits is a ValueError
        raise ValueError(f"{RECIPE} is no TOML ({error}); mend that line") from error
    name = content.pop("config", "cpu10")
    if not isinstance(name, str) or name not in CONFIGS:
        raise ValueError(f"{RECIPE}: config {name!r} is none of {', '.join(CONFIGS)}")
    sizes = content.pop("model", {})
    if not isinstance(sizes, dict):
        raise ValueError(f"{RECIPE}: model must be a table, such as model.d_model = 128")
    changes = {**content, **{f"model.{size}": value for size, value in sizes.items()}}
    for field in changes:
        if field not in MAY_SET:
            raise ValueError(_not_to_set(field))
    if changes.get("optimiser") == "adamw":
        changes.setdefault("matrix_rate", None)  # TOML has no word for it
    return CONFIGS[name].with_fields({**OF_ALL, **changes})


# Helpers ------------------------------------------------------------------------------------------


def _questions(corpus: Corpus, settings: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """The held-out pairs."""
    test = settings.get("test", next(iter(corpus.tests), ""))
    if test not in corpus.tests:
        known = ", ".join(corpus.tests) or "none"
        raise ValueError(f"{corpus.name} has no test {test!r}; its tests: {known}")
    sentences = settings.get("sentences")
    if sentences is not None and not (type(sentences) is int and sentences > 0):
        raise ValueError(f"sentences ({sentences!r}) must be a whole number above 0")
    return corpus.tests[test][:sentences]


def _not_to_set(field: str) -> str:
    known = [*CONFIGS["cpu10"].to_json(), *(f"model.{name}" for name in (*OF_MODEL, "max_len"))]
    if field in known:
        return f"{RECIPE} may not set {field}, which the contest decides; take it out"
    return f"{RECIPE} sets {field}, which no recipe has; it may set {', '.join(MAY_SET)}"


def _as_bytes(corpus: Corpus, sources: Sequence[str]) -> bytes:
    """What an entry sees of a corpus: everything but its tests, of which the questions alone."""
    names = ("name", "source_language", "target_language", "train", "valid", "tokenised")
    seen = {name: getattr(corpus, name) for name in names}
    return json.dumps({**seen, "sources": sources}, ensure_ascii=False).encode()


def _trained(
    entry: Path, given: Path, corpus: Corpus, sources: Sequence[str], until: float
) -> list[str]:
    """Train by the recipe that was handed in, until this time of the processor, and translate."""
    if sum(path.stat().st_size for path in entry.iterdir()) > MOST_WRITTEN:
        raise ValueError(
            f"a recipe of more than {MOST_WRITTEN:,} bytes has room for weights; write less"
        )
    config = read_recipe(_text_of(entry / RECIPE))
    found = [path for path in (entry / OWN, entry / MODULE, given / MODULE) if path.is_file()]
    if not found:
        raise ValueError(f"hand in your module as {OWN} beside {RECIPE}")
    module = load_module(found[0])
    data = encode_corpus(corpus, learn_tokenizers(corpus, config), config)
    left = until - time.process_time()  # the vocabulary is learned from the same budget
    if left <= 0:
        raise ValueError("the vocabulary took all of the time; set a smaller vocab_size")
    config = config.with_fields({"cpu_minutes": left / 60, "steps": None})
    trainer = Trainer(module, data, config)
    trainer.train()
    rows = max(config.model.max_len, _longest(data.tokenizers.source, sources))
    model = configured_model(module, data.tokenizers, config, rows)
    load_weights(model, trainer.weights(), "what was trained")
    both = data.tokenizers.source, data.tokenizers.target
    return _said(module, model.eval(), sources, both, config.beam_size, config.length_penalty)


def _longest(tokenizer: Tokenizer, sources: Sequence[str]) -> int:
    return max(len(tokenizer.encode(source)) for source in sources)


def _said(
    module: ModuleType,
    model: nn.Module,
    sources: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    beam_size: int,
    length_penalty: float,
) -> list[str]:
    settings = {"beam_size": beam_size, "length_penalty": length_penalty}
    return translate(module, model, sources, *tokenizers, **settings)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as text ({error})") from error
