"""What a question asks to be written is not taken ready from another place of a library."""

from pathlib import Path

import pytest

from autograder.judge.broken_rules import broken_rules
from autograder.judge.rules import read_rules

CHAPTERS = Path(__file__).parents[1] / "solutions"
SETUP = "import torch\nimport torch.nn.functional as F\n"


def is_broken(chapter: str, question: str, answer: str) -> bool:
    """Whether an answer breaks the rules of its question."""
    rules = read_rules(CHAPTERS / chapter / "rules.toml", chapter, QUESTIONS[chapter])
    return bool(broken_rules(answer, rules.for_question(question), (), (SETUP,)))


QUESTIONS = {
    "02_positional_encoding": ["sinusoidal-encoding", "shift-matrix", "positional-encoding"],
    "05_layer_norm": ["layer-norm", "feed-forward", "norm-backward"],
    "08_teacher_forcing": ["label-smoothed-loss", "clip-gradients", "train-step"],
}


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
    ],
)
def test_a_gradient_that_torch_works_out_is_none_worked_out_by_hand(answer: str):
    assert is_broken("05_layer_norm", "norm-backward", answer)


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
    ],
)
def test_a_matrix_that_is_fitted_to_a_table_is_not_written_down(answer: str):
    assert is_broken("02_positional_encoding", "shift-matrix", answer)
