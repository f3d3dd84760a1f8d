"""The numbers exercises are tested with: sizes that tell axes apart, no lucky constants."""

import re
from collections import defaultdict

import pytest
import torch

from autograder.authoring.answers import answered, read_answers
from autograder.authoring.mutants import alone, run_tests
from autograder.authoring.source import BEGIN_HIDDEN, END_HIDDEN, Source, fill_in, read_source
from autograder.common.course import Course
from autograder.judge.released import visible_part
from lab import check


def degenerate(shape: tuple[int, ...]) -> bool:
    """Whether a mixed-up axis could go unnoticed: a size of 1, or one size twice."""
    return 1 in shape or len(set(shape)) < len(shape)


def without_choice(shape: tuple[int, ...], signature: str) -> tuple[int, ...]:
    """The sizes of a stack of matrices that the signature wants square, each matrix's once."""
    square = re.search(r'"[^"]* (\w+) \1"', signature)
    return shape[:-1] if square and len(shape) > 2 and shape[-1] == shape[-2] else shape


def is_square_matrix(shape: tuple[int, ...]) -> bool:
    """Whether this is a weight from a width to the same width, which has no choice."""
    return len(shape) == 2 and shape[0] == shape[1] > 1


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of everything that `draw` gives while a test runs."""
    shapes: list[tuple[int, ...]] = []
    original = check.draw

    def recording(*wanted, **options):
        shapes.extend(tuple(shape) for shape in wanted)
        return original(*wanted, **options)

    monkeypatch.setattr(check, "draw", recording)
    return shapes


def test_sizes_tell_the_axes_apart(course: Course, chapter: str, drawn):
    """For every rank that a question draws, some tensor has sizes that all differ and exceed 1."""
    source = read_source(course.source(chapter))
    for cell in source.of_kind("solution"):
        drawn.clear()
        assert run_tests(alone(source, cell.id)) == {}
        by_rank = defaultdict(set)
        for shape in drawn:
            if len(shape) > 1 and not is_square_matrix(shape):
                by_rank[len(shape)].add(without_choice(shape, cell.source))
        for rank, shapes in by_rank.items():
            assert not all(degenerate(shape) for shape in shapes), (
                f"{cell.id}, {rank} axes: {shapes}"
            )


def test_padding_is_not_always_0(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    setup = source.of_kind("setup")[0].source
    for cell in source.of_kind("solution"):
        if re.search(r"\bpad_id:", cell.source):
            tests = [test.source for test in source.of_kind("test") if test.id.startswith(cell.id)]
            text = "\n".join([setup, *tests])
            assert re.search(r"\b(pad_id|pad|PAD|PAD_ID)\s*=\s*[1-9]", text), cell.id


def test_epsilon_is_large_at_least_once(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    for cell in source.of_kind("solution"):
        if re.search(r"\beps: float", cell.source):
            tests = [test.source for test in source.of_kind("test") if test.id.startswith(cell.id)]
            large = r"\beps\b.*\b(0\.[1-9]|[1-9]\.\d)"  # as an argument, or in a loop over several
            assert re.search(large, "\n".join(tests)), cell.id


def test_padding_that_counts_shows_before_a_notebook_is_handed_in(course: Course):
    """The commonest slip of 12.3; a padded place as likely as the mean of the others hides it."""
    source = read_source(course.source("12_language_model"))
    known = read_answers(course.misconceptions("12_language_model"), source)
    slip = next(answer for answer in known if answer.name == "padding_counted")
    question = answered(alone(source, slip.question), [slip])
    cells = [
        fill_in(cell, visible_part(cell.source, (BEGIN_HIDDEN, END_HIDDEN)))
        if cell.kind == "test"
        else cell
        for cell in question.cells
    ]
    failed = run_tests(Source(question.path, tuple(cells), question.digest))
    assert sorted(failed) == ["perplexities-byte", "perplexities-token"]


def test_what_is_refused_is_shown(course: Course, chapter: str):
    """Who hands in a wrong word or number among several reads which one it is."""
    for cell in read_source(course.source(chapter)).of_kind("test"):
        said = re.findall(r'f?"(?:each prediction is|lines have the numbers)[^"]*"', cell.source)
        assert all("Yours are {" in one for one in said), cell.id


def test_the_leak_of_14_6_stands_in_one_line(course: Course):
    """With what the layer was given in the place of what it made, line 6 alone is mended."""
    source = read_source(course.source("14_longer_context"))
    (code,) = (cell.source for cell in source.cells if "def friends_segments" in cell.source)
    mended = code.replace("made.detach()], dim=1)  # line 6", "segment.detach()], dim=1)  # line 6")
    assert mended != code
    heard: dict = {"torch": torch}
    exec(mended, heard)
    x = torch.arange(12.0).view(1, 6, 2)
    layers = [lambda x, memory: x + memory.sum(1, keepdim=True) + x.cumsum(1)] * 2
    whole = x
    for layer in layers:
        whole = layer(whole, x[:, :0])
    found = heard["friends_segments"](layers, x, 3, 6)
    assert torch.equal(found, whole)
