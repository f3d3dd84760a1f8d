"""The lab's patches, encoder and captioner: right, and able to learn."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lab.battery import shaken
from lab.blocks import causal_mask
from lab.check import draw
from lab.digits import handwritten
from lab.drawings import LENGTH, QUESTIONS, drawings
from lab.pictures import (
    D_MODEL,
    NUM_PATCHES,
    PATCH,
    Captioner,
    Classifier,
    PatchEncoder,
    caption_losses,
    captions_of,
    new_captioner,
    new_encoder,
    orders,
    patchify,
    shares_right,
    shuffled,
    train_captioner,
    train_classifier,
    unpatchify,
)


def test_patches_come_row_by_row_and_go_back():
    numbered = torch.arange(24.0).view(1, 1, 4, 6)
    assert patchify(numbered, 2)[0, :2].tolist() == [[0, 1, 6, 7], [2, 3, 8, 9]]
    pictures = draw((2, 3, 4, 6))
    for size in (1, 2):
        assert torch.equal(unpatchify(patchify(pictures, size), size, 4, 6), pictures)
    assert torch.equal(patchify(pictures, 1), pictures.flatten(2).transpose(1, 2))


@pytest.mark.parametrize("size", [0, 3, 4])
def test_patches_that_do_not_fill_the_picture_are_refused(size: int):
    with pytest.raises(ValueError, match="do not fill"):
        patchify(draw((1, 1, 4, 6)), size)


@torch.no_grad()
def test_without_positions_the_order_of_patches_is_not_seen():
    model = shaken(PatchEncoder(12, 6, 8, 2, 2, 20)).eval()
    model.positions[:] = model.positions[0]
    patches, order = draw((2, 6, 12), seed=1), torch.tensor([[3, 0, 5, 1, 4, 2]])
    whole, mixed = model(patches), model(shuffled(patches, order))
    assert torch.allclose(mixed[:, 0], whole[:, 0], atol=1e-10)
    assert torch.allclose(mixed[:, 1:], whole[:, 1:][:, order[0]], atol=1e-10)


@torch.no_grad()
def test_a_captioner_is_a_decoder_whose_memory_are_patches():
    eyes = nn.Linear(5, 8, bias=False)
    model = shaken(Captioner(eyes, 11, draw((9, 8)), 2, 2, 20)).eval()
    patches, ids = draw((2, 6, 5), seed=2), torch.tensor([[3, 7, 1], [2, 0, 10]])
    x = F.embedding(ids, model.embedding.weight) + model.table[:3]
    x = model.writer(x, patches @ eyes.weight.T, tgt_mask=~causal_mask(3))
    assert torch.allclose(model(patches, ids), x @ model.embedding.weight.T, atol=1e-10)
    assert torch.allclose(model(patches, ids[:, :2]), model(patches, ids)[:, :2], atol=1e-10)


def test_a_classifier_reads_the_class_token_or_the_mean_of_the_others():
    torch.manual_seed(0)
    tokens = torch.randn(2, 5, D_MODEL)
    for mean, read in ((False, tokens[:, 0]), (True, tokens[:, 1:].mean(1))):
        model = Classifier(nn.Identity(), D_MODEL, mean, num_answers=10)
        assert torch.equal(model(tokens), model.head(read)) and model(tokens).shape == (2, 10)


def test_the_digits_are_1797_pictures_about_as_many_of_each():
    pictures, digits = handwritten()
    assert pictures.shape == (1797, 1, 8, 8) and pictures.dtype == torch.float32
    assert (pictures.min(), pictures.max()) == (0, 1) and digits.dtype == torch.int64
    assert sorted(digits.unique().tolist()) == list(range(10))
    assert all(170 < count < 190 for count in digits.bincount().tolist())
    half = digits == 0  # of a nought the middle is empty, of a one it is not
    middle = pictures[:, 0, 3:5, 3:5].mean((1, 2))
    assert middle[half].mean() < 0.3 < middle[digits == 1].mean()


def test_orders_are_permutations_drawn_from_a_seed():
    some = orders(5, seed=1)
    assert some.sort(1).values.tolist() == [list(range(NUM_PATCHES))] * 5
    assert torch.equal(some, orders(5, seed=1)) and not torch.equal(some, orders(5, seed=2))


def test_both_learn_in_a_few_steps():
    data = drawings(300, seed=1)
    patches = patchify(data.pictures, PATCH)
    shares = shares_right(
        train_classifier(new_encoder(), patches, data.answers, 60), patches, data.answers
    )
    assert sorted(shares) == sorted(QUESTIONS) and shares["colour"] > 0.8
    captioner = new_captioner(new_encoder())
    record = train_captioner(captioner, patches, data.captions, 60)
    assert sum(record[-10:]) < 0.3 * sum(record[:10])
    losses = caption_losses(captioner, patches, data.captions)
    assert losses.shape == (300, LENGTH - 1)
    said = captions_of(captioner, patches[:20])
    assert len(said) == 20 and all(caption.startswith("a ") for caption in said)


def test_what_is_not_answered_is_stood_in_for(capsys: pytest.CaptureFixture[str]):
    def unanswered(*sizes: object) -> nn.Module:
        raise NotImplementedError

    encoder = new_encoder(make=unanswered)
    assert isinstance(encoder, PatchEncoder)
    assert isinstance(new_captioner(encoder, make=unanswered), Captioner)
    said = capsys.readouterr().out
    assert "PatchEncoder is not answered yet" in said and "Captioner is not answered yet" in said
