"""The lab's language model: a decoder without a source, with a cache and without."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lab import __main__ as command_line
from lab.battery import shaken
from lab.check import draw
from lab.five_minutes import torchs_loss
from lab.language_model import (
    WINDOW,
    LanguageModel,
    Remembering,
    Sourceless,
    batches,
    losses_of,
    new_model,
    train,
)
from lab.stories import Stories
from solutions import transformer
from tests.conftest import ROOT

IDS = torch.tensor([[3, 7, 1, 1, 6], [2, 0, 8, 5, 10]])


@pytest.fixture
def model() -> LanguageModel:
    """Two layers with numbers of our own, in double precision."""
    return shaken(LanguageModel(11, draw((9, 12)), 2, 3, 20), seed=1).eval()


def test_it_is_torchs_decoder_with_its_cross_attention_removed(model: LanguageModel):
    layer = nn.TransformerDecoderLayer(12, 3, 20, 0.0, batch_first=True, norm_first=True)
    decoder = nn.TransformerDecoder(layer, 2, nn.LayerNorm(12)).double()
    state = {
        name.replace("norm2", "norm3"): value for name, value in model.layers.state_dict().items()
    }
    decoder.load_state_dict(state, strict=False)
    with torch.no_grad():
        for name, weight in decoder.named_parameters():
            if "multihead_attn.out_proj" in name:
                weight.zero_()  # what it adds to each token is nothing
        x, memory = model.placed(IDS), draw((2, 4, 12), seed=3)
        later = torch.ones(5, 5, dtype=torch.bool).triu(1)
        logits = F.linear(decoder(x, memory, tgt_mask=later), model.table.weight)
        assert (model(IDS) - logits).abs().max() < 1e-10


@torch.no_grad()
def test_later_tokens_change_no_earlier_logits(model: LanguageModel):
    whole = model(IDS)
    for n in range(1, 5):
        assert torch.allclose(model(IDS[:, :n]), whole[:, :n], atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("parts", [(5,), (1, 1, 1, 1, 1), (3, 1, 1), (1, 3, 1), (2, 2, 1)])
@pytest.mark.parametrize("make", [LanguageModel, transformer.LanguageModel])
def test_with_a_cache_the_logits_are_the_same(make: type[nn.Module], parts: tuple[int, ...]):
    model = shaken(make(11, draw((9, 12)), 2, 3, 20), seed=1).eval()
    whole, remembering = model(IDS), Remembering(model)
    for _ in range(2):  # a second text, too
        remembering.reset()
        found, offset = [], 0
        for new in IDS.split(parts, dim=1):
            found.append(remembering(new, offset))
            offset += new.shape[1]
        assert (torch.cat(found, dim=1) - whole).abs().max() < 1e-10
    assert torch.equal(model(IDS), whole), "the model itself has no cache"


def test_batches_are_windows_of_the_stream_and_the_last_token_is_among_them():
    stream = torch.arange(WINDOW + 3)
    seen = torch.cat(list(batches(stream, 3)))
    assert (seen.diff(dim=1) == 1).all() and seen.shape[1] == WINDOW + 1
    assert {0, 1, 2} == set(seen[:, 0].tolist())


def test_a_short_training_comes_nearer_to_the_best_loss_and_not_below_it():
    source = Stories()
    model = new_model(len(source), width=32)
    first, *_, last = train(model, source.draw(20_000, seed=1), steps=60)
    windows = source.draw(100 * (WINDOW + 1), seed=2).view(-1, WINDOW + 1)
    best = source.best_losses(windows)[:, 1:].mean()
    assert last < first - 1
    assert losses_of(model, windows).mean() > best


def test_an_unanswered_class_has_a_stand_in(capsys: pytest.CaptureFixture[str]):
    def stub(*_: object) -> LanguageModel:
        raise NotImplementedError

    assert isinstance(new_model(11, make=stub), LanguageModel)
    assert "the lab's stands in" in capsys.readouterr().out


def test_without_positions_the_table_is_empty_and_the_other_weights_are_the_same():
    whole, without = new_model(11, 8), new_model(11, 8, positions=False)
    assert not without.get_buffer("places").any()
    for one, other in zip(whole.parameters(), without.parameters(), strict=True):
        assert torch.equal(one, other)


@torch.no_grad()
def test_what_was_written_for_translators_takes_a_model_without_a_source(model: LanguageModel):
    sourceless = Sourceless(model)
    nothing = torch.zeros(2, 1, dtype=torch.int64)
    (said, _) = transformer.greedy_decode(sourceless, nothing, bos_id=3, eos_id=99, max_len=6)
    ids = torch.tensor([[3]])
    for _ in range(6):
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], dim=1)
    assert said == ids[0, 1:].tolist()
    assert torch.equal(sourceless(nothing, IDS), model(IDS))


def test_a_step_of_a_translators_takes_a_step_of_a_language_model(model: LanguageModel):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    before = [parameter.clone() for parameter in model.parameters()]
    loss = transformer.train_step(Sourceless(model), IDS[:, :1], IDS, optimizer, 10, torchs_loss)
    with torch.no_grad():
        for parameter, old in zip(model.parameters(), before, strict=True):
            assert not torch.equal(parameter, old)
            parameter.copy_(old)
        assert loss == pytest.approx(float(torchs_loss(model(IDS[:, :-1]), IDS[:, 1:], 10)))


def test_a_module_tells_a_story(capsys: pytest.CaptureFixture[str]):
    reference = str(ROOT / "solutions" / "transformer.py")
    assert command_line.main(["tell", reference, "--steps", "2", "--words", "5"]) == 0
    printed = capsys.readouterr().out
    assert "your own     LanguageModel, label_smoothed_loss" in printed
    assert "the best possible is 1.4" in printed
    *_, story = printed.strip().splitlines()
    assert story.startswith("<new>") and len(story.split()) == 6


@pytest.mark.parametrize("flag", ["--steps", "--words", "--temperature"])
def test_a_story_of_nothing_is_refused(flag: str, capsys: pytest.CaptureFixture[str]):
    reference = str(ROOT / "solutions" / "transformer.py")
    assert command_line.main(["tell", reference, flag, "0"]) == 2
    assert "at least 1" in capsys.readouterr().err


def test_a_module_without_a_language_model_is_told_the_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "my_transformer.py"
    path.write_text("class Transformer: ...\ndef sinusoidal_encoding(): ...\n", encoding="utf-8")
    assert command_line.main(["tell", str(path)]) == 2
    assert "it is question 12.2" in capsys.readouterr().err
