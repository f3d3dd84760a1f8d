"""The last notebook's small translator: whole, with a part missing, and from a student's module."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from lab.phenomena import dictionary_forms
from lab.translator import MISSING, Translator, lab_workshop, sinusoids, workshop
from tests.conftest import ROOT

SOURCE, TARGET = torch.tensor([[3, 4, 5], [6, 7, 0]]), torch.tensor([[1, 4, 5], [1, 6, 0]])


def model(without: str = "") -> Translator:
    torch.manual_seed(0)
    return Translator(9, 8, 12, pad_id=0, without=without).eval()


def test_the_whole_model_sees_the_past_and_no_padding():
    whole = model()
    logits = whole(SOURCE, TARGET)
    assert logits.shape == (2, 3, 8)
    later = TARGET.clone()
    later[0, 2] = 7
    torch.testing.assert_close(whole(SOURCE, later)[0, :2], logits[0, :2])
    torch.testing.assert_close(whole(SOURCE[1:, :2], TARGET[1:, :2])[0], logits[1, :2])


def test_without_the_mask_the_future_is_seen():
    later = TARGET.clone()
    later[0, 2] = 7
    open_eyed = model("causal mask")
    assert (open_eyed(SOURCE, later) - open_eyed(SOURCE, TARGET))[0, 0].abs().max() > 1e-3


def test_without_positions_the_order_of_the_source_does_not_count():
    turned = SOURCE[:1].flip(1)
    blind = model("positions")
    torch.testing.assert_close(blind(turned, TARGET[:1]), blind(SOURCE[:1], TARGET[:1]))
    whole = model()
    assert not torch.allclose(whole(turned, TARGET[:1]), whole(SOURCE[:1], TARGET[:1]))


def test_without_residuals_a_sub_layer_of_zeros_leaves_nothing_of_its_input():
    plain: Any = model("residuals").encoder.layers[0]
    for parameter in plain.feed_forward.parameters():
        torch.nn.init.zeros_(parameter)
    x = torch.randn(2, 3, 64)
    torch.testing.assert_close(plain(x), torch.zeros(2, 3, 64))


def test_what_cannot_be_missing_is_refused():
    with pytest.raises(ValueError, match=r"without \('heads'\) must be one of positions"):
        model("heads")
    assert [model(one) for one in MISSING]


def test_the_table_of_positions_is_the_papers():
    table = sinusoids(3, 4)
    assert table[0].tolist() == [0.0, 1.0, 0.0, 1.0]
    torch.testing.assert_close(table[2, 2], torch.tensor(0.02).sin())


def test_without_a_module_everything_is_the_labs(tmp_path: Path):
    lab = workshop(tmp_path)
    assert lab.own == () and "Transformer" in lab.stand_ins
    made, step = lab.new_model(), lab.update()
    losses = [step(made, *pair) for pair in lab.stream(12)]
    assert len(losses) == 12 and losses[-1] < losses[0]
    english = [pair[0] for pair in lab.data.held_out[:3]]
    assert len(lab.translate(made, english)) == 3
    with pytest.raises(ValueError, match="has no beam_search"):
        lab.search(made, english)
    assert lab.bleu([["a", "b", "c", "d"]], [["a", "b", "c", "d"]]) == pytest.approx(100)


@pytest.mark.parametrize("where", [".", "..", "../.."])
def test_a_module_here_or_up_to_two_folders_up_is_used(where: str, tmp_path: Path):
    notebooks = tmp_path / "exercises" / "11_your_translator"  # as in the hand-out
    notebooks.mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / "transformer.py", notebooks / where / "my_transformer.py")
    lab = workshop(notebooks)
    assert lab.stand_ins == ()
    assert type(lab.new_model()).__name__ == "Transformer"
    english = [pair[0] for pair in lab.data.held_out[:1]]
    assert len(lab.search(lab.new_model(), english, width=2)) == 1


def test_a_module_that_cannot_be_imported_is_said_and_left_out(tmp_path: Path, capsys):
    (tmp_path / "my_transformer.py").write_text("import nothing_of_this_name", encoding="utf-8")
    assert workshop(tmp_path).own == ()
    assert "cannot be imported" in capsys.readouterr().out


def test_the_rate_reaches_the_optimiser_of_the_lab():
    lab = lab_workshop()
    optimizer, scheduler = lab.optimiser(lab.new_model(), peak=0.5, warmup=2)
    rates = []
    for _ in range(3):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates[:2] == pytest.approx([0.25, 0.5])


def test_every_form_has_its_dictionary_form():
    forms = dictionary_forms()
    assert forms["noires"] == "noir" and forms["chats"] == "chat"
    assert forms["voient"] == "voir" and forms["la"] == "le"
