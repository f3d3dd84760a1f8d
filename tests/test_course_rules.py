"""The course's own rules: said beside the question, and no right answer is caught by one."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from autograder.authoring.answers import Answer, answered, read_answers
from autograder.authoring.building import build_instructor
from autograder.authoring.source import Source, read_source
from autograder.common.course import Course
from autograder.common.syntax import top_level_names
from autograder.isolation.fork_server import ForkServer
from autograder.judge.assignment import read_assignment
from autograder.judge.broken_rules import Unread, broken_rules, unread
from autograder.judge.questions import own_script
from autograder.judge.rehearsal import as_graded, runs
from autograder.judge.rules import Rules, read_rules
from autograder.judge.script import Piece, ScriptCell
from autograder.judge.work import Work

FINISHED = {  # an answer that is the finished part, by chapter and question
    ("01_embedding", "token-embedding"): "from lab.blocks import TokenEmbedding",
    ("02_positional_encoding", "positional-encoding"): "from lab.blocks import *",
    ("04_multi_head_attention", "multi-head"): (
        "import lab.blocks as b\nMultiHeadAttention = b.MultiHeadAttention"
    ),
    ("05_layer_norm", "layer-norm"): (
        "import lab.blocks\n\nclass LayerNorm(lab.blocks.LayerNorm):\n    pass"
    ),
    ("05_layer_norm", "feed-forward"): "from lab.blocks import FeedForward",
    ("06_encoder", "encoder"): "Encoder = blocks.Encoder",
    ("07_decoder", "decoder-layer"): "from lab.blocks import DecoderLayer",
}
RENAMED = {  # a finished part once more, under the name of another that does the same
    "a decoder's layer": (
        "06_encoder",
        "encoder-layer",
        """class EncoderLayer(blocks.DecoderLayer):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__(d_model, num_heads, d_ff, dropout, norm_first)
        del self.cross_attention, self.norm3

    def _mha_block(self, x, *_):
        return 0.0

    def forward(self, x, mask=None):
        parts = self._modules
        parts["norm3"], parts["norm2"] = parts["norm2"], nn.Identity()
        try:
            return super().forward(x, x, mask)
        finally:
            parts["norm2"] = parts.pop("norm3")""",
    ),
    "a decoder's stack": (
        "06_encoder",
        "encoder",
        """class Encoder(blocks.Decoder):
    def forward(self, x, mask=None):
        return self._through(x, mask)""",
    ),
    "what both stacks are made of": (
        "06_encoder",
        "encoder",
        """class Encoder([blocks.MultiHeadAttention, blocks._Stack][1]):
    def forward(self, x, mask=None):
        return self._through(x, mask)""",
    ),
    "the heads of all of attention": (
        "04_multi_head_attention",
        "split-heads",
        """from lab.blocks import MultiHeadAttention as Ready

def split_heads(x, num_heads):
    return Ready(x.shape[-1], num_heads).split(x)

def merge_heads(x):
    return Ready(1, 1).merge(x)""",
    ),
    "the trainer's rate": (
        "08_teacher_forcing",
        "learning-rate",
        """from types import SimpleNamespace
from trainer.optimisers import rate_share

def learning_rate(step, d_model, warmup=4000):
    asked = SimpleNamespace(warmup_share=0, warmup=warmup, schedule="")
    return rate_share(asked, step, 0.0) * (d_model * warmup) ** -0.5""",
    ),
    "the workshop's optimiser": (
        "08_teacher_forcing",
        "scheduled-adam",
        "from lab.translator import _scheduled as scheduled_adam",
    ),
    "the trainer's draw": (
        "09_inference",
        "sample",
        """from trainer.tasks import _drawn

def sample(logits, temperature=1.0, top_k=None, generator=None):
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature or top_k")
    rows = [_drawn(row, temperature, top_k or 0, 2.0, generator) for row in logits]
    return torch.tensor(rows)""",
    ),
    "an encoder's stack": (
        "07_decoder",
        "decoder",
        """from lab.blocks import Encoder

class Decoder(Encoder):
    def forward(self, *given):
        return self._through(*given)""",
    ),
}


def rules_of(course: Course, source: Source, chapter: str) -> Rules:
    """The rules beside a chapter's source."""
    questions = [cell.id for cell in source.of_kind("solution")]
    return read_rules(course.source(chapter).parent / "rules.toml", chapter, questions)


def known_answers(course: Course, source: Source, chapter: str) -> Iterator[Answer]:
    """All variants and misconceptions."""
    for path in (course.variants(chapter), course.misconceptions(chapter)):
        yield from read_answers(path, source)


def test_every_chapter_has_rules_or_says_why_not(course: Course, chapter: str):
    rules = rules_of(course, read_source(course.source(chapter)), chapter)
    if not any(question.forbid for question in rules.questions.values()):
        said = course.source(chapter).with_name("rules.toml").read_text(encoding="utf-8")
        assert "# Nothing is forbidden here: " in said


def test_a_rule_is_said_beside_its_question(course: Course, chapter: str):
    source = read_source(course.source(chapter))
    rules = rules_of(course, source, chapter)
    text = ""
    for cell in source.cells:
        if not cell.is_code and cell.kind == "text":
            text = " ".join(cell.source.split())
        elif forbid := rules.for_question(cell.id).forbid * (cell.kind == "solution"):
            assert "allowed here" in text, cell.id
            names = "|".join(re.escape(entry.rpartition(".")[2]) for entry in forbid)
            assert re.search(rf"\b({names})`", text), cell.id


def test_no_known_answer_is_caught_by_a_rule(course: Course, chapter: str):
    """Neither a right one nor a mistake, which would lose its name by it."""
    source = read_source(course.source(chapter))
    rules = rules_of(course, source, chapter)
    given = [c.source for c in source.cells if c.is_code and c.kind not in ("solution", "test")]
    for answer in (None, *known_answers(course, source, chapter)):
        cells = (answered(source, [answer]) if answer else source).cells
        for cell in cells:
            if cell.kind == "solution" and answer and cell.id == answer.question:
                others = [c.source for c in cells if c.kind == "solution" and c is not cell]
                read = (cell.source, rules.for_question(cell.id), others, given)
                assert broken_rules(*read) == (), (cell.id, answer.name)
                left_out = unread(*read)
                own = [place for place, _ in left_out.statements if place < 0]
                assert not own and not left_out.modules, (cell.id, answer.name)


def test_of_the_reference_nothing_is_left_unread(course: Course, chapter: str):
    """What is left unread has the whole notebook run a second time, for every right submission."""
    source = read_source(course.source(chapter))
    rules = rules_of(course, source, chapter)
    given = [c.source for c in source.cells if c.is_code and c.kind not in ("solution", "test")]
    for cell in source.of_kind("solution"):
        others = [c.source for c in source.of_kind("solution") if c is not cell]
        for names in ((), top_level_names(ast.parse(cell.source))):
            found = unread(cell.source, rules.for_question(cell.id), others, given, names)
            assert found == Unread(frozenset(), frozenset(), ""), cell.id


@pytest.mark.parametrize("chapter", ["03_attention", "05_layer_norm", "13_pictures"])
def test_no_right_answer_is_stopped_while_it_runs(
    course: Course, chapter: str, open_fork_server: ForkServer
):
    source = read_source(course.source(chapter))
    assignment = read_assignment(
        build_instructor(course, chapter).parent, course.source(chapter).parent / "rules.toml"
    )
    variants = read_answers(course.variants(chapter), source)
    for question in source.of_kind("solution"):
        for answer in variants:
            if answer.question == question.id and assignment.rules.for_question(question.id).forbid:
                written = answered(source, [answer]).solution(question.id).source
                went = runs(assignment, {question.id: written}, open_fork_server, [question.id])
                assert {run.status for run in went.values()} == {"passed"}, (answer.name, went)


@pytest.mark.parametrize(("chapter", "question"), FINISHED)
def test_the_finished_part_is_no_answer(
    course: Course, chapter: str, question: str, open_fork_server: ForkServer
):
    assignment = read_assignment(
        build_instructor(course, chapter).parent, course.source(chapter).parent / "rules.toml"
    )
    answers = {question: FINISHED[chapter, question]}
    for run in runs(assignment, answers, open_fork_server, [question]).values():
        assert run.status == "forbidden", run
        assert "lab.blocks" in run.message and "write it yourself" in run.message


@pytest.mark.parametrize("part", RENAMED)
def test_a_finished_part_of_another_name_is_no_answer(
    course: Course, part: str, open_fork_server: ForkServer
):
    chapter, question, answer = RENAMED[part]
    assignment = read_assignment(
        build_instructor(course, chapter).parent, course.source(chapter).parent / "rules.toml"
    )
    for run in runs(assignment, {question: answer}, open_fork_server, [question]).values():
        assert run.status == "forbidden" and "write it yourself" in run.message, run


FOLDED = {  # both have the name of a tensor's own method, which is allowed
    "by name": "F.unfold",
    "not by name": "[F][0].unfold",
}


@pytest.mark.parametrize("way", FOLDED)
def test_windows_along_one_axis_are_allowed_and_ready_patches_are_not(
    course: Course, open_fork_server: ForkServer, way: str
):
    path = build_instructor(course, "13_pictures").parent
    assignment = read_assignment(path, course.source("13_pictures").parent / "rules.toml")
    ready = f"def patchify(pictures, p):\n    return {FOLDED[way]}(pictures, p, stride=p).mT"
    for run in runs(assignment, {"patchify": ready}, open_fork_server, ["patchify"]).values():
        assert run.status == "forbidden" and "torch.nn.Unfold" in run.message, run


COPY = "import shutil, lab\nshutil.copy(lab.__path__[0] + '/blocks.py', 'mine.py')"
COPIED = {  # the finished part once more, from the library's own text
    "imported": (COPY, "from mine import FeedForward"),
    "inside": (
        "",
        f"def FeedForward(*sizes):\n    {COPY.replace(chr(10), '; ')}\n"
        "    import mine\n    return mine.FeedForward(*sizes)",
    ),
    "run": ("import lab\nexec(open(lab.__path__[0] + '/blocks.py').read())", "FeedForward"),
}


@pytest.mark.parametrize("way", COPIED)
def test_a_copy_of_the_finished_part_is_no_answer(
    course: Course, open_fork_server: ForkServer, way: str
):
    path = build_instructor(course, "05_layer_norm").parent
    rules = course.source("05_layer_norm").parent / "rules.toml"
    assignment = read_assignment(path, rules)
    (notebook,) = assignment.notebooks
    before, answer = COPIED[way]
    tests = next(set(g.tests) for g in notebook.groups if "feed-forward" in g.solutions)
    script = own_script(notebook, {"feed-forward": answer}, tests)
    place = next(n for n, c in enumerate(script.cells) if c.grade_id == "feed-forward")
    cells = [*script.cells]
    cells.insert(place, ScriptCell("extra", "", before, "code"))
    piece = Piece("feed-forward", answer, "code")
    script = replace(script, cells=tuple(cells), pieces=(piece,))
    with as_graded():  # no cell trains that only shows something
        found = Work(assignment, notebook, script, open_fork_server, None).run()
    assert {run.status for run in found if run.test in tests} == {"forbidden"}, found
