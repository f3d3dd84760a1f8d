"""Tokenisers on the `tokenizers` library: text to ids and back, by words or by parts of words.

Words are what white space separates; nothing is lower-cased. Parts of words are learnt by
byte-pair encoding (Sennrich et al., 2016), from both languages together.
"""

import json
import os
from collections.abc import Iterable, Sequence
from typing import SupportsInt

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

# The library's own threads warn on stderr when a notebook forks; these texts need no threads.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

PAD, UNK, BOS, EOS = SPECIALS = "<pad>", "<unk>", "<bos>", "<eos>"
START = "\x1f"  # begins a word's first part; no text has it, since it counts as white space
SPACE = r"[\s\x1c-\x1f]+"  # what str.split splits at


class Tokenizer:
    """Turns sentences into ids; made by `Tokenizer.train` or `Tokenizer.train_subwords`.

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
        _add_ends(backend)
        return cls(backend)

    @classmethod
    def train_subwords(cls, sentences: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Learn parts of words by byte-pair encoding, most frequent pairs first.

        Give the training sentences of both languages, so that they share one vocabulary. Decoding
        gives the words back exactly, joined by single spaces; a letter that training did not see
        becomes <unk>. A text that says "<pad>" is spelt out like any other.

        Args:
            sentences: what to learn from.
            vocab_size: how many ids, the four special ones included; fewer if no pair is left
                that occurs twice.

        Raises:
            ValueError: if `vocab_size` has no room for the letters of the sentences.
        """
        trained = _subword_backend(models.BPE())
        room = max(vocab_size - len(SPECIALS), 0)
        trainer = trainers.BpeTrainer(vocab_size=room, min_frequency=2, show_progress=False)
        trained.train_from_iterator(sentences, trainer)
        learnt = json.loads(trained.to_str())["model"]
        letters = len(learnt["vocab"]) - len(learnt["merges"])
        if letters > room:
            raise ValueError(
                f"vocab_size ({vocab_size}) must be at least {letters + len(SPECIALS)}, for the "
                f"{letters} letters of the sentences and {len(SPECIALS)} special tokens"
            )
        vocab = {token: number for number, token in enumerate(SPECIALS)}
        vocab |= {token: number + len(SPECIALS) for token, number in learnt["vocab"].items()}
        merges = [(first, second) for first, second in learnt["merges"]]
        backend = _subword_backend(models.BPE(vocab, merges, unk_token=UNK))
        _add_ends(backend)
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

    def encode_all(self, sentences: Sequence[str]) -> list[list[int]]:
        """What `encode` gives for each sentence, faster."""
        return [encoded.ids for encoded in self._backend.encode_batch_fast(list(sentences))]

    def decode(self, ids: Iterable[SupportsInt]) -> str:
        """The words with these ids, joined by spaces; <pad>, <bos> and <eos> are left out.

        Raises:
            ValueError: if an id is not one of this tokeniser's.
        """
        ends = (self.pad_id, self.bos_id, self.eos_id)
        return self._backend.decode([number for number in self._known(ids) if number not in ends])

    def tokens(self, ids: Iterable[SupportsInt]) -> list[str]:
        """One readable label for each id, such as "<bos>"; "▁" begins a word that has parts.

        Raises:
            ValueError: if an id is not one of this tokeniser's.
        """
        labels = [self._backend.id_to_token(number) or "" for number in self._known(ids)]
        return [label.replace(START, "▁") for label in labels]

    def _known(self, ids: Iterable[SupportsInt]) -> list[int]:
        """The ids as plain numbers, all of them in the vocabulary."""
        numbers = [int(number) for number in ids]
        strange = [number for number in numbers if not 0 <= number < len(self)]
        if strange:
            raise ValueError(f"id {strange[0]} is not in 0 to {len(self) - 1}")
        return numbers

    def __len__(self) -> int:
        """How many different ids there are, the four special ones included."""
        return self._backend.get_vocab_size()


def _backend(model: models.WordLevel) -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
    return backend


def _subword_backend(model: models.BPE) -> tokenizers.Tokenizer:
    """Words with `START` in front, and a decoder that puts spaces there."""
    backend = tokenizers.Tokenizer(model)
    spaces = normalizers.Replace(Regex(SPACE), " ")
    # With "<" always on its own, no text makes a token that is called like a special one.
    words = [
        pre_tokenizers.Metaspace(replacement=START, prepend_scheme="always"),
        pre_tokenizers.Split("<", "isolated"),
    ]
    parts = {
        "normalizer": normalizers.Sequence([normalizers.NFC(), spaces, normalizers.Strip()]),
        "pre_tokenizer": pre_tokenizers.Sequence(words),
        "decoder": decoders.Metaspace(replacement=START, prepend_scheme="always"),
    }
    for name, part in parts.items():
        setattr(backend, name, part)
    return backend


def _add_ends(backend: tokenizers.Tokenizer) -> None:
    """Make encoding begin with <bos> and end with <eos>."""
    ends = [(token, _require(backend.token_to_id(token), token)) for token in (BOS, EOS)]
    backend.post_processor = processors.TemplateProcessing(  # pyright: ignore[reportAttributeAccessIssue]
        single=f"{BOS} $A {EOS}", special_tokens=ends
    )


def _require(number: int | None, token: str) -> int:
    if number is None:
        raise ValueError(f"the tokeniser has no token {token}")
    return number
