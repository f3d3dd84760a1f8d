"""No test takes its expectation from weights that the answer's own module has changed.

Each answer here is the reference with one thing more: a call sets the module's own parameters to
zero before it computes. Whoever reads the weights afterwards expects just what such a call gives.
"""

import pytest

from autograder.authoring.building import build_instructor
from autograder.authoring.source import read_source
from autograder.common.course import Course
from autograder.isolation.fork_server import ForkServer
from autograder.judge.assignment import read_assignment
from autograder.judge.rehearsal import runs

CHEAT = """

class {name}({name}):
    def {method}(self, *given, **named):
        for parameter in self.parameters():
            parameter.data.zero_()
        return super().{method}(*given, **named)
"""
CHEATS = (  # chapter, question, class, method, the tests that compare numbers
    ("01_embedding", "token-embedding", "TokenEmbedding", "forward", "values"),
    ("04_multi_head_attention", "multi-head", "MultiHeadAttention", "forward", "self mask cross"),
    ("05_layer_norm", "layer-norm", "LayerNorm", "forward", "values epsilon own-token gradients"),
    ("05_layer_norm", "feed-forward", "FeedForward", "forward", "values own-token"),
    ("06_encoder", "encoder-layer", "EncoderLayer", "forward", "values pre-norm mask dropout"),
    ("06_encoder", "encoder", "Encoder", "forward", "forward"),
    ("07_decoder", "decoder-layer", "DecoderLayer", "forward", "post-norm pre-norm masks dropout"),
    ("07_decoder", "decoder", "Decoder", "forward", "forward"),
    ("07_decoder", "generator", "Generator", "forward", "logits tie"),
    ("09_inference", "cached-attention", "CachedAttention", "forward", "steps prefill cross reset"),
    ("10_full_model", "transformer", "Transformer", "decode", "values masks offset"),
)


@pytest.mark.parametrize(
    ("chapter", "question", "name", "method", "tests"), CHEATS, ids=[one[1] for one in CHEATS]
)
def test_a_module_that_zeroes_its_weights_earns_nothing(
    course: Course,
    chapter: str,
    question: str,
    name: str,
    method: str,
    tests: str,
    open_fork_server: ForkServer,
):
    source = read_source(course.source(chapter))
    assignment = read_assignment(
        build_instructor(course, chapter).parent, course.source(chapter).parent / "rules.toml"
    )
    written = source.solution(question).source + CHEAT.format(name=name, method=method)
    went = runs(assignment, {question: written}, open_fork_server, [question])
    passed = [test for test in tests.split() if went[f"{question}-{test}"].status == "passed"]
    assert passed == []


def test_these_are_right_answers_but_for_the_zeroes(course: Course, open_fork_server: ForkServer):
    """So that the others fail because of what they do, and not because of how they are written."""
    chapter, question, name, method, _ = CHEATS[2]
    source = read_source(course.source(chapter))
    assignment = read_assignment(
        build_instructor(course, chapter).parent, course.source(chapter).parent / "rules.toml"
    )
    cheat = CHEAT.format(name=name, method=method).replace(".zero_()", "")
    written = source.solution(question).source + cheat
    went = runs(assignment, {question: written}, open_fork_server, [question])
    assert {run.status for run in went.values()} == {"passed"}
