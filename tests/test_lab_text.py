"""The tokeniser and the batches made with it."""

import pytest
import torch

from lab.batching import batches, pad_ids
from lab.corpus import sentence_pairs
from lab.text import Tokenizer

SENTENCES = ["the cat sleeps .", "the owl sees the cat .", "l' ami dort ."]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(SENTENCES)


def test_a_known_sentence_comes_back_unchanged(tokenizer):
    assert [tokenizer.decode(tokenizer.encode(one)) for one in SENTENCES] == SENTENCES


def test_ids_run_from_bos_to_eos_with_one_id_per_word(tokenizer):
    ids = tokenizer.encode("the cat sleeps .")
    assert (ids[0], ids[-1], len(ids)) == (tokenizer.bos_id, tokenizer.eos_id, 6)


def test_a_tokenizer_that_was_written_down_encodes_and_decodes_the_same(tokenizer):
    copy = Tokenizer.from_json(tokenizer.to_json())
    sentence = "the dog sees l' ami ."
    assert copy.encode(sentence) == tokenizer.encode(sentence)
    assert copy.decode(copy.encode(sentence)) == tokenizer.decode(tokenizer.encode(sentence))
    assert (len(copy), copy.pad_id, copy.eos_id) == (
        len(tokenizer),
        tokenizer.pad_id,
        tokenizer.eos_id,
    )


def test_an_unknown_word_becomes_unk_and_stays_visible(tokenizer):
    ids = tokenizer.encode("the dragon sleeps .")
    assert ids[2] == tokenizer.unk_id
    assert tokenizer.decode(ids) == "the <unk> sleeps ."


def test_padding_is_left_out_of_decoded_text(tokenizer):
    ids = [*tokenizer.encode("the cat ."), tokenizer.pad_id, tokenizer.pad_id]
    assert tokenizer.decode(ids) == "the cat ."


def test_tensors_can_be_decoded(tokenizer):
    assert tokenizer.decode(torch.tensor(tokenizer.encode("the owl ."))) == "the owl ."


def test_the_length_counts_words_and_special_tokens(tokenizer):
    words = {word for sentence in SENTENCES for word in sentence.split()}
    assert len(tokenizer) == len(words) + 4


def test_special_tokens_have_different_ids_below_the_length(tokenizer):
    ids = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id}
    assert len(ids) == 4
    assert max(ids) < len(tokenizer)


def test_rare_words_are_unknown():
    tokenizer = Tokenizer.train(SENTENCES, min_freq=2)
    assert (
        tokenizer.decode(tokenizer.encode("the owl sees the cat .")) == "the <unk> <unk> the cat ."
    )


def test_training_twice_gives_the_same_ids():
    sentences = [english for english, _ in sentence_pairs(300)]
    first, second = Tokenizer.train(sentences), Tokenizer.train(sentences)
    assert [first.encode(one) for one in sentences] == [second.encode(one) for one in sentences]


def test_many_sentences_are_encoded_as_one_by_one(tokenizer):
    assert tokenizer.encode_all(SENTENCES) == [tokenizer.encode(one) for one in SENTENCES]
    assert tokenizer.encode_all([]) == []


def test_each_id_has_a_readable_label(tokenizer):
    ids = [*tokenizer.encode("the dragon ."), tokenizer.pad_id]
    assert tokenizer.tokens(ids) == ["<bos>", "the", "<unk>", ".", "<eos>", "<pad>"]


BOTH = [sentence for pair in sentence_pairs(300) for sentence in pair]


@pytest.fixture(scope="module")
def subwords() -> Tokenizer:
    return Tokenizer.train_subwords(BOTH, vocab_size=200)


def test_sentences_come_back_from_their_parts_word_for_word(subwords):
    assert [subwords.decode(subwords.encode(one)) for one in BOTH] == BOTH


def test_words_that_training_did_not_see_are_spelt(subwords):
    assert subwords.decode(subwords.encode("thecat seelings")) == "thecat seelings"


def test_special_tokens_have_the_first_ids(subwords):
    ids = (subwords.pad_id, subwords.unk_id, subwords.bos_id, subwords.eos_id)
    assert ids == (0, 1, 2, 3)
    encoded = subwords.encode("the cat .")
    assert (encoded[0], encoded[-1]) == (2, 3)
    assert subwords.decode([*encoded, 0, 0]) == "the cat ."


def test_the_vocabulary_has_the_size_asked_for_and_every_id_a_label(subwords):
    assert len(subwords) == 200
    labels = subwords.tokens(range(200))
    assert len(set(labels)) == 200
    assert labels[:4] == ["<pad>", "<unk>", "<bos>", "<eos>"]
    assert "▁the" in labels


def test_a_larger_vocabulary_makes_shorter_sentences(subwords):
    larger = Tokenizer.train_subwords(BOTH, vocab_size=400)
    lengths = [sum(map(len, one.encode_all(BOTH))) for one in (subwords, larger)]
    assert lengths[1] < 0.9 * lengths[0]


def test_what_occurs_once_is_not_worth_a_token():
    assert len(Tokenizer.train_subwords(["abcdef ghi"], vocab_size=100)) == 4 + 1 + 9
    assert len(Tokenizer.train_subwords(["abcdef ghi abc"], vocab_size=100)) == 4 + 1 + 9 + 3


def test_subwords_stop_where_nothing_is_left_to_merge():
    tokenizer = Tokenizer.train_subwords(SENTENCES, vocab_size=10_000)
    assert len(tokenizer) < 100
    assert tokenizer.decode(tokenizer.encode(SENTENCES[1])) == SENTENCES[1]


def test_learning_subwords_twice_gives_the_same_tokeniser(subwords):
    assert Tokenizer.train_subwords(iter(BOTH), vocab_size=200).to_json() == subwords.to_json()


def test_subwords_that_were_written_down_encode_and_decode_the_same(subwords):
    copy = Tokenizer.from_json(subwords.to_json())
    assert copy.encode_all(BOTH) == subwords.encode_all(BOTH)
    assert copy.decode(copy.encode(BOTH[0])) == BOTH[0]
    assert len(copy) == len(subwords)


def test_white_space_of_every_kind_becomes_one_space(subwords):
    kinds = [chr(number) for number in range(0x3001) if chr(number).isspace()]
    assert len(kinds) == 29
    text = "".join(f"the{kind}{kind}cat" for kind in kinds)
    assert subwords.decode(subwords.encode(f" {text}\n")) == " ".join(text.split())


def test_composed_and_decomposed_letters_are_the_same(subwords):
    assert subwords.encode("e\u0301cole") == subwords.encode("\u00e9cole")


def test_text_that_looks_like_a_special_token_is_only_text():
    strange = ["a <pad> b", "<eos><bos> <pad>", "x<pad>y ▁ <unk> <", "▁a▁"]
    tokenizer = Tokenizer.train_subwords(strange * 50, vocab_size=200)
    for sentence in strange:
        ids = tokenizer.encode(sentence)
        assert not {0, 1, 2, 3} & set(ids[1:-1])
        assert tokenizer.decode(ids) == sentence


def test_letters_that_training_did_not_see_become_unk(subwords):
    ids = subwords.encode("the 猫 .")
    assert ids.count(subwords.unk_id) == 1
    assert subwords.decode(ids) == "the <unk> ."
    assert subwords.unk_id in subwords.encode("<pad>")
    assert subwords.pad_id not in subwords.encode("<pad>")


def test_an_empty_sentence_has_its_ends_only(subwords):
    assert subwords.encode(" ") == [subwords.bos_id, subwords.eos_id]
    assert subwords.decode(subwords.encode("")) == ""


def test_a_vocabulary_without_room_for_the_letters_is_refused():
    letters = len({letter for sentence in BOTH for letter in sentence})  # the space begins words
    with pytest.raises(ValueError, match=rf"vocab_size \(20\) must be at least {letters + 4}"):
        Tokenizer.train_subwords(BOTH, vocab_size=20)
    assert len(Tokenizer.train_subwords(BOTH, vocab_size=letters + 4)) == letters + 4


@pytest.mark.parametrize("number", [-1, 1000])
def test_an_id_that_does_not_exist_is_refused(tokenizer, number):
    with pytest.raises(ValueError, match=f"id {number} is not in 0 to"):
        tokenizer.decode([number])


def test_a_minimum_frequency_below_1_is_refused():
    with pytest.raises(ValueError, match=r"min_freq \(0\)"):
        Tokenizer.train(SENTENCES, min_freq=0)


def test_padding_goes_to_the_right_and_lengths_count_real_ids():
    ids, lengths = pad_ids([[5, 6, 7], [8], []], pad_id=9)
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9], [9, 9, 9]]
    assert lengths.tolist() == [3, 1, 0]
    assert (ids.dtype, lengths.dtype) == (torch.int64, torch.int64)


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="0 sequences"):
        pad_ids([], pad_id=0)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return sentence_pairs(203)


@pytest.fixture(scope="module")
def both(pairs) -> tuple[Tokenizer, Tokenizer]:
    return (
        Tokenizer.train(english for english, _ in pairs),
        Tokenizer.train(french for _, french in pairs),
    )


def test_batches_hold_every_pair_once_source_beside_its_target(pairs, both):
    source, target = both
    seen = [
        (source.decode(src), target.decode(tgt))
        for batch in batches(pairs, *both, batch_size=16)
        for src, tgt in zip(batch.source, batch.target, strict=True)
    ]
    assert sorted(seen) == sorted(pairs)


def test_batch_lengths_are_those_of_the_rows(pairs, both):
    source, target = both
    for batch in batches(pairs, *both, batch_size=16):
        assert batch.source_lengths.equal((batch.source != source.pad_id).sum(1))
        assert batch.target_lengths.equal((batch.target != target.pad_id).sum(1))


def test_batches_are_full_but_for_one(pairs, both):
    sizes = sorted(len(batch.source) for batch in batches(pairs, *both, batch_size=16))
    assert sizes == [203 % 16] + [16] * (203 // 16)


def test_batches_depend_on_the_seed_alone(pairs, both):
    def rows(seed: int) -> list[list[list[int]]]:
        return [batch.source.tolist() for batch in batches(pairs, *both, batch_size=16, seed=seed)]

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_sentences_of_similar_length_share_a_batch(pairs, both):
    wasted = sum(
        batch.source.numel() - int(batch.source_lengths.sum())
        for batch in batches(pairs, *both, batch_size=16)
    )
    everything = sum(batch.source.numel() for batch in batches(pairs, *both, batch_size=16))
    assert wasted < 0.1 * everything


def test_batches_do_not_come_in_order_of_length(pairs, both):
    widths = [batch.source.shape[1] for batch in batches(pairs, *both, batch_size=16)]
    assert widths != sorted(widths)


def test_a_batch_size_below_1_is_refused_at_once(pairs, both):
    with pytest.raises(ValueError, match=r"batch_size \(0\)"):
        batches(pairs, *both, batch_size=0)
