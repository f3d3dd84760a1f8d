"""A word-level tokeniser on the `tokenizers` library: text to ids and back.

Words are what white space separates; nothing is lower-cased or split further.
"""

import os
from collections.abc import Iterable, Sequence

import tokenizers
from tokenizers import models, pre_tokenizers, processors, trainers

# The library's own threads warn on stderr when a notebook forks; these texts need no threads.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<bos>", "<eos>"


class Tokenizer:
    """Turns sentences into ids; made by `Tokenizer.train`.

    Attributes:
        pad_id: fills up short sentences in a batch.
        unk_id: stands for every word that training did not see.
        bos_id: begins every sentence.
        eos_id: ends every sentence.
    """

    pad_id: int
    unk_id: int
    bos_id: int
    eos_id: int

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._backend = backend
        self.pad_id, self.unk_id, self.bos_id, self.eos_id = (
            _require(backend.token_to_id(token), token) for token in (PAD, UNK, BOS, EOS)
        )

    @classmethod
    def train(cls, sentences: Iterable[str], min_freq: int = 1) -> "Tokenizer":
        """Learn the words that occur at least `min_freq` times in the sentences."""
        if min_freq < 1:
            raise ValueError(f"min_freq ({min_freq}) must be at least 1")
        trained = _backend(models.WordLevel(unk_token=UNK))
        trainer = trainers.WordLevelTrainer(
            min_frequency=min_freq, special_tokens=[PAD, UNK, BOS, EOS], show_progress=False
        )
        trained.train_from_iterator(sentences, trainer)
        # Training marks all four tokens as ones to leave out of decoded text; an unknown word
        # should stay visible, so the words move to a fresh backend that marks the other three.
        backend = _backend(models.WordLevel(trained.get_vocab(), unk_token=UNK))
        backend.add_special_tokens([PAD, BOS, EOS])
        ends = [(token, _require(backend.token_to_id(token), token)) for token in (BOS, EOS)]
        backend.post_processor = processors.TemplateProcessing(  # pyright: ignore[reportAttributeAccessIssue]
            single=f"{BOS} $A {EOS}", special_tokens=ends
        )
        return cls(backend)

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """The tokeniser that `to_json` wrote down."""
        return cls(tokenizers.Tokenizer.from_str(text))

    def to_json(self) -> str:
        """Everything about this tokeniser, in the format of the `tokenizers` library."""
        return self._backend.to_str()

    def encode(self, sentence: str) -> list[int]:
        """The ids of a sentence, from <bos> to <eos>; unknown words become <unk>."""
        return self._backend.encode(sentence).ids

    def decode(self, ids: Sequence[int]) -> str:
        """The words with these ids, joined by spaces; <pad>, <bos> and <eos> are left out.

        Raises:
            ValueError: if an id is not one of this tokeniser's.
        """
        numbers = [int(number) for number in ids]
        strange = [number for number in numbers if not 0 <= number < len(self)]
        if strange:
            raise ValueError(f"id {strange[0]} is not in 0 to {len(self) - 1}")
        return self._backend.decode(numbers)

    def __len__(self) -> int:
        """How many different ids there are, the four special ones included."""
        return self._backend.get_vocab_size()


def _backend(model: models.WordLevel) -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
    return backend


def _require(number: int | None, token: str) -> int:
    if number is None:
        raise ValueError(f"the tokeniser has no token {token}")
    return number
