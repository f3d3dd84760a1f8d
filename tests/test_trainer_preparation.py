"""The vocabularies that a training begins with: one for both languages, or one for each."""

import pytest

from lab.assembled import load_module
from lab.text import SPECIALS
from tests import small_training
from tests.small_training import CONFIG, MODULE
from trainer.preparation import Tokenizers, configured_model, learn_tokenizers

APART = CONFIG.with_fields({"vocab_size": 200, "target_vocab_size": 150})


@pytest.mark.parametrize("config", [CONFIG, APART])
def test_what_is_written_down_is_read_again(config):
    found = learn_tokenizers(small_training.corpus(), config)
    again = Tokenizers.from_json(found.to_json())
    assert again.joint == found.joint == (config is CONFIG)
    for before, after in ((found.source, again.source), (found.target, again.target)):
        assert before.to_json() == after.to_json()
    assert found.pad_id == found.source.pad_id == found.target.pad_id


def test_a_vocabulary_of_its_own_knows_its_language_alone():
    corpus = small_training.corpus()
    found = learn_tokenizers(corpus, APART)
    assert (len(found.source), len(found.target)) == (200, 150)
    letters = [
        {letter for pair in corpus.train for letter in pair[side]} - {" "} for side in (0, 1)
    ]
    for tokenizer, own, other in ((found.source, *letters), (found.target, *reversed(letters))):
        known = set("".join(tokenizer.tokens(range(len(SPECIALS), len(tokenizer)))))
        assert own <= known
        assert not (other - own) & known


def test_pairs_are_encoded_by_the_tokeniser_of_their_language():
    data = small_training.data(APART)
    source, target = data.train[0]
    assert (source, target) in [
        (data.tokenizers.source.encode(first), data.tokenizers.target.encode(second))
        for first, second in data.corpus.train
    ]
    model = configured_model(load_module(MODULE), data.tokenizers, APART)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert shapes["source_embedding.weight"] == (200, 16)
    assert shapes["target_embedding.weight"] == shapes["generator.weight"] == (150, 16)


def test_two_vocabularies_of_one_size_are_refused():
    config = CONFIG.with_fields({"vocab_size": 150, "target_vocab_size": 150})
    with pytest.raises(ValueError, match=r"both languages have 150 subwords.* to 149"):
        learn_tokenizers(small_training.corpus(), config)
