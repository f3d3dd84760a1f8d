"""An idea that a rule forbids, "any convolution", holds every operator of torch's that is one."""

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.utils import checkpoint

from autograder.bridge.ideas import IDEAS, in_full
from autograder.bridge.watch import Forbidden, Watch, bare
from autograder.common.course import CourseError
from autograder.judge.broken_rules import broken_rules
from autograder.judge.rules import QuestionRules, read_rules

SCHEMAS = torch._C._jit_get_all_schemas()  # pyright: ignore[reportPrivateImportUsage, reportAttributeAccessIssue]
OPERATORS = sorted({bare(s.name[6:]) for s in SCHEMAS if s.name.startswith("aten::")})
LINE, SIGNAL = torch.ones(2, 1, 3), torch.ones(1, 1, 6)
WEIGHT = torch.ones(1, 1, 3, 3)
RULES = QuestionRules(forbid=in_full("any convolution"))


@pytest.mark.parametrize("idea", IDEAS)
def test_each_operator_that_is_called_so_is_in_an_idea_or_harmless(idea: str):
    held = {*IDEAS[idea].operators, *IDEAS[idea].harmless}
    called = {name for name in OPERATORS if re.search(IDEAS[idea].stems, name)}
    assert sorted(called - held) == []
    assert sorted(held - {*OPERATORS}) == [], "no operators of this torch"
    assert not {*IDEAS[idea].operators} & {*IDEAS[idea].harmless}


@pytest.mark.parametrize("idea", ["softmax", "weighing by scores"])
def test_attention_that_is_written_in_python_is_of_its_ideas(idea: str):
    rules = QuestionRules(forbid=in_full(f"any {idea}"))
    for line in (
        "from torch.nn.attention.flex_attention import flex_attention as act",
        "import torch.nn.attention.flex_attention as a\nact = a.flex_attention",
    ):
        assert broken_rules(f"{line}\ndef f(q, k, v): return act(q, k, v)", rules, names=("f",))


def test_a_product_of_matrices_has_other_names():
    bags, weights = torch.arange(4).repeat(3, 1), torch.ones(3, 4)
    watch = Watch(in_full("any product of matrices"))
    try:
        with pytest.raises(Forbidden):
            F.bilinear(torch.ones(3, 4), torch.ones(3, 1), torch.ones(5, 4, 1))
        with pytest.raises(Forbidden):
            F.embedding_bag(bags, torch.ones(4, 5), per_sample_weights=weights, mode="sum")
    finally:
        watch.end()


def below_by_a_class(call):
    """Call where a tensor's class is asked."""
    got = []

    class Asked(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            got.append(call())
            return torch.ones(2)

    torch.sin(torch.Tensor._make_subclass(Asked, torch.ones(2)))
    return got[0]


def below_by_a_base(call):
    """Call where another base of a tensor's class is asked."""
    got = []

    def asked(cls, func, types, args=(), kwargs=None):
        got.append(call())
        return torch.ones(2)

    base = type("Base", (), {"__torch_dispatch__": classmethod(asked)})
    torch.sin(torch.Tensor._make_subclass(type("Asked", (base, torch.Tensor), {}), torch.ones(2)))
    return got[0]


def below_by_a_policy(call):
    """Call where torch asks what to keep for the way back."""
    got = []

    def policy(ctx, operator, *args, **kwargs):
        got.append(call())
        return checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

    with checkpoint.create_selective_checkpoint_contexts(policy)[0]:
        torch.sin(torch.ones(2).requires_grad_())
    return got[0]


def below_by_a_hook(call):
    """Call where torch keeps a tensor for the way back."""
    got = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: got.append(call()) or x, lambda x: x):
        torch.sin(torch.ones(2).requires_grad_())
    return got[0]


def on_the_way_back(call):
    """Call where a slope arrives."""
    x = torch.ones(2, requires_grad=True)
    got = []
    x.register_hook(lambda slope: got.append(call()))
    x.sin().sum().backward()
    return got[0]


def below_by_an_operator(call):
    """Call in an operator of higher order."""
    cond = torch.ops.higher_order.cond
    return cond(True, lambda _: call(), lambda x: x, (torch.ones(2),))


CALLS = {
    "slope": lambda: torch.ops.aten._slow_conv2d_backward.output_mask(
        torch.ones(1, 1, 4, 4),
        torch.ones(1, 1, 6, 6),
        WEIGHT,
        [3, 3],
        [1, 1],
        [0, 0],
        [True, False, False],
    ),
    "slope along time": lambda: torch.ops.aten.conv_tbc_backward(
        torch.ones(4, 1, 3), torch.ones(6, 1, 2), torch.ones(3, 2, 3), torch.ones(3), 0
    ),
    "along a line": lambda: F.conv1d(SIGNAL, LINE),
    "in space": lambda: F.conv3d(SIGNAL[None, None], LINE[:1, None, None]),
    "a class": lambda: below_by_a_class(lambda: F.conv1d(SIGNAL, LINE)),
    "another base": lambda: below_by_a_base(lambda: F.conv1d(SIGNAL, LINE)),
    "a policy": lambda: below_by_a_policy(lambda: F.conv1d(SIGNAL, LINE)),
    "a hook": lambda: below_by_a_hook(lambda: F.conv1d(SIGNAL, LINE)),
    "on the way back": lambda: on_the_way_back(lambda: F.conv1d(SIGNAL, LINE)),
    "functionalized": lambda: torch.func.functionalize(lambda x: F.conv1d(x, LINE))(SIGNAL),
    "higher order": lambda: below_by_an_operator(lambda: F.conv1d(SIGNAL, LINE)),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_idea_is_stopped(name: str):
    CALLS[name]()
    watch = Watch(RULES.operations_forbidden)
    try:
        with pytest.raises(Forbidden):
            CALLS[name]()
        assert watch.seen
    finally:
        watch.end()


def test_a_step_inside_another_operator_is_none():
    watch = Watch(["torch.rsqrt", "torch.sort"])
    try:
        torch.vmap(torch.nn.LayerNorm(3))(torch.ones(2, 3))
        torch.ones(4).requires_grad_().median().backward()
    finally:
        watch.end()
    assert not watch.seen


@pytest.mark.parametrize(
    "text",
    [
        "torch.ops.higher_order.cond(True, abs, abs, (x,))",
        "torch.ops.quantized.conv1d(x)",
        "torch.ao.nn.quantized.functional.linear(x)",
        "torch.conv1d(x, x)",
    ],
)
def test_text_that_leads_below_breaks_the_rule(text: str):
    assert broken_rules(f"import torch\ndef f(x):\n    return {text}", RULES)


def test_ordinary_operators_by_name_break_none():
    assert not broken_rules("import torch\ndef f(x):\n    return torch.ops.aten.sin(x)", RULES)


def test_an_idea_that_nobody_knows_is_said(tmp_path: Path):
    file = tmp_path / "rules.toml"
    file.write_text('[defaults]\nforbid = ["any convolutoin"]')
    with pytest.raises(CourseError, match=r"'any convolutoin'.*perhaps convolution was meant"):
        read_rules(file, "one", [])
    file.write_text('[defaults]\nforbid = ["any norm"]\nallow = ["torch.rms_norm"]')
    rules = read_rules(file, "one", []).defaults
    assert "torch.layer_norm" in rules.forbidden and "torch.rms_norm" not in rules.forbidden


@pytest.mark.parametrize(
    "way",
    [
        "sorted(x)",
        "x.sort()",
        "list(heapq.merge(*[[v] for v in x]))",
        "bisect.insort(x, 3)",
        "statistics.median(x)",
        "np.unique(x)",
        "np.asarray(x)[np.argsort(x)]",
        "np.lexsort((x,))",
        "list(graphlib.TopologicalSorter(x).static_order())",
        "torch.tensor(x).topk(3)",
        "torch.tensor(x).kthvalue(1)",
        "torch.unique(torch.tensor(x))",
        "torch.tensor(x).argsort()",
    ],
)
def test_any_sorting_is_of_python_and_numpy_too(way: str):
    rules = QuestionRules(forbid=in_full("any sorting"))
    head = "import bisect, graphlib, heapq, statistics, torch\nimport numpy as np\n"
    assert broken_rules(f"{head}def f(x):\n    return {way}", rules, names=("f",)), way
    own = "def f(x):\n    return x.pop(x.index(min(x))), bisect.bisect_left(x, 3), np.max(x)"
    assert not broken_rules(head + own, rules, names=("f",))
