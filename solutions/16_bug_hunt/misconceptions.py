"""Wrong answers to the bug hunt, as students write them, and what each shows."""

import torch
import torch.nn.functional as F

from lab.answers import misconception
from lab.battery import shaken
from lab.blocks import EncoderLayer
from lab.check import draw

# 16.1 Four losses


@misconception(
    "predicted-writing",
    id="BH1",
    fails=["predicted-writing-made"],
    read="16_bug_hunt#hunt-losses",
)
def one_word():
    """A prediction for all four at once is none: give one for each name in RUNS."""
    return "fails"


@misconception(
    "predicted-writing",
    id="BH2",
    fails=["predicted-writing-made"],
    read="16_bug_hunt#hunt-losses",
)
def truths():
    """You predict True and False; the words are "writes" and "fails"."""
    return {"right": True, "future": False, "padding": True, "not shifted": False}


@misconception(
    "predicted-writing",
    id="BH3",
    fails=["predicted-writing-made"],
    read="16_bug_hunt#hunt-losses",
)
def wrong_ones_only():
    """The right model has to be predicted, too: it is what the others are compared with."""
    return {"future": "fails", "padding": "writes", "not shifted": "fails"}


@misconception(
    "measured-runs",
    id="BH4",
    fails=["measured-runs-consistent"],
    read="16_bug_hunt#hunt-losses",
)
def losses_alone():
    """You return losses alone; without the shares nobody sees which model is wrong."""
    return {"right": [0.062], "future": [0.023], "padding": [0.041], "not shifted": [0.001]}


@misconception(
    "measured-runs",
    id="BH5",
    fails=["measured-runs-consistent"],
    read="16_bug_hunt#hunt-losses",
)
def shares_first():
    """You have exchanged the two numbers: first the loss, then the share."""
    return {
        "right": [0.95, 0.062],
        "future": [0.06, 0.023],
        "padding": [0.965, 0.041],
        "not shifted": [0.0, 0.001],
    }


@misconception(
    "measured-runs",
    id="BH6",
    fails=["measured-runs-consistent"],
    read="16_bug_hunt#hunt-losses",
)
def low_loss_writes():
    """A low loss is no proof of writing: these shares follow the losses, and were not measured."""
    return {
        "right": [0.062, 0.95],
        "future": [0.023, 0.98],
        "padding": [0.041, 0.965],
        "not shifted": [0.001, 1.0],
    }


# 16.2 Who sees ahead?


@misconception(
    "check-future",
    id="BH7",
    fails=["check-future-practice", "check-future-leaks", "check-future-right"],
    read="16_bug_hunt#hunt-future",
)
def shapes_only(model):
    """You look at shapes; a leak has the right ones. Your check lets everybody go."""
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2]][None], words[[3, 4, 5]][None]
    shape = model.logits(source, target).shape
    assert shape == (1, 3, model.vocab), "future: wrong shape"


@misconception(
    "check-future",
    id="BH8",
    fails=["check-future-practice", "check-future-leaks", "check-future-right"],
    read="16_bug_hunt#hunt-modes",
)
def in_training(model):
    """You compare two calls in training, where dropout makes any two differ: first model.eval()."""
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0, 5, 2, 3, 1, 6]][None]
    before = model.logits(source, target)
    for i in range(1, 8):
        changed = target.clone()
        changed[0, i] = words[7]
        moved = (model.logits(source, changed) - before)[:, :i].abs().max()
        assert moved < 1e-4, "future: it moves"


@misconception(
    "check-future",
    id="BH9",
    fails=["check-future-practice", "check-future-leaks", "check-future-right"],
    read="16_bug_hunt#hunt-grain",
)
def to_the_last_digit(model):
    """You ask for equality to the last digit, which no machine gives: right models are accused."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0, 5, 2, 3, 1, 6]][None]
    before = model.logits(source, target)
    for i in range(1, 8):
        changed = target.clone()
        changed[0, i] = words[7]
        after = model.logits(source, changed)
        assert torch.equal(after[:, :i], before[:, :i]), "future: it moves"


@misconception(
    "check-future",
    id="BH10",
    fails=["check-future-leaks"],
    read="16_bug_hunt#hunt-future",
)
def short_target(model):
    """Your target is too short for a leak from far ahead: nothing stands there."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0]][None]
    before = model.logits(source, target)
    for i in (1, 2):
        changed = target.clone()
        changed[0, i] = words[7]
        moved = (model.logits(source, changed) - before)[:, :i].abs().max()
        assert moved < 1e-4, "future: it moves"


@misconception(
    "check-future",
    id="BH10b",
    fails=["check-future-leaks"],
    read="16_bug_hunt#hunt-future",
)
def last_target_token_only(model):
    """You change the last target token only; a row may see another one that comes after it."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0, 5, 2, 3, 1, 6]][None]
    changed = target.clone()
    changed[0, -1] = words[7]
    moved = (model.logits(source, changed) - model.logits(source, target))[:, :-1].abs().max()
    assert moved < 1e-4, "future: it moves"


@misconception(
    "check-future",
    id="BH11",
    fails=["check-future-practice", "check-future-leaks", "check-future-right"],
    read="16_bug_hunt#hunt-names",
)
def nameless(model):
    """Your check finds leaks and does not say so: the message should begin with "future"."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0, 5, 2, 3, 1, 6]][None]
    before = model.logits(source, target)
    for i in range(1, 8):
        changed = target.clone()
        changed[0, i] = words[7]
        moved = (model.logits(source, changed) - before)[:, :i].abs().max()
        assert moved < 1e-4, "this model is wrong"


@misconception(
    "check-future",
    id="BH12",
    fails=["check-future-right"],
    read="16_bug_hunt#hunt-one-change",
)
def both_in_one_batch(model):
    """You put other sentences beside it, and so accuse models whose sentences hear each other."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0, 5, 2, 3, 1, 6]][None]
    for i in range(1, 8):
        changed = target.clone()
        changed[0, i] = words[7]
        found = model.logits(source.expand(2, -1), torch.cat([target.flip(1), changed]))
        moved = (found[1] - model.logits(source, target)[0])[:i].abs().max()
        assert moved < 1e-4, "future: it moves"


@misconception(
    "check-future",
    id="BH13",
    fails=["check-future-leaks"],
    read="16_bug_hunt#hunt-future",
)
def last_row_but_one(model):
    """You look at one row, the last but one; a leak may show in others only."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 1, 0, 5, 2, 3, 1, 6]][None]
    changed = target.clone()
    changed[0, -1] = words[7]
    moved = model.logits(source, changed)[:, -2] - model.logits(source, target)[:, -2]
    assert moved.abs().max() < 1e-4, "future: it moves"


# 16.3 What stands behind the sentence


@misconception(
    "check-padding",
    id="BH14",
    fails=["check-padding-practice", "check-padding-leaks", "check-padding-right"],
    read="16_bug_hunt#hunt-losses",
)
def low_loss_is_right(model):
    """You look at the loss, and a model that reads padding has as low a one as any."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[1, 4, 6]][None]
    loss = model.loss(source, target)
    assert 0 <= float(loss) < 100, "padding: it does not learn"


@misconception(
    "check-padding",
    id="BH15",
    fails=["check-padding-practice", "check-padding-leaks", "check-padding-right"],
    read="16_bug_hunt#hunt-modes",
)
def padding_in_training(model):
    """You compare two calls in training, where any two differ: switch to evaluation first."""
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[1, 4, 6]][None]
    before = model.logits(source, target)
    for count in (1, 2, 5):
        longer = F.pad(source, (0, count), value=model.pad)
        moved = (model.logits(longer, target) - before).abs().max()
        assert moved < 1e-4, "padding: it moves"


@misconception(
    "check-padding",
    id="BH16",
    fails=["check-padding-practice", "check-padding-leaks", "check-padding-right"],
    read="16_bug_hunt#hunt-grain",
)
def padding_too_exact(model):
    """Your border lies below the grain of the numbers: right models are accused."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[1, 4, 6]][None]
    before = model.logits(source, target)
    for count in (1, 2, 5):
        longer = F.pad(source, (0, count), value=model.pad)
        moved = (model.logits(longer, target) - before).abs().max()
        assert moved < 1e-9, "padding: it moves"


@misconception(
    "check-padding",
    id="BH18",
    fails=["check-padding-practice"],
    read="16_bug_hunt#hunt-one-change",
)
def padded_in_a_batch(model):
    """You compare a sentence alone with itself in a batch, and accuse models of another fault."""
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad])
    source, target = ids[[3, 0, 5, 2]][None], ids[[1, 4, 6]][None]
    alone = model.logits(source, target)
    for count in (1, 2, 5):
        longer = torch.cat([F.pad(source, (0, count), value=model.pad), ids[None, : 4 + count]])
        both = model.logits(longer, torch.cat([target, target.flip(1)]))
        assert (both[0] - alone[0]).abs().max() < 1e-4, "padding: it moves"


@misconception(
    "check-padding",
    id="BH19",
    fails=["check-padding-leaks"],
    read="16_bug_hunt#hunt-padding",
)
def pad_is_nought(model):
    """You take 0 for padding; which id it is the model says: model.pad."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[1, 4, 6]][None]
    before = model.logits(source, target)
    for count in (1, 2, 5):
        longer = F.pad(source, (0, count), value=model.pad if model.pad == 2 else 0)
        moved = (model.logits(longer, target) - before).abs().max()
        if model.pad == 2 or 0 not in model.words:
            assert moved < 1e-4, "padding: it moves"


@misconception(
    "check-padding",
    id="BH19b",
    fails=["check-padding-leaks"],
    read="16_bug_hunt#hunt-padding",
)
def one_amount(model):
    """You append one amount of padding; a model may be right for it by chance. Ask for several."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[1, 4, 6]][None]
    moved = model.logits(F.pad(source, (0, 1), value=model.pad), target)
    assert (moved - model.logits(source, target)).abs().max() < 1e-4, "padding: it moves"


@misconception(
    "check-padding",
    id="BH19c",
    fails=["check-padding-leaks"],
    read="16_bug_hunt#hunt-padding",
)
def one_larger_amount(model):
    """You append padding once, always as much of it; a model may be right for this amount by
    chance. Ask for several.
    """
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[1, 4, 6]][None]
    moved = model.logits(F.pad(source, (0, 2), value=model.pad), target)
    assert (moved - model.logits(source, target)).abs().max() < 1e-4, "padding: it moves"


# 16.4 In company


@misconception(
    "check-company",
    id="BH20",
    fails=["check-company-leaks"],
    read="16_bug_hunt#hunt-company",
)
def all_of_one_length(model):
    """Your sentences are all of one length, so that a mask that serves all is right by chance."""
    model.eval()
    words = torch.tensor(model.words)
    sources = words[torch.tensor([[0, 1, 2, 7, 3], [3, 4, 5, 6, 7], [2, 6, 1, 0, 4]])]
    targets = words[torch.tensor([[1, 5, 0], [2, 2, 4], [7, 3, 6]])]
    together = model.logits(sources, targets)
    for b in range(3):
        alone = model.logits(sources[[b]], targets[[b]])
        assert (together[b] - alone[0]).abs().max() < 1e-4, "company: it moves"


@misconception(
    "check-company",
    id="BH21",
    fails=["check-company-leaks"],
    read="16_bug_hunt#hunt-company",
)
def first_row_only(model):
    """You look at the first sentence of the batch only; it may be the one that is right."""
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad])
    sources = ids[torch.tensor([[0, 1, 2, 8, 8], [3, 4, 5, 6, 7], [2, 6, 8, 8, 8]])]
    targets = ids[torch.tensor([[1, 5, 0], [2, 2, 4], [7, 3, 6]])]
    alone = model.logits(sources[:1], targets[:1])
    moved = (model.logits(sources, targets)[:1] - alone).abs().max()
    assert moved < 1e-4, "company: it moves"


@misconception(
    "check-company",
    id="BH22",
    fails=["check-company-practice"],
    read="16_bug_hunt#hunt-one-change",
)
def alone_without_padding(model):
    """Alone you take the sentence's padding away, and so accuse models that read padding."""
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad])
    sources = ids[torch.tensor([[0, 1, 2, 8, 8], [3, 4, 5, 6, 7], [2, 6, 8, 8, 8]])]
    targets = ids[torch.tensor([[1, 5, 0], [2, 2, 4], [7, 3, 6]])]
    together = model.logits(sources, targets)
    for b, length in enumerate((3, 5, 2)):
        alone = model.logits(sources[[b], :length], targets[[b]])
        assert (together[b] - alone[0]).abs().max() < 1e-4, "company: it moves"


@misconception(
    "check-company",
    id="BH23",
    fails=["check-company-practice", "check-company-leaks", "check-company-right"],
    read="16_bug_hunt#hunt-modes",
)
def company_in_training(model):
    """You compare in training, where dropout makes any two calls differ."""
    ids = torch.tensor([*model.words[:8], model.pad])
    sources = ids[torch.tensor([[0, 1, 2, 8, 8], [3, 4, 5, 6, 7], [2, 6, 8, 8, 8]])]
    targets = ids[torch.tensor([[1, 5, 0], [2, 2, 4], [7, 3, 6]])]
    together = model.logits(sources, targets)
    for b in range(3):
        alone = model.logits(sources[[b]], targets[[b]])
        assert (together[b] - alone[0]).abs().max() < 1e-4, "company: it moves"


@misconception(
    "check-company",
    id="BH24",
    fails=["check-company-practice", "check-company-leaks", "check-company-right"],
    read="16_bug_hunt#hunt-company",
)
def batch_of_copies(model):
    """Your batch holds one sentence twice: what all have in common is then what it has alone."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[0, 1, 2, 3]][None], words[[4, 5, 6]][None]
    alone = model.logits(source, target)
    both = model.logits(source.expand(2, -1), target.expand(2, -1))
    assert (both[0] - alone[0]).abs().max() < 1e-4, "company: it moves"


@misconception(
    "check-company",
    id="BH25",
    fails=["check-company-practice", "check-company-leaks", "check-company-right"],
    read="16_bug_hunt#hunt-grain",
)
def company_too_exact(model):
    """You ask for equality to the last digit, which no machine gives in another batch."""
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad])
    sources = ids[torch.tensor([[0, 1, 2, 8, 8], [3, 4, 5, 6, 7], [2, 6, 8, 8, 8]])]
    targets = ids[torch.tensor([[1, 5, 0], [2, 2, 4], [7, 3, 6]])]
    together = model.logits(sources, targets)
    for b in range(3):
        alone = model.logits(sources[[b]], targets[[b]])
        assert torch.equal(together[b], alone[0]), "company: it moves"


# 16.5 Does it read?


@misconception(
    "check-reading",
    id="BH26",
    fails=["check-reading-practice", "check-reading-faults", "check-reading-right"],
    read="16_bug_hunt#hunt-reading",
)
def order_forgotten(model):
    """You replace tokens and never move one: a bag of words passes."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2, 1]][None], words[[4, 6, 0, 3]][None]
    before = model.logits(source, target)
    for j in range(5):
        changed = source.clone()
        changed[0, j] = words[7]
        moved = (model.logits(changed, target) - before).abs().amax(-1).min()
        assert moved > 1e-4, "reading: a row stays"


@misconception(
    "check-reading",
    id="BH27",
    fails=["check-reading-practice", "check-reading-faults", "check-reading-right"],
    read="16_bug_hunt#hunt-grain",
)
def grain_taken_for_reading(model):
    """You ask whether anything changes; the grain always does, so nobody is accused."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2, 1]][None], words[[4, 6, 0, 3]][None]
    before = model.logits(source, target)
    assert not torch.equal(model.logits(source.flip(1), target), before), "reading: no order"
    for j in range(5):
        changed = source.clone()
        changed[0, j] = words[7]
        assert not torch.equal(model.logits(changed, target), before), "reading: a row stays"


@misconception(
    "check-reading",
    id="BH28",
    fails=["check-reading-faults"],
    read="16_bug_hunt#hunt-reading",
)
def any_row_will_do(model):
    """You are content if some row changes; each should: early rows may be blind to late tokens."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2, 1]][None], words[[4, 6, 0, 3, 1]][None]
    before = model.logits(source, target)
    for j in range(5):
        changed = source.clone()
        changed[0, j] = words[7]
        assert (model.logits(changed, target) - before).abs().max() > 1e-4, "reading: unread"
    moved = (model.logits(source.flip(1), target) - before).abs().max()
    assert moved > 1e-4, "reading: no order"


@misconception(
    "check-reading",
    id="BH29",
    fails=["check-reading-faults"],
    read="16_bug_hunt#hunt-reading",
)
def last_token_only(model):
    """You replace the last source token only; each should matter."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2, 1]][None], words[[4, 6, 0, 3]][None]
    before = model.logits(source, target)
    changed = source.clone()
    changed[0, -1] = words[7]
    for other in (changed, source.flip(1)):
        moved = (model.logits(other, target) - before).abs().amax(-1).min()
        assert moved > 1e-4, "reading: a row stays"


@misconception(
    "check-reading",
    id="BH29b",
    fails=["check-reading-faults"],
    read="16_bug_hunt#hunt-reading",
)
def first_and_last_token(model):
    """You replace the first and the last source token; those between should matter as well."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2, 1]][None], words[[4, 6, 0, 3]][None]
    before = model.logits(source, target)
    for j in (0, -1):
        changed = source.clone()
        changed[0, j] = words[7]
        moved = (model.logits(changed, target) - before).abs().amax(-1).min()
        assert moved > 1e-4, "reading: a token is ignored"
    moved = (model.logits(source.flip(1), target) - before).abs().max()
    assert moved > 1e-4, "reading: the order is ignored"


@misconception(
    "check-reading",
    id="BH30",
    fails=["check-reading-practice", "check-reading-faults", "check-reading-right"],
    read="16_bug_hunt#hunt-modes",
)
def reading_in_training(model):
    """In training dropout changes every number, which you take for reading."""
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2, 1]][None], words[[4, 6, 0, 3]][None]
    before = model.logits(source, target)
    for j in range(5):
        changed = source.clone()
        changed[0, j] = words[7]
        moved = (model.logits(changed, target) - before).abs().amax(-1).min()
        assert moved > 1e-4, "reading: a row stays"
    moved = (model.logits(source.flip(1), target) - before).abs().max()
    assert moved > 1e-4, "reading: no order"


@misconception(
    "check-reading",
    id="BH31",
    fails=["check-reading-practice", "check-reading-faults", "check-reading-right"],
    read="16_bug_hunt#hunt-reading",
)
def all_numbers_have_to_move(model):
    """You ask every single number to move far; it is enough that in each row one does."""
    model.eval()
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2, 1]][None], words[[4, 6, 0, 3]][None]
    before = model.logits(source, target)
    for other in (words[[3, 0, 5, 2, 7]][None], source.flip(1)):
        moved = (model.logits(other, target) - before).abs().min()
        assert moved > 0.5, "reading: a number stays"


# 16.6 Again, and step by step


@misconception(
    "check-again",
    id="BH32",
    fails=["check-again-dropout"],
    read="16_bug_hunt#hunt-modes",
)
def evaluation_only(model):
    """You ask in evaluation only: a model that never drops anything passes."""
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[4, 6, 0, 3, 1]][None]
    model.eval()
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved < 1e-4, "dropout: evaluation drops something"
    for x in (source, source.flip(1)):
        moved = (model.steps(x, target) - model.logits(x, target)).abs().max()
        assert moved < 1e-4, "cache: it moves"


@misconception(
    "check-again",
    id="BH33",
    fails=["check-again-cache"],
    read="16_bug_hunt#hunt-cache",
)
def one_sentence(model):
    """You decode one sentence only: a cache that is never emptied is right the first time."""
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[4, 6, 0, 3, 1]][None]
    model.train()
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved > 1e-4, "dropout: training drops nothing"
    model.eval()
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved < 1e-4, "dropout: evaluation drops something"
    moved = (model.steps(source, target) - model.logits(source, target)).abs().max()
    assert moved < 1e-4, "cache: it moves"


@misconception(
    "check-again",
    id="BH34",
    fails=["check-again-cache"],
    read="16_bug_hunt#hunt-cache",
)
def two_tokens(model):
    """Your target has two tokens: what a cache forgets, or where it skips, comes later."""
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[4, 6]][None]
    model.train()
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved > 1e-4, "dropout: training drops nothing"
    model.eval()
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved < 1e-4, "dropout: evaluation drops something"
    for x in (source, source.flip(1)):
        moved = (model.steps(x, target) - model.logits(x, target)).abs().max()
        assert moved < 1e-4, "cache: it moves"


@misconception(
    "check-again",
    id="BH35",
    fails=["check-again-dropout"],
    read="16_bug_hunt#hunt-order",
)
def cache_first(model):
    """You ask for the cache first: where no two calls agree, you blame the cache."""
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[4, 6, 0, 3, 1]][None]
    model.eval()
    for x in (source, source.flip(1)):
        moved = (model.steps(x, target) - model.logits(x, target)).abs().max()
        assert moved < 1e-4, "cache: it moves"
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved < 1e-4, "dropout: evaluation drops something"
    model.train()
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved > 1e-4, "dropout: training drops nothing"


@misconception(
    "check-again",
    id="BH36",
    fails=["check-again-dropout", "check-again-cache", "check-again-right"],
    read="16_bug_hunt#hunt-modes",
)
def never_switched(model):
    """You never switch to evaluation, and take training's dropout for a fault."""
    words = torch.tensor(model.words)
    source, target = words[[3, 0, 5, 2]][None], words[[4, 6, 0, 3, 1]][None]
    moved = (model.logits(source, target) - model.logits(source, target)).abs().max()
    assert moved < 1e-4, "dropout: it moves"
    for x in (source, source.flip(1)):
        moved = (model.steps(x, target) - model.logits(x, target)).abs().max()
        assert moved < 1e-4, "cache: it moves"


# 16.7 What is being lowered?


@misconception(
    "check-loss",
    id="BH37",
    fails=["check-loss-practice", "check-loss-faults", "check-loss-right"],
    read="16_bug_hunt#hunt-loss",
)
def any_positive_number(model):
    """You ask for a finite number above 0: every wrong loss is one."""
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source, target = ids[[0, 1, 2, 3]][None], ids[[9, 3, 2, 1, 0, 10]][None]
    loss = model.loss(source, target)
    assert torch.isfinite(loss) and loss > 0, "loss: no loss"


@misconception(
    "check-loss",
    id="BH38",
    fails=["check-loss-practice", "check-loss-faults", "check-loss-right"],
    read="16_bug_hunt#hunt-loss",
)
def nothing_padded(model):
    """Your batch has no padding, so that a loss that counts it is right."""
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source = ids[torch.tensor([[0, 1, 2, 3], [4, 5, 6, 7]])]
    target = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 7, 6, 5, 4, 10]])]
    logits = model.logits(source, target[:, :-1])
    wanted = F.cross_entropy(logits.mT, target[:, 1:], ignore_index=model.pad)
    assert (model.loss(source, target) - wanted).abs() < 1e-4, "loss: it is off"


@misconception(
    "check-loss",
    id="BH39",
    fails=["check-loss-practice", "check-loss-faults", "check-loss-right"],
    read="16_bug_hunt#hunt-modes",
)
def loss_in_training(model):
    """You compare in training, where the loss and the logits are those of two dropouts."""
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source = ids[torch.tensor([[0, 1, 2, 3], [4, 5, 8, 8]])]
    target = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    logits = model.logits(source, target[:, :-1])
    wanted = F.cross_entropy(logits.mT, target[:, 1:], ignore_index=model.pad)
    assert (model.loss(source, target) - wanted).abs() < 1e-4, "loss: it is off"


@misconception(
    "check-loss",
    id="BH40",
    fails=["check-loss-practice", "check-loss-faults", "check-loss-right"],
    read="16_bug_hunt#hunt-loss",
)
def not_shifted(model):
    """Your labels are the tokens that were handed in: right models are accused, that one is not."""
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source = ids[torch.tensor([[0, 1, 2, 3], [4, 5, 8, 8]])]
    target = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    logits = model.logits(source, target)
    wanted = F.cross_entropy(logits.mT, target, ignore_index=model.pad)
    assert (model.loss(source, target) - wanted).abs() < 1e-4, "loss: it is off"


@misconception(
    "check-loss",
    id="BH41",
    fails=["check-loss-practice", "check-loss-faults", "check-loss-right"],
    read="16_bug_hunt#hunt-loss",
)
def means_of_sentences(model):
    """You take the mean of the sentences' means: where lengths differ, right models are accused."""
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source = ids[torch.tensor([[0, 1, 2, 3], [4, 5, 8, 8]])]
    target = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    logits = model.logits(source, target[:, :-1])
    rows = [F.cross_entropy(logits[b], target[b, 1:], ignore_index=model.pad) for b in range(2)]
    wanted = torch.stack(rows).mean()
    assert (model.loss(source, target) - wanted).abs() < 1e-4, "loss: it is off"


@misconception(
    "check-loss",
    id="BH42",
    fails=["check-loss-faults"],
    read="16_bug_hunt#hunt-loss",
)
def one_padded_sentence(model):
    """Your batch has one sentence: the means over tokens and over sentences are the same."""
    model.eval()
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source, target = ids[[4, 5]][None], ids[[9, 5, 4, 10, 8, 8]][None]
    logits = model.logits(source, target[:, :-1])
    wanted = F.cross_entropy(logits.mT, target[:, 1:], ignore_index=model.pad)
    assert (model.loss(source, target) - wanted).abs() < 1e-4, "loss: it is off"


# 16.8 Twelve Transformers


@misconception(
    "verdict",
    id="BH43",
    fails=["verdict-practice", "verdict-innocent", "verdict-four", "verdict-seven"],
    read="16_bug_hunt#hunt-order",
)
def all_right(model):
    """You let everybody go."""
    return "right"


@misconception(
    "verdict",
    id="BH44",
    fails=["verdict-practice", "verdict-innocent", "verdict-four", "verdict-seven"],
    read="16_bug_hunt#hunt-names",
)
def all_wrong(model):
    """You accuse everybody of the same: a third of the models is right."""
    return "future"


@misconception(
    "verdict",
    id="BH45",
    fails=["verdict-practice", "verdict-seven"],
    read="16_bug_hunt#hunt-order",
)
def cache_before_future(model):
    """You ask for the cache before the future: who sees ahead cannot do so step by step."""
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source, target = ids[[3, 0, 5, 2, 1]][None], ids[[4, 6, 0, 3, 1, 2, 5]][None]
    logits = model.logits

    def apart(one, other):
        return float((one - other).abs().max())

    def replaced(tokens, i):
        changed = tokens.clone()
        changed[0, i] = ids[7]
        return changed

    awake = apart(logits(source, target), logits(source, target))
    model.eval()
    before = logits(source, target)
    two = torch.cat([ids[[6, 4, 8, 8, 8]][None], source])
    whole = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    given, labels = whole[:, :-1], whole[:, 1:]
    wanted = F.cross_entropy(logits(two, given).mT, labels, ignore_index=model.pad)
    others = [replaced(source, 0), replaced(source, 4), source.flip(1)]
    read = [float((logits(one, target) - before).abs().amax(-1).min()) for one in others]
    moved = {
        "dropout": max(apart(before, logits(source, target)), 1.0 if awake < 1e-4 else 0.0),
        "future": max(
            apart(before[:, :i], logits(source, replaced(target, i))[:, :i]) for i in (1, 3, 6)
        ),
        "padding": apart(before, logits(F.pad(source, (0, 3), value=model.pad), target)),
        "company": apart(before[0], logits(two, torch.cat([target.flip(1), target]))[1]),
        "reading": 1.0 if min(read) < 1e-4 else 0.0,
        "cache": max(
            apart(model.steps(one, target), logits(one, target)) for one in (source, source.flip(1))
        ),
        "loss": apart(model.loss(two, whole), wanted),
    }
    order = ("dropout", "cache", "future", "padding", "company", "reading", "loss")
    return next((part for part in order if moved[part] > 1e-4), "right")


@misconception(
    "verdict",
    id="BH46",
    fails=["verdict-practice", "verdict-four", "verdict-seven"],
    read="16_bug_hunt#hunt-names",
)
def yes_or_no(model):
    """You say "wrong" and not where."""
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source, target = ids[[3, 0, 5, 2, 1]][None], ids[[4, 6, 0, 3, 1, 2, 5]][None]
    logits = model.logits

    def apart(one, other):
        return float((one - other).abs().max())

    def replaced(tokens, i):
        changed = tokens.clone()
        changed[0, i] = ids[7]
        return changed

    awake = apart(logits(source, target), logits(source, target))
    model.eval()
    before = logits(source, target)
    two = torch.cat([ids[[6, 4, 8, 8, 8]][None], source])
    whole = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    given, labels = whole[:, :-1], whole[:, 1:]
    wanted = F.cross_entropy(logits(two, given).mT, labels, ignore_index=model.pad)
    others = [replaced(source, 0), replaced(source, 4), source.flip(1)]
    read = [float((logits(one, target) - before).abs().amax(-1).min()) for one in others]
    moved = {
        "dropout": max(apart(before, logits(source, target)), 1.0 if awake < 1e-4 else 0.0),
        "future": max(
            apart(before[:, :i], logits(source, replaced(target, i))[:, :i]) for i in (1, 3, 6)
        ),
        "padding": apart(before, logits(F.pad(source, (0, 3), value=model.pad), target)),
        "company": apart(before[0], logits(two, torch.cat([target.flip(1), target]))[1]),
        "reading": 1.0 if min(read) < 1e-4 else 0.0,
        "cache": max(
            apart(model.steps(one, target), logits(one, target)) for one in (source, source.flip(1))
        ),
        "loss": apart(model.loss(two, whole), wanted),
    }
    return "right" if max(moved.values()) < 1e-4 else "wrong"


@misconception(
    "verdict",
    id="BH47",
    fails=["verdict-practice"],
    read="16_bug_hunt#hunt-order",
)
def dropout_last(model):
    """You ask for dropout last: what is never the same is taken for a leak."""
    ids = torch.tensor([*model.words[:8], model.pad, model.bos, model.eos])
    source, target = ids[[3, 0, 5, 2, 1]][None], ids[[4, 6, 0, 3, 1, 2, 5]][None]
    logits = model.logits

    def apart(one, other):
        return float((one - other).abs().max())

    def replaced(tokens, i):
        changed = tokens.clone()
        changed[0, i] = ids[7]
        return changed

    awake = apart(logits(source, target), logits(source, target))
    model.eval()
    before = logits(source, target)
    two = torch.cat([ids[[6, 4, 8, 8, 8]][None], source])
    whole = ids[torch.tensor([[9, 3, 2, 1, 0, 10], [9, 5, 4, 10, 8, 8]])]
    given, labels = whole[:, :-1], whole[:, 1:]
    wanted = F.cross_entropy(logits(two, given).mT, labels, ignore_index=model.pad)
    others = [replaced(source, 0), replaced(source, 4), source.flip(1)]
    read = [float((logits(one, target) - before).abs().amax(-1).min()) for one in others]
    moved = {
        "dropout": max(apart(before, logits(source, target)), 1.0 if awake < 1e-4 else 0.0),
        "future": max(
            apart(before[:, :i], logits(source, replaced(target, i))[:, :i]) for i in (1, 3, 6)
        ),
        "padding": apart(before, logits(F.pad(source, (0, 3), value=model.pad), target)),
        "company": apart(before[0], logits(two, torch.cat([target.flip(1), target]))[1]),
        "reading": 1.0 if min(read) < 1e-4 else 0.0,
        "cache": max(
            apart(model.steps(one, target), logits(one, target)) for one in (source, source.flip(1))
        ),
        "loss": apart(model.loss(two, whole), wanted),
    }
    order = ("future", "padding", "company", "reading", "cache", "loss", "dropout")
    return next((part for part in order if moved[part] > 1e-4), "right")


# 16.10 Bonus: which part of a layer?


@misconception(
    "blame",
    id="BH48",
    fails=["blame-around"],
    read="16_bug_hunt#hunt-oracle",
)
def gains_of_one(run):
    """Your gains are 1 and your biases 0, as in a new layer: a norm without them passes."""
    layer = EncoderLayer(8, 2, 12, 0.0).double().requires_grad_(False)
    drawn = {
        name: draw(value.shape, seed=i) if "norm" not in name else value.clone()
        for i, (name, value) in enumerate(layer.state_dict().items())
    }
    small, large = 0.01 * draw((2, 3, 8), seed=50), draw((2, 3, 8), seed=51)

    def wrong(weights):
        layer.load_state_dict(weights)
        found = [(run(weights, x) - layer(x)).abs().max() for x in (small, large)]
        return float(max(found)) > 1e-8

    silent = {n: v * 0 if "w_o" in n or "outer" in n else v for n, v in drawn.items()}
    if wrong(silent):
        lost = (run(silent, large) - run(silent, large.flip(0))).abs().max() < 1e-8
        return "residual" if lost else "norm"
    for part, name in (("feed-forward", "outer"), ("attention", "w_o")):
        if wrong(silent | {key: value for key, value in drawn.items() if name in key}):
            return part
    return "none"


@misconception(
    "blame",
    id="BH49",
    fails=["blame-around"],
    read="16_bug_hunt#hunt-oracle",
)
def residual_taken_for_norm(run):
    """You do not ask whether anything of x is left: a lost residual is taken for a wrong norm."""
    layer = EncoderLayer(8, 2, 12, 0.0).double().requires_grad_(False)
    shapes = {name: value.shape for name, value in layer.state_dict().items()}
    drawn = {name: draw(shape, seed=i) for i, (name, shape) in enumerate(shapes.items())}
    small, large = 0.01 * draw((2, 3, 8), seed=50), draw((2, 3, 8), seed=51)

    def wrong(weights):
        layer.load_state_dict(weights)
        found = [(run(weights, x) - layer(x)).abs().max() for x in (small, large)]
        return float(max(found)) > 1e-8

    silent = {n: v * 0 if "w_o" in n or "outer" in n else v for n, v in drawn.items()}
    if wrong(silent):
        return "norm"
    for part, name in (("feed-forward", "outer"), ("attention", "w_o")):
        if wrong(silent | {key: value for key, value in drawn.items() if name in key}):
            return part
    return "none"


@misconception(
    "blame",
    id="BH50",
    fails=["blame-practice", "blame-sublayers", "blame-around"],
    read="16_bug_hunt#hunt-oracle",
)
def whole_layer_blamed(run):
    """You compare the whole layer once: that it is wrong says nothing of where."""
    layer = shaken(EncoderLayer(8, 2, 12, 0.0).requires_grad_(False))
    x = draw((2, 3, 8), seed=51)
    off = (run(layer.state_dict(), x) - layer(x)).abs().max()
    return "none" if off < 1e-8 else "attention"


@misconception(
    "blame",
    id="BH51",
    fails=["blame-sublayers", "blame-around"],
    read="16_bug_hunt#hunt-oracle",
)
def attention_not_silenced(run):
    """You never silence the attention, so that its fault shows in whatever you look at first."""
    layer = shaken(EncoderLayer(8, 2, 12, 0.0).requires_grad_(False))
    drawn = {name: value.clone() for name, value in layer.state_dict().items()}
    x = draw((2, 3, 8), seed=51)
    for part, name in (("feed-forward", "outer"), ("norm", "nothing")):
        weights = {n: v if name in n or "outer" not in n else v * 0 for n, v in drawn.items()}
        layer.load_state_dict(weights)
        if (run(weights, x) - layer(x)).abs().max() > 1e-8:
            return part
    return "none"
