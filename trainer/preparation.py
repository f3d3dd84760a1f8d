"""What a training begins with: a corpus as ids, its tokenisers, and the model in its sizes."""

import hashlib
import json
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
class Tokenizers:
    """Those of both languages; one and the same where they share a vocabulary."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """Whether both languages share one."""
        return self.source is self.target

    @property
    def pad_id(self) -> int:
        """The padding's id, the same in both: special tokens come first in every vocabulary."""
        return self.target.pad_id

    def to_json(self) -> str:
        """The one that both share, or both under "source" and "target"."""
        if self.joint:
            return self.target.to_json()
        both = {"source": self.source, "target": self.target}
        return json.dumps({name: json.loads(each.to_json()) for name, each in both.items()})

    @classmethod
    def from_json(cls, text: str) -> "Tokenizers":
        """Those that `to_json` wrote down."""
        content = json.loads(text)
        if set(content) != {"source", "target"}:
            shared = Tokenizer.from_json(text)
            return cls(shared, shared)
        return cls(*(Tokenizer.from_json(json.dumps(content[name])) for name in content))


@dataclass(frozen=True)
class EncodedCorpus:
    """A corpus as ids, with the tokenisers that made them."""

    corpus: Corpus
    tokenizers: Tokenizers
    train: EncodedPairs
    valid: EncodedPairs
    padding: float  # share of padding in the training batches


def learn_tokenizers(corpus: Corpus, config: TrainConfig) -> Tokenizers:
    """Subwords of the training sentences: of both languages together, or of each alone.

    Raises:
        ValueError: if two vocabularies come out with equally many ids.
    """
    if not config.target_vocab_size:
        sentences = (sentence for pair in corpus.train for sentence in pair)
        shared = Tokenizer.train_subwords(sentences, config.vocab_size)
        return Tokenizers(shared, shared)
    found = Tokenizers(
        Tokenizer.train_subwords((source for source, _ in corpus.train), config.vocab_size),
        Tokenizer.train_subwords((target for _, target in corpus.train), config.target_vocab_size),
    )
    if len(found.source) == len(found.target):
        raise ValueError(
            f"both languages have {len(found.source)} subwords, and a model takes vocabularies of "
            f"one size for one vocabulary; set target_vocab_size to {len(found.target) - 1}"
        )
    return found


def encode_corpus(corpus: Corpus, tokenizers: Tokenizers, config: TrainConfig) -> EncodedCorpus:
    """Turn the corpus into ids.

    Raises:
        ValueError: if no pair is short enough to train on, or to validate with.
    """
    max_len = config.model.max_len
    train, valid = (
        encode_pairs(pairs, tokenizers.source, tokenizers.target, max_len)
        for pairs in (corpus.train, corpus.valid)
    )
    batches = token_batches(
        train, config.max_tokens, seed=config.seed, epoch=0, multiple=config.multiple
    )
    padding = padding_share(train, batches, config.multiple)
    return EncodedCorpus(corpus, tokenizers, train, valid, padding)


def corpus_digest(corpus: Corpus) -> str:
    """SHA-256 of all training sentences, in order."""
    found = hashlib.sha256()
    for source, target in corpus.train:
        found.update(f"{source}\n{target}\n".encode())
    return found.hexdigest()


def configured_model(
    module: ModuleType, tokenizers: Tokenizers, config: TrainConfig, max_len: int | None = None
) -> nn.Module:
    """The module's Transformer in the recipe's sizes, with first weights by the recipe's seed.

    Args:
        module: an assembled module.
        tokenizers: give the sizes of the vocabularies.
        config: the recipe.
        max_len: rows of the table of positions; by default the recipe's.

    Raises:
        Incomplete: if a part that the model is made of is not answered yet.
    """
    sizes = asdict(config.model)
    rows = max_len or sizes["max_len"]
    del sizes["max_len"]
    vocabularies = len(tokenizers.source), len(tokenizers.target)
    return build(module, vocabularies, rows, tokenizers.pad_id, sizes, config.seed)


def way_of(module: ModuleType, model: nn.Module) -> str:
    """Why this model decodes without a cache, in words; "" if it has one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is returned says the same
        found = way(module, model)
    return "" if found.cached else found.reason
