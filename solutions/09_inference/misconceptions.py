"""Wrong answers to the exercise on inference, and what each one shows."""

import copy
import math
from collections import Counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import misconception
from lab.blocks import DecoderLayer, MultiHeadAttention, scaled_dot_product_attention

CachedAttention: Any  # the notebook's own; answers about `use_cache` find it where they are tried

# 9.1 Greedy decoding


@misconception(
    "greedy-decode",
    id="INF1",
    fails=["greedy-decode-stops"],
    read="09_inference#when-to-stop",
)
def never_stops_early(model, source, bos_id, eos_id, max_len):
    """Your loop always makes max_len steps; when every sentence has its end token, there is
    nothing left to write.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
    model.train(was_training)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF2",
    fails=["greedy-decode-values", "greedy-decode-stops"],
    read="09_inference#when-to-stop",
)
def the_first_end_ends_all(model, source, bos_id, eos_id, max_len):
    """You stop the whole batch as soon as one sentence ends; the others are not done yet."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            if (chosen == eos_id).any():
                break
    model.train(was_training)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF21",
    fails=["greedy-decode-values", "greedy-decode-stops"],
    read="09_inference#when-to-stop",
)
def writes_after_the_end(model, source, bos_id, eos_id, max_len):
    """You only take the end tokens out; whatever a sentence wrote after its end, while others
    were still going on, is still there.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    model.train(was_training)
    return [[token for token in row if token != eos_id] for row in ids[:, 1:].tolist()]


@misconception(
    "greedy-decode",
    id="INF22",
    fails=["greedy-decode-stops"],
    read="09_inference#when-to-stop",
)
def all_must_end_in_the_same_step(model, source, bos_id, eos_id, max_len):
    """You stop only if all sentences choose the end token in the same step; remember for each
    sentence that it has ended.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            if (chosen == eos_id).all():
                break
    model.train(was_training)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF3",
    fails=["greedy-decode-economy"],
    read="09_inference#greedy",
)
def left_in_training_mode(model, source, bos_id, eos_id, max_len):
    """You never call model.eval(): dropout stays on, and two runs write two different things."""
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF23",
    fails=["greedy-decode-economy"],
    read="09_inference#greedy",
)
def left_in_evaluation_mode(model, source, bos_id, eos_id, max_len):
    """You leave the model in evaluation mode; if this was a check during training, the rest of
    the training runs without dropout.
    """
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF24",
    fails=["greedy-decode-economy"],
    read="09_inference#greedy",
)
def records_gradients(model, source, bos_id, eos_id, max_len):
    """You let autograd record every step; nothing will be trained here, and the memory that the
    graph takes grows with each token.
    """
    was_training = model.training
    model.eval()
    memory, memory_mask = model.encode(source)
    ids = torch.full((len(source), 1), bos_id)
    ended = torch.zeros(len(source), dtype=torch.bool)
    for _ in range(max_len):
        chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
        ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
        ended = ended | (chosen == eos_id)
        if ended.all():
            break
    model.train(was_training)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF4",
    fails=["greedy-decode-values", "greedy-decode-stops", "greedy-decode-economy"],
    read="09_inference#greedy",
)
def looks_at_the_first_position(model, source, bos_id, eos_id, max_len):
    """You read the logits of the first position, which are about the first word, at every step;
    the next word's are those of the last position.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, 0].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    model.train(was_training)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF20",
    fails=["greedy-decode-values", "greedy-decode-stops", "greedy-decode-economy"],
    read="09_inference#whole-prefix",
)
def hands_on_the_last_token_only(model, source, bos_id, eos_id, max_len):
    """You hand on only the token chosen last; without a cache the decoder remembers nothing, so it
    needs the whole target from bos_id on.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        chosen = torch.full((len(source),), bos_id)
        steps = []
        for _ in range(max_len):
            chosen = model.decode(chosen.unsqueeze(1), memory, memory_mask)[:, -1].argmax(-1)
            steps.append(chosen.tolist())
            if all(eos_id in row for row in zip(*steps, strict=True)):
                break
    model.train(was_training)
    rows = [[step[b] for step in steps] for b in range(len(source))]
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF5",
    fails=["greedy-decode-economy"],
    read="09_inference#greedy",
)
def encodes_at_every_step(model, source, bos_id, eos_id, max_len):
    """You encode the source again at every step; it does not change, so once is enough."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            memory, memory_mask = model.encode(source)
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    model.train(was_training)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF25",
    fails=["greedy-decode-values"],
    read="09_inference#greedy",
)
def begins_with_zero(model, source, bos_id, eos_id, max_len):
    """Your targets begin with 0, which often is the padding; they should begin with bos_id."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.zeros(len(source), 1, dtype=torch.long)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    model.train(was_training)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF6",
    fails=["greedy-decode-values"],
    read="09_inference#greedy",
)
def begins_with_the_source(model, source, bos_id, eos_id, max_len):
    """You give the source to the decoder as the beginning of the target; it comes in through
    memory, and the target begins with bos_id alone.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = source
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    model.train(was_training)
    rows = ids[:, source.shape[1] :].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF7",
    fails=["greedy-decode-values", "greedy-decode-stops"],
    read="09_inference#when-to-stop",
)
def counts_bos_as_a_token(model, source, bos_id, eos_id, max_len):
    """You count bos_id as one of the max_len tokens, so your sentences are one token too short;
    max_len counts what the model chooses.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        while ids.shape[1] < max_len and not ended.all():
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
    model.train(was_training)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF26",
    fails=["greedy-decode-values", "greedy-decode-stops", "greedy-decode-economy"],
    read="09_inference#when-to-stop",
)
def keeps_bos(model, source, bos_id, eos_id, max_len):
    """Your lists still begin with bos_id; it was never written by the model, so take it out."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    model.train(was_training)
    rows = ids.tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# 9.2 Beam search


@misconception(
    "beam-search",
    id="INF8",
    fails=["beam-search-greedy", "beam-search-rules"],
    read="09_inference#beam-search",
)
def refills_the_beam(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """When a hypothesis ends you take the next best in its place, so the beam never empties and a
    beam of 1 writes on where greedy decoding stops; an ending uses up one of the beam_size places.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            extended.sort(reverse=True)
            finished += [pair for pair in extended[:beam_size] if pair[1][-1] == eos_id]
            live = [pair for pair in extended if pair[1][-1] != eos_id][:beam_size]
    model.train(training)
    score, ids = max(
        (total / ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


@misconception(
    "beam-search",
    id="INF9",
    fails=[
        "beam-search-exhaustive",
        "beam-search-length",
        "beam-search-rules",
    ],
    read="09_inference#beam-search",
)
def extends_the_finished(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """You go on extending hypotheses that have ended, so a finished sentence loses its score;
    put it aside as soon as it ends.
    """
    training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            live = sorted(extended, reverse=True)[:beam_size]
            if all(eos_id in ids for _, ids in live):
                break
    model.train(training)
    score, ids = max((total / ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in live)
    return (ids[1 : ids.index(eos_id)] if eos_id in ids else ids[1:]), score


@misconception(
    "beam-search",
    id="INF10",
    fails=["beam-search-exhaustive", "beam-search-length", "beam-search-rules"],
    read="09_inference#length-penalty",
)
def the_first_to_finish_wins(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    """You stop when the first hypothesis ends; a longer one that is still alive may have the better
    score once it is divided by its own penalty.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            live = sorted(extended, reverse=True)[:beam_size]
            finished = [pair for pair in live if pair[1][-1] == eos_id]
            if finished:
                break
    model.train(training)
    score, ids = max(
        (total / ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


@misconception(
    "beam-search",
    id="INF10b",
    fails=["beam-search-rules"],
    read="09_inference#beam-search",
)
def narrower_with_each_end(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """Your beam gets narrower with each hypothesis that ends. Those that have finished are put
    aside: each step keeps beam_size extensions of the live ones.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            kept = sorted(extended, reverse=True)[: beam_size - len(finished)]
            finished += [pair for pair in kept if pair[1][-1] == eos_id]
            live = [pair for pair in kept if pair[1][-1] != eos_id]
            if not live:
                break
    model.train(training)
    score, ids = max(
        (total / ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


@misconception(
    "beam-search",
    id="INF11",
    fails=["beam-search-exhaustive", "beam-search-length", "beam-search-rules"],
    read="09_inference#length-penalty",
)
def length_without_the_end(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """Your n leaves out the end token; its probability is a factor of P like the others, so it
    counts.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            kept = sorted(extended, reverse=True)[:beam_size]
            finished += [pair for pair in kept if pair[1][-1] == eos_id]
            live = [pair for pair in kept if pair[1][-1] != eos_id]
    model.train(training)
    chosen = [
        (total, [token for token in ids[1:] if token != eos_id]) for total, ids in finished or live
    ]
    score, ids = max((total / ((5 + len(ids)) / 6) ** length_penalty, ids) for total, ids in chosen)
    return ids, score


@misconception(
    "beam-search",
    id="INF27",
    fails=["beam-search-exhaustive", "beam-search-length", "beam-search-rules"],
    read="09_inference#length-penalty",
)
def multiplied_by_the_penalty(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    """You multiply by the penalty; log-probabilities are negative, so that punishes long sentences
    still more. Divide.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            kept = sorted(extended, reverse=True)[:beam_size]
            finished += [pair for pair in kept if pair[1][-1] == eos_id]
            live = [pair for pair in kept if pair[1][-1] != eos_id]
    model.train(training)
    score, ids = max(
        (total * ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


@misconception(
    "beam-search",
    id="INF28",
    fails=["beam-search-exhaustive", "beam-search-length", "beam-search-rules"],
    read="09_inference#length-penalty",
)
def divided_by_the_length(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """You divide by n ** length_penalty; the penalty is ((5 + n) / 6) ** length_penalty, which
    grows more slowly for short sentences.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            kept = sorted(extended, reverse=True)[:beam_size]
            finished += [pair for pair in kept if pair[1][-1] == eos_id]
            live = [pair for pair in kept if pair[1][-1] != eos_id]
    model.train(training)
    score, ids = max(
        (total / (len(ids) - 1) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


@misconception(
    "beam-search",
    id="INF12",
    fails=["beam-search-exhaustive", "beam-search-rules"],
    read="09_inference#beam-search",
)
def parents_forgotten(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """You put the new tokens behind the rows as they stand; the best extensions may come from any
    row, so each new row has to begin with its own parent's ids.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live, log_probs = torch.full((1, 1), bos_id), torch.zeros(1)
        penalty = 1.0
        for n in range(1, max_len + 1):
            penalty = ((5 + n) / 6) ** length_penalty
            k = len(live)
            logits = model.decode(live, memory.expand(k, -1, -1), memory_mask.expand(k, -1, -1))[
                :, -1
            ]
            totals = log_probs.unsqueeze(1) + logits.log_softmax(-1)
            log_probs, numbers = totals.flatten().topk(min(beam_size, totals.numel()))
            tokens = numbers % totals.shape[1]
            rows = torch.arange(len(tokens)) % k
            live = torch.cat([live[rows], tokens.unsqueeze(1)], dim=1)
            ended = tokens == eos_id
            for ids, log_prob in zip(live[ended].tolist(), log_probs[ended].tolist(), strict=True):
                finished.append((log_prob / penalty, ids[1:-1]))
            live, log_probs = live[~ended], log_probs[~ended]
            if not len(live):
                break
        if not finished:
            for ids, log_prob in zip(live.tolist(), log_probs.tolist(), strict=True):
                finished.append((log_prob / penalty, ids[1:]))
    model.train(training)
    score, ids = max(finished)
    return ids, score


@misconception(
    "beam-search",
    id="INF13",
    fails=["beam-search-exhaustive", "beam-search-length", "beam-search-rules"],
    read="09_inference#beam-search",
)
def finished_score_overwritten(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    """You keep a finished score as a view of the tensor of scores and then set that tensor to minus
    infinity, so the kept score changes with it; keep a number or a copy.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live, log_probs = torch.full((1, 1), bos_id), torch.zeros(1)
        penalty = 1.0
        for n in range(1, max_len + 1):
            penalty = ((5 + n) / 6) ** length_penalty
            k = len(live)
            logits = model.decode(live, memory.expand(k, -1, -1), memory_mask.expand(k, -1, -1))[
                :, -1
            ]
            totals = log_probs.unsqueeze(1) + logits.log_softmax(-1)
            log_probs, numbers = totals.flatten().topk(min(beam_size, totals.numel()))
            tokens = numbers % totals.shape[1]
            live = torch.cat([live[numbers // totals.shape[1]], tokens.unsqueeze(1)], dim=1)
            ended = tokens == eos_id
            for i in ended.nonzero().flatten().tolist():
                finished.append((log_probs[i], penalty, live[i, 1:-1].tolist()))
            log_probs[ended] = -math.inf
            live, log_probs = live[~ended], log_probs[~ended]
            if not len(live):
                break
        if not finished:
            for ids, log_prob in zip(live.tolist(), log_probs, strict=True):
                finished.append((log_prob, penalty, ids[1:]))
    model.train(training)
    score, ids = max((log_prob.item() / penalty, ids) for log_prob, penalty, ids in finished)
    return ids, score


@misconception(
    "beam-search",
    id="INF29",
    fails=["beam-search-exhaustive", "beam-search-length", "beam-search-rules"],
    read="09_inference#beam-search",
)
def sums_logits(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """You add logits; only their differences mean something, so turn them into logs of
    probabilities before you compare rows with one another.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1].tolist()
                extended += [(total + one, [*ids, token]) for token, one in enumerate(logits)]
            kept = sorted(extended, reverse=True)[:beam_size]
            finished += [pair for pair in kept if pair[1][-1] == eos_id]
            live = [pair for pair in kept if pair[1][-1] != eos_id]
    model.train(training)
    score, ids = max(
        (total / ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


@misconception(
    "beam-search",
    id="INF30",
    fails=["beam-search-exhaustive", "beam-search-rules"],
    read="09_inference#beam-search",
)
def best_of_each_row(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """You extend every row by its own best token; the beam_size best extensions are chosen from all
    rows together, two from one row and none from another if need be.
    """
    training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        first = model.decode(torch.tensor([[bos_id]]), memory, memory_mask)[0, -1].log_softmax(-1)
        totals, tokens = first.topk(min(beam_size, len(first)))
        live = [
            (total, [bos_id, token])
            for total, token in zip(totals.tolist(), tokens.tolist(), strict=True)
        ]
        for _ in range(max_len - 1):
            finished += [pair for pair in live if pair[1][-1] == eos_id]
            extended = []
            for total, ids in live:
                if ids[-1] != eos_id:
                    logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                    log, token = logits.log_softmax(-1).max(-1)
                    extended.append((total + log.item(), [*ids, token.item()]))
            live = extended
        finished += [pair for pair in live if pair[1][-1] == eos_id]
    model.train(training)
    score, ids = max(
        (total / ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


@misconception(
    "beam-search",
    id="INF31",
    fails=["beam-search-greedy"],
    read="09_inference#greedy",
)
def forgets_the_mode(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """You never call model.eval(), so dropout stays on while the beam is searched."""
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            kept = sorted(extended, reverse=True)[:beam_size]
            finished += [pair for pair in kept if pair[1][-1] == eos_id]
            live = [pair for pair in kept if pair[1][-1] != eos_id]
    score, ids = max(
        (total / ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


# 9.3 When may the search stop?


@misconception(
    "may-stop",
    id="INF70",
    fails=["may-stop-long", "may-stop-short"],
    read="09_inference#length-penalty",
)
def score_of_today(best, log_probs, n, max_len, length_penalty):
    """You give the live hypotheses the penalty of the length that they have now. They can still
    grow, and a longer one may score better with the same log-probability.
    """
    largest = ((5 + n) / 6) ** length_penalty
    return all(log_prob / largest <= best for log_prob in log_probs)


@misconception(
    "may-stop",
    id="INF71",
    fails=["may-stop-long"],
    read="09_inference#length-penalty",
)
def next_step_only(best, log_probs, n, max_len, length_penalty):
    """You look one token ahead only. With a penalty above 0 the longest sentence allowed makes
    most of a log-probability.
    """
    largest = ((5 + n + 1) / 6) ** length_penalty
    return all(log_prob / largest <= best for log_prob in log_probs)


@misconception(
    "may-stop",
    id="INF72",
    fails=["may-stop-short"],
    read="09_inference#length-penalty",
)
def always_the_longest(best, log_probs, n, max_len, length_penalty):
    """You take the longest sentence for the best whatever the penalty's exponent. Below 0 the
    shortest one is: it has one token more than now.
    """
    largest = ((5 + max_len) / 6) ** length_penalty
    return all(log_prob / largest <= best for log_prob in log_probs)


@misconception(
    "may-stop",
    id="INF73",
    fails=["may-stop-long"],
    read="09_inference#length-penalty",
)
def without_a_penalty(best, log_probs, n, max_len, length_penalty):
    """You compare log-probabilities with a score: divide them by the penalty that suits them
    best.
    """
    length = n + 1
    largest = ((5 + length) / 6) ** length_penalty if length_penalty < 0 else 1
    return all(log_prob / largest <= best for log_prob in log_probs)


@misconception(
    "may-stop",
    id="INF74",
    fails=["may-stop-long"],
    read="09_inference#length-penalty",
)
def one_beaten_is_enough(best, log_probs, n, max_len, length_penalty):
    """You stop as soon as one live hypothesis is beaten. All of them must be."""
    length = max_len if length_penalty > 0 else n + 1
    largest = ((5 + length) / 6) ** length_penalty
    return any(log_prob / largest <= best for log_prob in log_probs)


@misconception(
    "may-stop",
    id="INF75",
    fails=["may-stop-long", "may-stop-short"],
    read="09_inference#length-penalty",
)
def multiplied(best, log_probs, n, max_len, length_penalty):
    """You multiply by the penalty; the score is the log-probability divided by it."""
    length = max_len if length_penalty > 0 else n + 1
    largest = ((5 + length) / 6) ** length_penalty
    return all(log_prob * largest <= best for log_prob in log_probs)


# 9.4 A cache for keys and values


@misconception(
    "cached-attention",
    target="CachedAttention.forward",
    id="INF14",
    fails=[
        "cached-attention-steps",
        "cached-attention-prefill",
        "cached-attention-cross",
        "cached-attention-model",
        "cached-attention-reset",
    ],
    read="09_inference#cache",
)
def keeps_nothing(self, query, key, value, mask=None):
    """Each of your calls sees only what it is given: the new tokens look at themselves, and what
    was written before is gone.
    """
    return MultiHeadAttention.forward(self, query, key, value, mask)


@misconception(
    "cached-attention",
    target="CachedAttention.forward",
    id="INF15",
    fails=["cached-attention-prefill", "cached-attention-model"],
    read="09_inference#prefill",
)
def no_mask_among_the_new(self, query, key, value, mask=None):
    """With a growing cache you drop the mask; for one new token that is right, but several new
    tokens at once can see each other's future.
    """
    if self.kept is None or self.grows:
        new = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            new = torch.cat([self.kept[0], new[0]], dim=2), torch.cat([self.kept[1], new[1]], dim=2)
        self.kept = new
    heads = None if self.grows or mask is None else mask.unsqueeze(-3)
    q, (k, v) = self.split(self.w_q(query)), self.kept
    output, weights = scaled_dot_product_attention(q, k, v, heads)
    return self.w_o(self.merge(output)), weights


@misconception(
    "cached-attention",
    target="CachedAttention.forward",
    id="INF32",
    fails=["cached-attention-prefill", "cached-attention-model"],
    read="09_inference#prefill",
)
def mask_in_the_wrong_corner(self, query, key, value, mask=None):
    """Your mask for new tokens counts the keys from the first one on; the new tokens' columns are
    the last ones, behind those of all old tokens.
    """
    if self.kept is None or self.grows:
        new = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            if mask is not None:
                mask = F.pad(mask, (0, self.kept[0].shape[2]), value=mask.shape[-1] == 1)
            new = torch.cat([self.kept[0], new[0]], dim=2), torch.cat([self.kept[1], new[1]], dim=2)
        self.kept = new
    heads = None if mask is None else mask.unsqueeze(-3)
    q, (k, v) = self.split(self.w_q(query)), self.kept
    output, weights = scaled_dot_product_attention(q, k, v, heads)
    return self.w_o(self.merge(output)), weights


@misconception(
    "cached-attention",
    target="CachedAttention.forward",
    id="INF33",
    fails=["cached-attention-steps", "cached-attention-prefill"],
    read="09_inference#cache",
)
def new_keys_in_front(self, query, key, value, mask=None):
    """You put the new keys and values in front of the old ones; the order of the weights is then
    not that of the tokens, and a mask no longer fits.
    """
    if self.kept is None or self.grows:
        new = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            if mask is not None:
                mask = F.pad(mask, (0, self.kept[0].shape[2]), value=True)
            new = torch.cat([new[0], self.kept[0]], dim=2), torch.cat([new[1], self.kept[1]], dim=2)
        self.kept = new
    heads = None if mask is None else mask.unsqueeze(-3)
    q, (k, v) = self.split(self.w_q(query)), self.kept
    output, weights = scaled_dot_product_attention(q, k, v, heads)
    return self.w_o(self.merge(output)), weights


@misconception(
    "cached-attention",
    target="CachedAttention.forward",
    id="INF16",
    fails=[
        "cached-attention-steps",
        "cached-attention-prefill",
        "cached-attention-model",
        "cached-attention-reset",
    ],
    read="09_inference#cache",
)
def joined_along_the_heads(self, query, key, value, mask=None):
    """You join old and new along the axis of the heads; after `split` the tokens are axis 2, of
    (B, H, tokens, d_k).
    """
    if self.kept is None or self.grows:
        new = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            if mask is not None:
                mask = F.pad(mask, (self.kept[0].shape[1], 0), value=True)
            new = torch.cat([self.kept[0], new[0]], dim=1), torch.cat([self.kept[1], new[1]], dim=1)
        self.kept = new
    heads = None if mask is None else mask.unsqueeze(-3)
    q, (k, v) = self.split(self.w_q(query)), self.kept
    output, weights = scaled_dot_product_attention(q, k, v, heads)
    return self.w_o(self.merge(output)), weights


@misconception(
    "cached-attention",
    target="CachedAttention.forward",
    id="INF52",
    fails=[
        "cached-attention-steps",
        "cached-attention-prefill",
        "cached-attention-cross",
        "cached-attention-model",
    ],
    read="09_inference#prefill",
)
def mask_without_an_axis_for_heads(self, query, key, value, mask=None):
    """Your mask keeps its shape (B, n, m) next to scores (B, H, n, m), so its batch axis meets the
    heads; give it an axis of length 1 for them.
    """
    if self.kept is None or self.grows:
        new = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            if mask is not None:
                mask = F.pad(mask, (self.kept[0].shape[2], 0), value=True)
            new = torch.cat([self.kept[0], new[0]], dim=2), torch.cat([self.kept[1], new[1]], dim=2)
        self.kept = new
    q, (k, v) = self.split(self.w_q(query)), self.kept
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(self.merge(output)), weights


@misconception(
    "cached-attention",
    target="CachedAttention.forward",
    id="INF34",
    fails=["cached-attention-cross", "cached-attention-model"],
    read="09_inference#cache",
)
def the_source_grows_too(self, query, key, value, mask=None):
    """Your cross-attention appends the source's keys at each call, so the source is there twice,
    three times, and so on; its keys and values come once, with the first call.
    """
    new = self.split(self.w_k(key)), self.split(self.w_v(value))
    if self.kept is not None:
        if mask is not None:
            mask = F.pad(mask, (self.kept[0].shape[2], 0), value=True)
        new = torch.cat([self.kept[0], new[0]], dim=2), torch.cat([self.kept[1], new[1]], dim=2)
    self.kept = new
    heads = None if mask is None else mask.unsqueeze(-3)
    q, (k, v) = self.split(self.w_q(query)), self.kept
    output, weights = scaled_dot_product_attention(q, k, v, heads)
    return self.w_o(self.merge(output)), weights


@misconception(
    "cached-attention",
    target="CachedAttention.forward",
    id="INF35",
    fails=["cached-attention-cross"],
    read="09_inference#cache",
)
def the_source_projected_again(self, query, key, value, mask=None):
    """Your cross-attention projects the source again at every call; that is the work that the
    cache should save.
    """
    new = self.split(self.w_k(key)), self.split(self.w_v(value))
    if self.grows and self.kept is not None:
        if mask is not None:
            mask = F.pad(mask, (self.kept[0].shape[2], 0), value=True)
        new = torch.cat([self.kept[0], new[0]], dim=2), torch.cat([self.kept[1], new[1]], dim=2)
    self.kept = new
    heads = None if mask is None else mask.unsqueeze(-3)
    q, (k, v) = self.split(self.w_q(query)), self.kept
    output, weights = scaled_dot_product_attention(q, k, v, heads)
    return self.w_o(self.merge(output)), weights


@misconception(
    "cached-attention",
    target="CachedAttention.reset",
    id="INF17",
    fails=["cached-attention-reset", "cached-attention-model"],
    read="09_inference#cache",
)
def reset_only_once(self):
    """Your reset() keeps what is there: the second sentence still attends to the first one."""
    if not hasattr(self, "kept"):
        self.kept = None


@misconception(
    "cached-attention",
    target="use_cache",
    id="INF36",
    fails=["cached-attention-model"],
    read="09_inference#cache",
)
def a_cache_around_a_cache(model):
    """You wrap an attention that has a cache already; empty that one and leave it in its place."""
    caches = []
    for layer in list(model.modules()):
        if isinstance(layer, DecoderLayer):
            for name, grows in (("self_attention", True), ("cross_attention", False)):
                cache = CachedAttention(getattr(layer, name), grows=grows)
                setattr(layer, name, cache)
                caches.append(cache)
    return caches


@misconception(
    "cached-attention",
    target="use_cache",
    id="INF37",
    fails=["cached-attention-model"],
    read="09_inference#cache",
)
def self_attention_only(model):
    """You give caches to the self-attentions only; each cross-attention projects the whole source
    at every step, which is work for nothing.
    """
    caches = []
    for layer in list(model.modules()):
        if isinstance(layer, DecoderLayer):
            cache: Any = layer.self_attention
            if not isinstance(cache, CachedAttention):
                cache = CachedAttention(cache, grows=True)
                layer.self_attention = cache
            cache.reset()
            caches.append(cache)
    return caches


@misconception(
    "cached-attention",
    target="CachedAttention.__init__",
    id="INF38",
    fails=["cached-attention-steps"],
    read="09_inference#cache",
)
def copies_the_weights(self, attention: MultiHeadAttention, *, grows: bool):
    """You copy the weights; training the model further, or loading others into the old attention,
    would leave your copies behind. Share the same layers.
    """
    nn.Module.__init__(self)
    attention = copy.deepcopy(attention)
    self.num_heads = attention.num_heads
    self.w_q, self.w_k = attention.w_q, attention.w_k
    self.w_v, self.w_o = attention.w_v, attention.w_o
    self.grows = grows
    self.reset()


# 9.5 Sampling


@misconception(
    "sample",
    id="INF18",
    fails=["sample-temperature", "sample-top-k"],
    read="09_inference#temperature",
)
def temperature_after_the_softmax(logits, temperature=1.0, top_k=None, generator=None):
    """You divide the probabilities by the temperature; drawing normalises them again, so it has no
    effect. Divide the logits.
    """
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    drawn = torch.multinomial(kept.softmax(-1) / temperature, 1, generator=generator)
    return ids.gather(-1, drawn).squeeze(-1)


@misconception(
    "sample",
    id="INF53",
    fails=["sample-temperature"],
    read="09_inference#temperature",
)
def never_below_a_minimum(logits, temperature=1.0, top_k=None, generator=None):
    """You raise small probabilities to a minimum; a token that the softmax all but excludes should
    all but never be drawn.
    """
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    probabilities = (kept / temperature).softmax(-1).clamp(min=0.003)
    drawn = torch.multinomial(probabilities, 1, generator=generator)
    return ids.gather(-1, drawn).squeeze(-1)


@misconception(
    "sample",
    id="INF39",
    fails=["sample-top-k"],
    read="09_inference#temperature",
)
def one_too_many(logits, temperature=1.0, top_k=None, generator=None):
    """You keep one token more than top_k: the smallest logit to keep is number top_k, not the one
    after it.
    """
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    scores = logits / temperature
    if top_k is not None and top_k < logits.shape[-1]:
        smallest = scores.sort(dim=-1, descending=True).values[:, top_k : top_k + 1]
        scores = scores.masked_fill(scores < smallest, -math.inf)
    return torch.multinomial(scores.softmax(-1), 1, generator=generator).squeeze(-1)


@misconception(
    "sample",
    id="INF40",
    fails=["sample-temperature"],
    read="09_inference#temperature",
)
def divides_by_zero(logits, temperature=1.0, top_k=None, generator=None):
    """With temperature 0 you divide by 0; the limit is the likeliest token, and needs a case of its
    own.
    """
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    drawn = torch.multinomial((kept / temperature).softmax(-1), 1, generator=generator)
    return ids.gather(-1, drawn).squeeze(-1)


@misconception(
    "sample",
    id="INF41",
    fails=["sample-temperature", "sample-top-k"],
    read="09_inference#temperature",
)
def multiplied_by_the_temperature(logits, temperature=1.0, top_k=None, generator=None):
    """You multiply the logits by the temperature, so a high one makes the model more certain;
    divide.
    """
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    drawn = torch.multinomial((kept * temperature).softmax(-1), 1, generator=generator)
    return ids.gather(-1, drawn).squeeze(-1)


@misconception(
    "sample",
    id="INF42",
    fails=["sample-top-k"],
    read="09_inference#temperature",
)
def hidden_logits_are_zero(logits, temperature=1.0, top_k=None, generator=None):
    """You set the logits outside the top_k to 0, and exp(0) is 1: they are drawn all the same. Only
    minus infinity gives probability 0.
    """
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    scores = logits / temperature
    if top_k is not None and top_k < logits.shape[-1]:
        smallest = scores.topk(top_k).values[:, -1:]
        scores = scores.masked_fill(scores < smallest, 0.0)
    return torch.multinomial(scores.softmax(-1), 1, generator=generator).squeeze(-1)


@misconception(
    "sample",
    id="INF43",
    fails=["sample-temperature", "sample-top-k"],
    read="09_inference#temperature",
)
def generator_ignored(logits, temperature=1.0, top_k=None, generator=None):
    """You do not hand on the generator, so the same seed gives different sentences."""
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    drawn = torch.multinomial((kept / temperature).softmax(-1), 1)
    return ids.gather(-1, drawn).squeeze(-1)


# 9.6 BLEU


@misconception(
    "sample",
    id="INF54",
    fails=["sample-temperature"],
    read="09_inference#temperature",
)
def exponentials_too_large(logits, temperature=1.0, top_k=None, generator=None):
    """The exponential of a large number is infinity, and a low temperature makes large ones:
    subtract each row's maximum first, or use softmax.
    """
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must not be negative, top_k at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    chances = torch.exp(kept / temperature)
    drawn = torch.multinomial(chances / chances.sum(-1, keepdim=True), 1, generator=generator)
    return ids.gather(-1, drawn).squeeze(-1)


@misconception(
    "sample",
    id="INF55",
    fails=["sample-temperature"],
    read="09_inference#temperature",
)
def batch_axis_removed(logits, temperature=1.0, top_k=None, generator=None):
    """squeeze() removes every axis of length 1, the batch's too where it is one sentence;
    squeeze(-1) removes the last one.
    """
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must not be negative, top_k at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    drawn = torch.multinomial((kept / temperature).softmax(-1), 1, generator=generator)
    return ids.gather(-1, drawn).squeeze()


@misconception(
    "bleu",
    id="INF19",
    fails=["bleu-corpus", "bleu-brevity", "bleu-clipping"],
    read="09_inference#bleu",
)
def mean_of_sentences(hypotheses, references, max_order=4):
    """You take the mean of the sentences' own BLEUs; BLEU adds up the counts of the whole corpus
    and divides once.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    scores = []
    for written, wanted in zip(hypotheses, references, strict=True):
        logs = []
        for n in range(1, max_order + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            match = (ours & theirs).total()
            logs.append(math.log(match / ours.total()) if match else -math.inf)
        mean = math.exp(sum(logs) / max_order)
        brevity = min(1.0, math.exp(1 - len(wanted) / len(written))) if written else 0.0
        scores.append(100 * brevity * mean)
    return sum(scores) / len(scores)


@misconception(
    "bleu",
    id="INF44",
    fails=["bleu-corpus", "bleu-clipping"],
    read="09_inference#bleu",
)
def no_clipping(hypotheses, references, max_order=4):
    """You count an n-gram each time it is written, if the reference has it at all; "the the the"
    then has a precision of 1. It counts at most as often as in the reference.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for written, wanted in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            ours = [tuple(written[i : i + n]) for i in range(len(written) - n + 1)]
            theirs = [tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1)]
            matches[n - 1] += sum(gram in theirs for gram in ours)
            totals[n - 1] += len(ours)
    if not all(matches):
        return 0.0
    mean = math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / max_order)
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * mean * min(1.0, math.exp(1 - ratio))


@misconception(
    "bleu",
    id="INF45",
    fails=["bleu-brevity"],
    read="09_inference#bleu",
)
def no_brevity_penalty(hypotheses, references, max_order=4):
    """Without the brevity penalty a translation of two sure words beats a whole sentence."""
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for written, wanted in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    if not all(matches):
        return 0.0
    logs = sum(math.log(m / t) for m, t in zip(matches, totals, strict=True))
    return 100 * math.exp(logs / max_order)


@misconception(
    "bleu",
    id="INF46",
    fails=["bleu-corpus", "bleu-brevity"],
    read="09_inference#bleu",
)
def penalty_for_length_either_way(hypotheses, references, max_order=4):
    """Your length factor exceeds 1 for translations that are too long; the penalty is for short
    ones, and is never above 1.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for written, wanted in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    if not all(matches):
        return 0.0
    logs = sum(math.log(m / t) for m, t in zip(matches, totals, strict=True))
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * math.exp(logs / max_order + 1 - ratio)


@misconception(
    "bleu",
    id="INF47",
    fails=["bleu-brevity"],
    read="09_inference#bleu",
)
def brevity_sentence_by_sentence(hypotheses, references, max_order=4):
    """You count only the words by which single sentences are too short; a short one may be made up
    for by a long one, since lengths are added up first.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals, missing = [0] * max_order, [0] * max_order, 0
    for written, wanted in zip(hypotheses, references, strict=True):
        missing += max(0, len(wanted) - len(written))
        for n in range(1, max_order + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    if not all(matches):
        return 0.0
    logs = sum(math.log(m / t) for m, t in zip(matches, totals, strict=True))
    return 100 * math.exp(logs / max_order - missing / sum(map(len, hypotheses)))


@misconception(
    "bleu",
    id="INF48",
    fails=["bleu-corpus", "bleu-clipping"],
    read="09_inference#bleu",
)
def arithmetic_mean(hypotheses, references, max_order=4):
    """You take the arithmetic mean of the precisions; with the geometric mean, no matching
    four-gram at all means 0.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for written, wanted in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    if not any(matches):
        return 0.0
    mean = sum(m / t for m, t in zip(matches, totals, strict=True) if t) / max_order
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * mean * min(1.0, math.exp(1 - ratio))


@misconception(
    "bleu",
    id="INF49",
    fails=["bleu-corpus"],
    read="09_inference#bleu",
)
def lower_case(hypotheses, references, max_order=4):
    """You compare in lower case; that is another measure, with higher numbers. BLEU compares
    tokens as they are.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for pair in zip(hypotheses, references, strict=True):
        written, wanted = ([token.lower() for token in tokens] for tokens in pair)
        for n in range(1, max_order + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    if not all(matches):
        return 0.0
    mean = math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / max_order)
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * mean * min(1.0, math.exp(1 - ratio))


@misconception(
    "bleu",
    id="INF50",
    fails=["bleu-corpus", "bleu-clipping"],
    read="09_inference#bleu",
)
def clipped_by_all_references(hypotheses, references, max_order=4):
    """You clip with the n-grams of all references together; each translation may only use those of
    its own reference.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    logs = 0.0
    for n in range(1, max_order + 1):
        ours, theirs = (
            Counter(tuple(line[i : i + n]) for line in side for i in range(len(line) - n + 1))
            for side in (hypotheses, references)
        )
        match = (ours & theirs).total()
        if not match:
            return 0.0
        logs += math.log(match / ours.total())
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * math.exp(logs / max_order) * min(1.0, math.exp(1 - ratio))


@misconception(
    "bleu",
    id="INF51",
    fails=["bleu-corpus", "bleu-brevity"],
    read="09_inference#bleu",
)
def divided_by_the_reference(hypotheses, references, max_order=4):
    """You divide by the number of n-grams in the references, which is recall; a precision divides
    by those in the hypotheses.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for written, wanted in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += theirs.total()
    if not all(matches):
        return 0.0
    mean = math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / max_order)
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * mean * min(1.0, math.exp(1 - ratio))


@misconception(
    "bleu",
    id="INF56",
    fails=["bleu-clipping"],
    read="09_inference#bleu",
)
def tokens_glued_with_blanks(hypotheses, references, max_order=4):
    """You join the tokens of an n-gram to one text; a token may hold the sign between them, and
    then two n-grams look alike. Take tuples.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for written, wanted in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            ours = Counter(" ".join(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(" ".join(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += ours.total()
    if not all(matches):
        return 0.0
    mean = math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / max_order)
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * mean * min(1.0, math.exp(1 - ratio))


@misconception(
    "bleu",
    id="INF57",
    fails=["bleu-clipping"],
    read="09_inference#bleu",
)
def negative_number_of_ngrams(hypotheses, references, max_order=4):
    """You count len - n + 1 n-grams in every translation; where it is shorter than n - 1 that is
    below 0, and takes away from the others. Stop at 0.
    """
    if len(hypotheses) != len(references):
        raise ValueError("there must be as many references as hypotheses")
    matches, totals = [0] * max_order, [0] * max_order
    for written, wanted in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            ours = Counter(tuple(written[i : i + n]) for i in range(len(written) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matches[n - 1] += (ours & theirs).total()
            totals[n - 1] += len(written) - n + 1
    if not all(matches):
        return 0.0
    mean = math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / max_order)
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * mean * min(1.0, math.exp(1 - ratio))


@misconception(
    "greedy-decode",
    id="INF58",
    fails=["greedy-decode-economy"],
    read="09_inference#greedy",
)
def mode_restored_where_all_ended(model, source, bos_id, eos_id, max_len):
    """You put the mode back only where every sentence has ended; a sentence that max_len cuts off
    leaves the model in evaluation mode.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                model.train(was_training)
                break
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "greedy-decode",
    id="INF59",
    fails=["greedy-decode-economy"],
    read="09_inference#greedy",
)
def early_return_in_evaluation_mode(model, source, bos_id, eos_id, max_len):
    """With max_len=0 you return before the mode is put back, so the model stays in evaluation
    mode; every way out has to restore it.
    """
    was_training = model.training
    model.eval()
    if max_len == 0:
        return [[] for _ in source]
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    model.train(was_training)
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


@misconception(
    "beam-search",
    id="INF60",
    fails=["beam-search-greedy", "beam-search-rules"],
    read="09_inference#greedy",
)
def mode_restored_where_one_finished(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    """You put the mode back only where a hypothesis has finished; if max_len cuts all of them off,
    the model is left in evaluation mode.
    """
    was_training = model.training
    model.eval()
    finished = []
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = [(0.0, [bos_id])]
        for _ in range(max_len):
            extended = []
            for total, ids in live:
                logits = model.decode(torch.tensor([ids]), memory, memory_mask)[0, -1]
                logs = logits.log_softmax(-1).tolist()
                extended += [(total + log, [*ids, token]) for token, log in enumerate(logs)]
            kept = sorted(extended, reverse=True)[:beam_size]
            finished += [pair for pair in kept if pair[1][-1] == eos_id]
            live = [pair for pair in kept if pair[1][-1] != eos_id]
    if finished:
        model.train(was_training)
    score, ids = max(
        (total / ((4 + len(ids)) / 6) ** length_penalty, ids) for total, ids in finished or live
    )
    return [token for token in ids[1:] if token != eos_id], score


@misconception(
    "cached-attention",
    target="CachedAttention.forward",
    id="INF61",
    fails=["cached-attention-prefill"],
    read="09_inference#prefill",
)
def true_columns_with_a_row_for_each(self, query, key, value, mask=None):
    """Your columns of True have a row for each new token; a mask may have one row for all of them,
    and then the two do not fit. Take the mask's own number of rows.
    """
    if self.kept is None or self.grows:
        new = self.split(self.w_k(key)), self.split(self.w_v(value))
        if self.kept is not None:
            if mask is not None:
                rows, old = query.shape[1], self.kept[0].shape[2]
                mask = torch.cat([mask.new_ones(*mask.shape[:-2], rows, old), mask], dim=-1)
            new = torch.cat([self.kept[0], new[0]], dim=2), torch.cat([self.kept[1], new[1]], dim=2)
        self.kept = new
    heads = None if mask is None else mask.unsqueeze(-3)
    q, (k, v) = self.split(self.w_q(query)), self.kept
    output, weights = scaled_dot_product_attention(q, k, v, heads)
    return self.w_o(self.merge(output)), weights


@misconception(
    "sample",
    id="INF62",
    fails=["sample-temperature"],
    read="09_inference#temperature",
)
def a_fresh_generator_at_every_call(logits, temperature=1.0, top_k=None, generator=None):
    """Where no generator is given you make one, and a new one always begins at the same place:
    every call draws the same tokens. Hand on None.
    """
    if generator is None:
        generator = torch.Generator()
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k ({top_k}) must be at least 1")
    if temperature == 0:
        return logits.argmax(-1)
    kept, ids = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1]))
    drawn = torch.multinomial((kept / temperature).softmax(-1), 1, generator=generator)
    return ids.gather(-1, drawn).squeeze(-1)


@misconception(
    "greedy-decode",
    id="INF63",
    fails=["greedy-decode-values"],
    read="09_inference#greedy",
)
def zeros_left_out(model, source, bos_id, eos_id, max_len):
    """You fill the rows that have ended with 0 and leave 0 out in the end; a sentence may hold the
    token 0. Cut each list at its end token.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            chosen = model.decode(ids, memory, memory_mask)[:, -1].argmax(-1).masked_fill(ended, 0)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended = ended | (chosen == eos_id)
            if ended.all():
                break
    model.train(was_training)
    return [[i for i in row if i not in (0, eos_id)] for row in ids[:, 1:].tolist()]


# 9.7 Drafts that change nothing


@misconception(
    "keep-or-replace",
    id="INF76",
    fails=["keep-or-replace-distribution", "keep-or-replace-often"],
    read="09_inference#temperature",
)
def replaced_from_large(drafts, small, large, generator=None):
    """You draw replacements from the large model's probabilities. Those tokens have been kept often
    already: draw from what is missing, the part of large that lies above small.
    """
    accept = (large / small).gather(1, drafts.unsqueeze(1)).squeeze(1)
    kept = torch.rand(len(drafts), generator=generator, dtype=large.dtype) < accept
    others = torch.multinomial(large, 1, generator=generator).squeeze(1)
    return torch.where(kept, drafts, others), kept


@misconception(
    "keep-or-replace",
    id="INF77",
    fails=["keep-or-replace-distribution", "keep-or-replace-often"],
    read="09_inference#temperature",
)
def all_kept(drafts, small, large, generator=None):
    """You keep every draft: what comes out has the small model's distribution."""
    return drafts, torch.ones(len(drafts), dtype=torch.bool)


@misconception(
    "keep-or-replace",
    id="INF78",
    fails=["keep-or-replace-often"],
    read="09_inference#temperature",
)
def all_drawn_anew(drafts, small, large, generator=None):
    """You draw all tokens from the large model and use no draft. The distribution is right, but the
    draft was for nothing: keep it as often as the distribution allows.
    """
    tokens = torch.multinomial(large, 1, generator=generator).squeeze(1)
    return tokens, tokens == drafts


@misconception(
    "keep-or-replace",
    id="INF79",
    fails=["keep-or-replace-distribution", "keep-or-replace-often"],
    read="09_inference#temperature",
)
def by_the_large_ones_probability(drafts, small, large, generator=None):
    """You keep a draft with the probability that the large model gives it. What counts is how that
    compares with the small model's: their ratio, at most 1.
    """
    accept = large.gather(1, drafts.unsqueeze(1)).squeeze(1)
    kept = torch.rand(len(drafts), generator=generator, dtype=large.dtype) < accept
    missing = (large - small).clamp(min=0) + 1e-12
    others = torch.multinomial(missing, 1, generator=generator).squeeze(1)
    return torch.where(kept, drafts, others), kept


@misconception(
    "keep-or-replace",
    id="INF80",
    fails=["keep-or-replace-distribution", "keep-or-replace-often"],
    read="09_inference#temperature",
)
def kept_where_more_likely(drafts, small, large, generator=None):
    """You refuse every draft that the large model likes less than the small one. Refuse it only as
    often as it comes too often: keep it with the ratio of the two probabilities.
    """
    accept = (large / small).gather(1, drafts.unsqueeze(1)).squeeze(1)
    kept = accept >= 1
    missing = (large - small).clamp(min=0) + 1e-12
    others = torch.multinomial(missing, 1, generator=generator).squeeze(1)
    return torch.where(kept, drafts, others), kept


@misconception(
    "keep-or-replace",
    id="INF81",
    fails=["keep-or-replace-distribution", "keep-or-replace-often"],
    read="09_inference#temperature",
)
def the_ratio_upside_down(drafts, small, large, generator=None):
    """Your ratio is upside down: a draft is kept with large divided by small."""
    accept = (small / large.clamp(min=1e-12)).gather(1, drafts.unsqueeze(1)).squeeze(1)
    kept = torch.rand(len(drafts), generator=generator, dtype=large.dtype) < accept
    missing = (large - small).clamp(min=0) + 1e-12
    others = torch.multinomial(missing, 1, generator=generator).squeeze(1)
    return torch.where(kept, drafts, others), kept


@misconception(
    "keep-or-replace",
    id="INF82",
    fails=["keep-or-replace-distribution", "keep-or-replace-often"],
    read="09_inference#temperature",
)
def nothing_missing_nothing_drawn(drafts, small, large, generator=None):
    """Where both models agree nothing is missing, and there is nothing to draw a replacement from.
    Such a row keeps its draft; give it weights that can be drawn from.
    """
    accept = (large / small).gather(1, drafts.unsqueeze(1)).squeeze(1)
    kept = torch.rand(len(drafts), generator=generator, dtype=large.dtype) < accept
    missing = (large - small).clamp(min=0)
    others = torch.multinomial(missing, 1, generator=generator).squeeze(1)
    return torch.where(kept, drafts, others), kept
