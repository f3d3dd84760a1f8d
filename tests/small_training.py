"""What the trainer's tests share: a recipe and a corpus that train in a second."""

import types
from pathlib import Path

from lab.assembled import load_module
from lab.five_minutes import (
    Progress,
    Recipe,
    find_functions,
    grammar_data,
    grammar_model,
    train,
)
from lab.kept import Keeper
from trainer.configs import ModelConfig, TrainConfig
from trainer.datasets import Corpus, load
from trainer.loop import Trainer
from trainer.preparation import EncodedCorpus, encode_corpus, learn_tokenizers

MODULE = Path(__file__).parents[1] / "solutions" / "transformer.py"
SMALL = ModelConfig(
    d_model=16, num_layers=1, num_heads=2, d_ff=24, dropout=0.1, norm_first=True, max_len=64
)
CONFIG = TrainConfig(
    SMALL,
    peak_rate=4e-3,
    steps=6,
    vocab_size=200,
    max_tokens=256,
    accumulate=2,
    warmup=3,
    validate_every=0,
    save_every=100,
)


def corpus() -> Corpus:
    """A few sentences of the grammar."""
    return load("grammar", pairs=300)


def data(config: TrainConfig = CONFIG) -> EncodedCorpus:
    """The same as ids."""
    sentences = corpus()
    return encode_corpus(sentences, learn_tokenizers(sentences, config), config)


def trained(module: types.ModuleType, data: EncodedCorpus, config: TrainConfig, **more) -> Trainer:
    trainer = Trainer(module, data, config, **more)
    trainer.resume()
    trainer.train()
    return trainer


def largest_difference(one: Trainer, other: Trainer) -> float:
    first, second = one.weights(), other.weights()
    assert first.keys() == second.keys()
    return max((first[name] - second[name]).abs().max().item() for name in first)


def five_minute_run(folder: Path) -> Path:
    """A run of `python -m lab train` that knows its few sentences by heart."""
    recipe = Recipe(
        d_model=32, num_layers=1, num_heads=2, d_ff=48, dropout=0.0, batch_size=16, warmup=400
    )
    lesson, module = grammar_data(60), load_module(MODULE)
    keeper = Keeper(folder, MODULE, lesson, recipe, pairs=60, seed=0)
    model = grammar_model(module, lesson, recipe)

    def keep(progress: Progress) -> None:
        keeper.log("train", {"step": progress.steps, "loss": progress.loss, "rate": 0.001})
        if progress.steps in (20, 400):
            keeper.keep(model, progress)

    train(model, find_functions(module), lesson, recipe, minutes=60, steps=400, report=keep)
    return folder
