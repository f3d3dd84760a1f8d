"""What a question asks to be written is not taken ready from another place of a library."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from autograder.authoring.mutants import alone, run_tests
from autograder.authoring.source import fill_in, read_source
from autograder.bridge.watch import Forbidden, Watch
from autograder.common.course import Course
from autograder.judge.broken_rules import broken_rules
from autograder.judge.rules import read_rules
from lab import blocks
from lab.page import plain

CHAPTERS = Path(__file__).parents[1] / "solutions"
SETUP = "import torch\nimport torch.nn.functional as F\n"


def _tables(chapter: str) -> set[str]:
    text = (CHAPTERS / chapter / "rules.toml").read_text(encoding="utf-8")
    return {*QUESTIONS[chapter], *tomllib.loads(text)}


def is_broken(chapter: str, question: str, answer: str) -> bool:
    """Whether an answer breaks the rules of its question."""
    rules = read_rules(CHAPTERS / chapter / "rules.toml", chapter, _tables(chapter))
    return bool(broken_rules(answer, rules.for_question(question), (), (SETUP,)))


def watched(chapter: str, question: str) -> Watch:
    """What stops while the tests of a question run."""
    rules = read_rules(CHAPTERS / chapter / "rules.toml", chapter, _tables(chapter))
    return Watch(rules.for_question(question).operations_forbidden)


QUESTIONS = {
    "01_embedding": ["token-embedding"],
    "03_attention": ["masked-softmax", "scaled-dot-product", "masks"],
    "04_multi_head_attention": ["multi-head"],
    "06_encoder": ["encoder-layer", "encoder"],
    "07_decoder": ["decoder-masks", "decoder-layer", "decoder", "generator"],
    "10_full_model": ["transformer", "average-checkpoints"],
    "02_positional_encoding": ["sinusoidal-encoding", "shift-matrix", "positional-encoding"],
    "05_layer_norm": ["layer-norm", "feed-forward", "norm-backward"],
    "11_your_translator": ["kind-of-error", "positions", "bootstrap"],
    "13_pictures": [
        *("patchify", "unpatchify", "convolved", "patch-encoder", "hard-attention", "captioner"),
    ],
    "15_reformer": ["block-slopes"],
    "09_inference": ["greedy-decode", "beam-search", "bleu"],
    "08_teacher_forcing": ["label-smoothed-loss", "clip-gradients", "train-step"],
}


@pytest.mark.parametrize(
    ("chapter", "question", "part"),
    [
        ("01_embedding", "token-embedding", "_placed"),
        ("03_attention", "scaled-dot-product", "_Layer._attend"),
        ("04_multi_head_attention", "multi-head", "_Layer._attend"),
        ("05_layer_norm", "feed-forward", "_Layer._feed"),
        ("06_encoder", "encoder-layer", "_Layer.encode"),
        ("06_encoder", "encoder-layer", "encoder_stages"),
        ("07_decoder", "decoder-layer", "_Layer.decode"),
        ("10_full_model", "transformer", "logits"),
    ],
)
def test_the_model_as_arithmetic_is_no_answer(chapter: str, question: str, part: str):
    name = part.partition(".")[0]
    assert is_broken(chapter, question, f"from lab.page import plain\nf = plain.{part}")
    assert is_broken(chapter, question, f"from lab.page.plain import {name} as f\nf(1)")
    found: Any = plain
    for one in part.split("."):
        found = getattr(found, one)
    watch = watched(chapter, question)
    try:
        with pytest.raises(Forbidden):
            found()
    finally:
        watch.end()


@pytest.mark.parametrize(
    "answer",
    [
        "torch._transformer_encoder_layer_fwd(x)",
        "torch.nn.TransformerEncoderLayer(8, 1)",
        "torch.nn.TransformerDecoderLayer(8, 1)",
        "torch.nn.CrossMapLRN2d(8)",
        "from torch.nn.modules._functions import CrossMapLRN2d as f\nf.apply(x)",
    ],
)
def test_a_layer_that_normalizes_within_is_no_layer_norm(answer: str):
    assert is_broken("05_layer_norm", "layer-norm", answer)


@pytest.mark.parametrize(
    "answer",
    [
        "import torch.autograd.forward_ad as ad\nad.make_dual(x, t)",
        "torch.autograd.Variable._execution_engine.run_backward((y,), (g,))",
        "from torch.autograd.graph import _engine_run_backward as go\ngo((y,), (g,))",
        "y.grad_fn(g)",
        "from torch.autograd.gradcheck import gradcheck\ngradcheck(f, x)",
        "node = NODES[0].next_functions[0][0]\nnode(g)",
        "torch.func.vjp(f, x)",
        "from torch.func import jacrev\njacrev(f)(x)",
    ],
)
@pytest.mark.parametrize(
    ("chapter", "question"),
    [("05_layer_norm", "norm-backward"), ("15_reformer", "block-slopes")],
)
def test_a_gradient_that_torch_works_out_is_none_worked_out_by_hand(
    chapter: str, question: str, answer: str
):
    assert is_broken(chapter, question, answer)


@pytest.mark.parametrize("chapter", [path.name for path in sorted(CHAPTERS.glob("[0-9]*"))])
def test_whoever_prints_a_tensor_has_used_nothing_forbidden(chapter: str):
    one, grown = torch.ones(2, 3), torch.ones(2, requires_grad=True) * 2
    content = tomllib.loads((CHAPTERS / chapter / "rules.toml").read_text(encoding="utf-8"))
    rules = read_rules(CHAPTERS / chapter / "rules.toml", chapter, content)
    for question in content.keys() - {"defaults"}:
        watch = Watch(rules.for_question(question).operations_forbidden)
        try:
            assert f"{one} {grown!r} {one.sum():.3f}" and torch.vmap(torch.neg)(one) is not None
            assert not watch.seen, question
        finally:
            watch.end()


def test_who_forbids_a_dual_tensors_parts_by_name_stops_them():
    watch = Watch(["torch.autograd.forward_ad.unpack_dual", "torch.autograd.forward_ad"])
    try:
        with pytest.raises(Forbidden):
            torch.autograd.forward_ad.unpack_dual(torch.ones(1))
        with pytest.raises(Forbidden):
            torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1))
    finally:
        watch.end()


@pytest.mark.parametrize("answer", ["F.nll_loss(x, y)", "torch.nn.NLLLoss()(x, y)"])
def test_a_loss_that_chooses_and_averages_is_no_loss_of_ones_own(answer: str):
    assert is_broken("08_teacher_forcing", "label-smoothed-loss", answer)


@pytest.mark.parametrize(
    "answer",
    [
        "torch.linalg.inv(a.T @ a) @ (a.T @ b)",
        "u, s, v = torch.linalg.svd(a)",
        "a.inverse()",
        "import numpy as np\nnp.polynomial.polyutils._fit(v, x, y, 3)",
        "import scipy.linalg as s\ns.solve(a.T @ a, a.T @ b)",
        "from scipy.linalg import cho_factor, cho_solve\ncho_solve(cho_factor(a), b)",
        "from scipy.linalg.lapack import dgesv\ndgesv(a, b)",
        "from scipy.sparse.linalg import spsolve\nspsolve(a, b)",
        "from scipy import optimize\noptimize.lsq_linear(a, b)",
        "torch.stack([torch.linalg.det(one) for one in columns]) / torch.linalg.det(a)",
        "a.slogdet().logabsdet - torch.logdet(b)",
        "import numpy as np\nnp.linalg.det(a)",
        "torch.linalg.lu(a)",
        "import scipy.linalg as s\ns.lu_factor(a)",
        "torch.linalg.cholesky(a.T @ a)",
        "torch.optim.LBFGS([w], max_iter=200).step(closure)",
    ],
)
def test_a_matrix_that_is_fitted_to_a_table_is_not_written_down(answer: str):
    assert is_broken("02_positional_encoding", "shift-matrix", answer)


@pytest.mark.parametrize(
    "answer",
    [
        "from sacrebleu.metrics.bleu import BLEU\nBLEU().corpus_score(a, b)",
        "import lab.translator as lab\nlab._bleu(a, b)",
        "workshop().bleu(a, b)",
        "import trainer.scoring\ntrainer.scoring.bleu(a, b, tokenised=True)",
    ],
)
def test_a_ready_score_is_none_whose_counts_one_keeps(answer: str):
    setup = "from lab.translator import Translator, workshop\n"
    assert is_broken("11_your_translator", "bootstrap", setup + answer)


LIBRARYS = """def learn_merges(counts, n):
    import json
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    room = len({letter for word in counts for letter in word}) + n
    trainer = trainers.BpeTrainer(vocab_size=room, min_frequency=0, show_progress=False)
    learnt.train_from_iterator((word for word in counts for _ in range(counts[word])), trainer)
    return [tuple(pair) for pair in json.loads(learnt.to_str())["model"]["merges"]][:n]
"""


def failed_with(course: Course, chapter: str, question: str, instead: str) -> set[str]:
    """The tests that fail if this is written below a question's answer."""
    source = alone(read_source(course.source(chapter)), question)
    answer = next(cell for cell in source.cells if cell.id == question)
    filled = fill_in(answer, f"{answer.source}\n{instead}")
    cells = tuple(filled if cell is answer else cell for cell in source.cells)
    return set(run_tests(replace(source, cells=cells)))


def test_the_merges_that_a_library_learns_are_not_those_that_are_asked_for(course: Course):
    assert failed_with(course, "01_embedding", "merges", LIBRARYS) == {"merges-learn"}


MEASURED = """def norm_backward(x, gain, upstream, eps=1e-5):
    def normed(x):
        apart = x - x.mean(-1, keepdim=True)
        return apart / (apart.square().mean(-1, keepdim=True) + eps).sqrt()

    step, double = {step}, x.double()
    eye = torch.eye(x.shape[-1], dtype=torch.float64)
    sides = [
        (gain * upstream * (normed(double + step * one) - normed(double - step * one))).sum(-1)
        for one in eye
    ]
    for_x = (torch.stack(sides, -1) / (2 * step)).to(x.dtype)
    axes = tuple(range(x.dim() - 1))
    both = (upstream * normed(x), upstream)
    return for_x, *(one.sum(axes) if axes else one for one in both)
"""


@pytest.mark.parametrize("step", [1e-3, 1e-4, 1e-5, 6e-6, 1e-6])
def test_a_slope_that_is_measured_is_none_worked_out_by_hand(course: Course, step: float):
    assert failed_with(course, "05_layer_norm", "norm-backward", MEASURED.format(step=step)) == {
        "norm-backward-input"
    }


MEASURED_IN_BLOCKS = """def block_slopes(q, k, v, o, z, do):
    given = [one.double() for one in (q, k, v)]
    shares = (given[0] @ given[1].T / q.shape[1] ** 0.5 - z.double()[:, None]).exp()

    def total(q, k, v):
        new = (q @ k.T / q.shape[1] ** 0.5 - z.double()[:, None]).exp()
        out = o.double() + new @ v - shares @ given[2]
        return (out / (1 + (new - shares).sum(1, keepdim=True)) * do.double()).sum()

    def along(which, part, far):
        moved = [one.clone() for one in given]
        moved[which].view(-1)[part] += far * {step}
        return total(*moved)

    def slope(which, part):
        near, far = (along(which, part, c) - along(which, part, -c) for c in (1, 2))
        return (8 * near - far) / (12 * {step})

    return tuple(
        torch.stack([slope(i, j) for j in range(one.numel())]).view(one.shape).to(q.dtype)
        for i, one in enumerate(given)
    )
"""


@pytest.mark.parametrize("step", [1e-2, 3e-3, 1e-3, 3e-4, 1e-4])
def test_slopes_of_a_block_that_are_measured_are_none_worked_out_by_hand(
    course: Course, step: float
):
    answer = MEASURED_IN_BLOCKS.format(step=step)
    assert "block-slopes-blocks" in failed_with(course, "15_reformer", "block-slopes", answer)


def test_a_matrix_of_blocks_may_be_put_together():
    joined = "from scipy.linalg import block_diag\nblock_diag(a, b)"
    for answer in (joined, "det, lu = a, b\ndet @ lu"):
        assert not is_broken("02_positional_encoding", "shift-matrix", answer)


@pytest.mark.parametrize("question", ["greedy-decode", "beam-search"])
@pytest.mark.parametrize(
    "answer",
    [
        "from lab.small_runs import greedy\ngreedy(model, source, 1, 2, 9)",
        "import lab.translator\nlab.translator.greedy(model, source, 1, 2, 9)",
    ],
)
def test_a_ready_search_is_none_of_ones_own(question: str, answer: str):
    assert is_broken("09_inference", question, answer)


@pytest.mark.parametrize("chapter", [path.name for path in sorted(CHAPTERS.glob("[0-9]*"))])
def test_what_was_made_of_a_ready_layer_beforehand_is_stopped_as_well(chapter: str):
    """Whoever got it from a larger part, before anything is stopped, calls a method of its own."""
    content = tomllib.loads((CHAPTERS / chapter / "rules.toml").read_text(encoding="utf-8"))
    for question in content.values():
        own = [name for name in question.get("forbid", ()) if name.startswith("lab.blocks.")]
        for kind in (getattr(blocks, name.rpartition(".")[2]) for name in own if "._" not in name):
            assert not isinstance(kind, type) or "forward" in vars(kind), kind


def test_a_feed_forward_network_out_of_a_ready_layer_is_stopped():
    made = blocks.EncoderLayer(4, 1, 8).feed_forward
    watch = watched("05_layer_norm", "feed-forward")
    try:
        with pytest.raises(Forbidden):
            made(torch.ones(1, 4))
    finally:
        watch.end()


@pytest.mark.parametrize(
    "answer",
    [
        "F.linear(patches, weight, bias)",
        "patches @ weight.T + bias",
        "torch.einsum('bnp,dp->bnd', patches, weight) + bias",
        "torch.baddbmm(bias, patches, weight.T.expand(2, 4, 3))",
        "torch.tensordot(patches, weight, ([-1], [-1])) + bias",
    ],
)
def test_a_layer_on_patches_is_no_convolution(answer: str):
    watch = watched("13_pictures", "convolved")
    patches, weight, bias = torch.ones(2, 3, 4), torch.ones(3, 4), torch.ones(3)
    names = {"torch": torch, "F": F, "patches": patches, "weight": weight, "bias": bias}
    try:
        F.conv2d(torch.ones(1, 1, 4, 4), torch.ones(3, 1, 2, 2), stride=2)
        assert not watch.seen
        with pytest.raises(Forbidden):
            eval(answer, names)
    finally:
        watch.end()


def test_torchs_ready_way_back_is_none_worked_out_by_hand():
    names = ("_scaled_dot_product_flash_attention_for_cpu_backward", "_softmax_backward_data")
    watch, one = watched("15_reformer", "block-slopes"), torch.ones(1, 1, 2, 2)
    try:
        torch.softmax(one, -1)  # that is not the way back
        with pytest.raises(Forbidden):
            getattr(torch.ops.aten, names[0])(*[one] * 5, one[0], 0.0, False)
        with pytest.raises(Forbidden):
            getattr(torch.ops.aten, names[1])(one, one, -1, one.dtype)
    finally:
        watch.end()
