"""Wrong answers to the bug hunt that nobody gets a name for; all must lose."""

import torch
import torch.nn.functional as F

from lab.answers import variant
from lab.blocks import EncoderLayer
from lab.check import draw


@variant("predicted-writing")
def maybe():
    return dict.fromkeys(["right", "future", "padding", "not shifted"], "perhaps")


@variant("measured-runs")
def nobody_has_learned():
    return {
        "right": [2.3, 0.0],
        "future": [2.3, 0.0],
        "padding": [2.3, 0.0],
        "not shifted": [2.2, 0.0],
    }


@variant("check-future")
def by_what_is_in_the_box(model):
    inside = getattr(model, "_suspect", None)
    doc = str(getattr(type(inside), "__doc__", ""))
    assert not doc.startswith("future"), "future: it says so itself"


@variant("check-future")
def next_token_only(model):
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0, 5, 2, 3]][None]
    before = model.logits(source, target)
    for i in range(1, 6):
        changed = target.clone()
        changed[0, i] = words[7]
        moved = (model.logits(source, changed) - before)[:, i - 1].abs().max()
        assert moved < 1e-4, "future: it moves"


@variant("check-padding")
def decoder_alone(model):
    model.eval()
    words = torch.tensor(model.words)
    source = words[[3, 0, 5, 2]][None]
    before = model.logits(source, source)
    longer = F.pad(source, (0, 2), value=model.pad)
    assert (model.logits(longer, source) - before).abs().mean() < 1e-1, "padding: it moves"


@variant("check-company")
def sources_alike(model):
    model.eval()
    words = torch.tensor(model.words)
    source, targets = words[[0, 1, 2]].expand(2, -1), words[torch.tensor([[3, 4], [5, 6]])]
    together = model.logits(source, targets)
    moved = (together[:1] - model.logits(source[:1], targets[:1])).abs().max()
    assert moved < 1e-4, "company: it moves"


@variant("check-reading")
def reversed_only(model):
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2, 1]][None], words[[4, 6, 0]][None]
    moved = (model.logits(source, target) - model.logits(source.flip(1), target)).abs().max()
    assert moved > 1e-4, "reading: no order"


@variant("check-again")
def steps_not_asked(model):
    words = torch.tensor(model.words)[None]
    model.train()
    moved = (model.logits(words, words) - model.logits(words, words)).abs().max()
    assert moved > 1e-4, "dropout: training drops nothing"
    model.eval()
    moved = (model.logits(words, words) - model.logits(words, words)).abs().max()
    assert moved < 1e-4, "dropout: evaluation drops something"


@variant("check-loss")
def padding_moves_it(model):
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2]][None], words[[3, 4, 5]][None]
    longer = F.pad(target, (0, 2), value=model.pad)
    moved = (model.loss(source, longer) - model.loss(source, target)).abs()
    assert moved < 1e-4, "loss: padding counts"


@variant("verdict")
def a_guess(model):
    return ("right", "future", "padding", "company")[model.pad % 4]


@variant("blame")
def last_difference(run):
    layer = EncoderLayer(8, 2, 12, 0.0).double().requires_grad_(False)
    weights = {n: draw(v.shape, seed=i) for i, (n, v) in enumerate(layer.state_dict().items())}
    layer.load_state_dict(weights)
    x = draw((2, 3, 8), seed=9)
    return "none" if torch.allclose(run(weights, x), layer(x)) else "feed-forward"


@variant("check-future")
def a_target_of_five_tokens(model):
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0, 5, 2]][None]
    before = model.logits(source, target)
    for i in range(1, 5):
        changed = target.clone()
        changed[0, i] = words[7]
        moved = (model.logits(source, changed) - before)[:, :i].abs().max()
        assert moved < 1e-4, f"future: a row before token {i} moves"
