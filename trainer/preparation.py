"""What a training begins with: a corpus as ids, its tokeniser, and the model in its sizes."""

import hashlib
import warnings
from dataclasses import asdict, dataclass
from types import ModuleType

from torch import nn

from lab.assembled import build
from lab.batching import EncodedPairs, encode_pairs, padding_share, token_batches
from lab.text import Tokenizer
from trainer.configs import TrainConfig
from trainer.datasets import Corpus
from trainer.stepping import way


@dataclass(frozen=True)
class EncodedCorpus:
    """A corpus as ids, with the tokeniser that made them."""

    corpus: Corpus
    tokenizer: Tokenizer
    train: EncodedPairs
    valid: EncodedPairs
    padding: float  # share of padding in the training batches


def learn_tokenizer(corpus: Corpus, config: TrainConfig) -> Tokenizer:
    """Joint subwords of both languages' training sentences."""
    sentences = (sentence for pair in corpus.train for sentence in pair)
    return Tokenizer.train_subwords(sentences, config.vocab_size)


def encode_corpus(corpus: Corpus, tokenizer: Tokenizer, config: TrainConfig) -> EncodedCorpus:
    """Turn the corpus into ids.

    Raises:
        ValueError: if no pair is short enough to train on, or to validate with.
    """
    max_len = config.model.max_len
    train, valid = (
        encode_pairs(pairs, tokenizer, tokenizer, max_len) for pairs in (corpus.train, corpus.valid)
    )
    batches = token_batches(
        train, config.max_tokens, seed=config.seed, epoch=0, multiple=config.multiple
    )
    padding = padding_share(train, batches, config.multiple)
    return EncodedCorpus(corpus, tokenizer, train, valid, padding)


def corpus_digest(corpus: Corpus) -> str:
    """SHA-256 of all training sentences, in order."""
    found = hashlib.sha256()
    for source, target in corpus.train:
        found.update(f"{source}\n{target}\n".encode())
    return found.hexdigest()


def configured_model(
    module: ModuleType, tokenizer: Tokenizer, config: TrainConfig, max_len: int | None = None
) -> nn.Module:
    """The module's Transformer in the recipe's sizes, with first weights by the recipe's seed.

    Args:
        module: an assembled module.
        tokenizer: gives the size of the vocabulary, the same for both languages.
        config: the recipe.
        max_len: rows of the table of positions; by default the recipe's.

    Raises:
        Incomplete: if a part that the model is made of is not answered yet.
    """
    sizes = asdict(config.model)
    rows = max_len or sizes["max_len"]
    del sizes["max_len"]
    return build(
        module, (len(tokenizer), len(tokenizer)), rows, tokenizer.pad_id, sizes, config.seed
    )


def way_of(module: ModuleType, model: nn.Module) -> str:
    """Why this model decodes without a cache, in words; "" if it has one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is returned says the same
        found = way(module, model)
    return "" if found.cached else found.reason
