"""No kind of slip goes unnoticed in any chapter; none of what the texts allow costs a point."""

import ast
import re

import pytest

from autograder.authoring.mutants import alone, run_tests
from autograder.authoring.source import BEGIN_HIDDEN, END_HIDDEN, Cell, Source, read_source
from autograder.common.course import Course
from autograder.judge.released import visible_part
from tests.slipping import KINDS, ROUNDED, rounding, slipped, spots

MEASURED = "a measurement: nobody learns through it"
BACKWARD = "a gradient by hand: nothing flows back through it"

# Chapter and definition, by kind: what a question's text leaves open, and why.
LEFT_OPEN: dict[str, dict[tuple[str, str], str]] = {
    "tensor for float": {
        ("07_decoder", "incremental_error"): "a tensor with one number will do",
        ("08_teacher_forcing", "learning_rate"): "optimisers take tensors as well",
        ("08_teacher_forcing", "measured"): "it is what a cell has printed",
        ("09_inference", "bleu"): "published scores are tensors",
        ("12_language_model", "measured_early"): "it is what a cell has printed",
        ("12_language_model", "measured_sizes"): "it is what a cell has printed",
        ("13_pictures", "measured_shuffles"): "it is what a cell has printed",
        ("14_longer_context", "measured_spans"): "it is what a cell has printed",
        **dict.fromkeys(
            [("11_your_translator", name) for name in ("train", "sweep", "bootstrap")],
            "a tensor with one number will do",
        ),
    },
    "float for int": {
        ("12_language_model", "measured_sizes"): "1448.0 parameters are as many as 1448",
        **dict.fromkeys(
            [
                ("03_attention", "smallest_leak"),
                ("12_language_model", "leak_causes"),
                ("13_pictures", "sight_causes"),
                ("14_longer_context", "leak_lines"),
                ("15_reformer", "hash_leaks"),
            ],
            "4.0 names the same line or place as 4",
        ),
    },
    "always double": {
        ("04_multi_head_attention", "ablation_costs"): "the text asks for float64",
        ("08_teacher_forcing", "label_smoothed_loss"): "a loss may be summed in more precision",
        ("09_inference", "CachedAttention.forward"): "the chapter asks for no dtype",
    },
    "cuts off": {
        ("12_language_model", "shaped"): "what is drawn from has no gradient to give",
        ("12_language_model", "best_losses"): MEASURED,
        ("14_longer_context", "next_memory"): "a memory is cut off on purpose",
        ("14_longer_context", "trimmed"): "spans are counted; the memory's gradient has a test",
        ("04_multi_head_attention", "ablation_costs"): MEASURED,
        ("05_layer_norm", "curves"): MEASURED,
        ("05_layer_norm", "norm_backward"): BACKWARD,
        ("09_inference", "CachedAttention.forward"): "nobody learns while decoding",
    },
    "gives cut off": {
        ("12_language_model", "shaped"): "what is drawn from has no gradient to give",
        ("12_language_model", "best_losses"): MEASURED,
        ("14_longer_context", "next_memory"): "a memory is cut off on purpose",
        ("04_multi_head_attention", "ablation_costs"): MEASURED,
        ("05_layer_norm", "curves"): MEASURED,
        ("05_layer_norm", "norm_backward"): BACKWARD,
        ("09_inference", "CachedAttention.forward"): "nobody learns while decoding",
    },
    ROUNDED: {
        ("02_positional_encoding", "rotate"): "the text asks for the dtype of x",
        ("10_full_model", "Transformer.decode"): "a method that is not forward",
        ("13_pictures", "Captioner.encode"): "a method that is not forward",
        ("13_pictures", "Captioner.decode"): "a method that is not forward",
        ("14_longer_context", "RelativeAttention.forward"): "the text asks for ten digits",
        ("14_longer_context", "span_weights"): "the text asks for ten digits",
        **dict.fromkeys(
            [
                ("15_reformer", name)
                for name in ("shared_attention", "lsh_round", "combined", "block_slopes")
            ],
            "the text asks for ten digits",
        ),
        ("05_layer_norm", "norm_backward"): "the text asks for twelve places after the point",
    },
}


def with_slip(source: Source, cell: Cell, *slip: str) -> Source:
    """A question by itself, its answer with a slip."""
    wrong = slipped(cell, *slip)
    cells = [wrong if one.id == cell.id else one for one in alone(source, cell.id).cells]
    return Source(source.path, tuple(cells), source.digest)


@pytest.mark.parametrize("kind", KINDS)
def test_a_slip_of_any_kind_is_noticed(course: Course, chapter: str, kind: str):
    source = read_source(course.source(chapter))
    unseen = [
        f"{name} {which}".strip()
        for cell in source.of_kind("solution")
        for found, name, which in spots(cell)
        if found == kind and (chapter, name) not in LEFT_OPEN.get(kind, {})
        if run_tests(with_slip(source, cell, kind, name, which)) == {}
    ]
    assert unseen == [], KINDS[kind]


def test_single_precision_inside_is_right(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    went = {
        name: run_tests(with_slip(source, cell, ROUNDED, name))
        for cell in source.of_kind("solution")
        for name in rounding(cell)
        if (chapter, name) not in LEFT_OPEN.get(ROUNDED, {})
    }
    assert {name: failed for name, failed in went.items() if failed} == {}


def test_hidden_tests_use_no_name_of_an_argument_that_visible_ones_do_not(
    course: Course, chapter: str
):
    """Whoever calls an argument something else should read so before the notebook is graded."""
    source = read_source(course.source(chapter))
    for cell in source.of_kind("solution"):
        arguments = {
            argument.arg
            for node in ast.walk(ast.parse(cell.source))
            if isinstance(node, ast.FunctionDef)
            for argument in [*node.args.args, *node.args.kwonlyargs]
        }
        own = source.tests_of(cell.id)
        tests = [test.source for test in source.of_kind("test") if test.id in own]
        shown = [visible_part(test, (BEGIN_HIDDEN, END_HIDDEN)) for test in tests]
        seen = set().union(*map(keywords, shown)) & arguments
        used = set().union(*map(keywords, tests)) & arguments
        assert used <= seen, f"{cell.id}: {', '.join(used - seen)}"


def keywords(test: str) -> set[str]:
    """The names of arguments in all calls of a test."""
    calls = [node for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Call)]
    own = [call for call in calls if not re.match(r"(F|nn|torch)\.", ast.unparse(call.func))]
    return {word.arg for call in own for word in call.keywords if word.arg}
