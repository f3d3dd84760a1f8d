"""Training an assembled module: what it calls, when it stops, what it measures."""

import json
import re
import types
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lab import five_minutes
from lab.__main__ import main
from lab.assembled import Incomplete, load_module
from lab.five_minutes import (
    Functions,
    GrammarData,
    Recipe,
    find_functions,
    grammar_data,
    grammar_model,
    measure,
    plain_adam,
    plain_rate,
    torchs_loss,
    torchs_step,
    train,
)
from lab.kept import read_kept
from lab.phenomena import telling_pairs

MODULE = Path(__file__).parents[1] / "solutions" / "transformer.py"
SMALL = Recipe(
    d_model=32, num_layers=1, num_heads=2, d_ff=48, dropout=0.0, batch_size=16, warmup=400
)
FUNCTIONS = Functions(torchs_loss, plain_rate, plain_adam, torchs_step)
NAMES = ("label_smoothed_loss", "learning_rate", "scheduled_adam", "train_step")
STUB = 'raise NotImplementedError("not answered yet: replace this line")'


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def module() -> types.ModuleType:
    return load_module(MODULE)


@pytest.fixture(scope="module")
def data() -> GrammarData:
    return grammar_data(200)


def with_stub(tmp_path: Path, definition: str) -> types.ModuleType:
    """The reference, but the function or method that starts with this line is not answered."""
    head, rest = MODULE.read_text(encoding="utf-8").split(definition)
    indent = len(head.rsplit("\n", 1)[-1]) * " "
    signature, body = re.split(r":\n", rest, maxsplit=1)
    stub = f"{head}{definition}{signature}:\n{indent}    {STUB}\n{body}"
    path = tmp_path / "unanswered.py"
    path.write_text(stub, encoding="utf-8")
    return load_module(path)


# the corpus


def test_the_two_sides_share_no_sentence(data):
    for language in (0, 1):
        sides = [{pair[language] for pair in side} for side in (data.train, data.held_out)]
        assert not sides[0] & sides[1]
    assert (len(data.train), len(data.held_out)) == (190, 10)


def test_every_sentence_fits_and_the_longest_just_so(data):
    pairs = [*data.train, *data.held_out]
    lengths = [len(data.source.encode(english)) for english, _ in pairs]
    lengths += [len(data.target.encode(french)) for _, french in pairs]
    assert max(lengths) == data.max_len


# what is the module's own


def test_the_references_functions_are_used(module):
    functions = find_functions(module)
    assert (functions.own, functions.stand_ins) == (NAMES, ())
    assert all(getattr(functions, name) is getattr(module, name) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_torchs_stand_in_for_a_function_that_is_not_answered(tmp_path, name):
    functions = find_functions(with_stub(tmp_path, f"def {name}("))
    assert functions.stand_ins == (name,)
    assert name not in functions.own
    assert getattr(functions, name) is getattr(FUNCTIONS, name)


def test_a_module_without_functions_gets_stand_ins():
    functions = find_functions(types.ModuleType("empty"))
    assert functions == replace(FUNCTIONS, stand_ins=NAMES)


def test_the_loss_that_stands_in_is_the_references(module):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 5, 7, generator=generator)
    labels = torch.tensor([[3, 4, 6, 0, 0], [1, 2, 3, 5, 6]])
    torch.testing.assert_close(
        torchs_loss(logits, labels, 0), module.label_smoothed_loss(logits, labels, 0)
    )


def test_the_step_that_stands_in_is_the_references(module, data):
    models = [grammar_model(module, data, SMALL) for _ in range(2)]
    (source, target), pad_id = (torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]]),) * 2, 0
    losses = [
        step(model, source, target, torch.optim.SGD(model.parameters(), 0.1), pad_id, torchs_loss)
        for model, step in zip(models, (torchs_step, module.train_step), strict=True)
    ]
    assert losses[0] == pytest.approx(losses[1])
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other)


def test_the_rate_that_stands_in_rises_to_the_references_peak_and_stays(module):
    rates = [plain_rate(step, 16, 10) for step in (1, 5, 10, 100)]
    peak = module.learning_rate(10, 16, 10)
    assert rates == pytest.approx([peak / 10, peak / 2, peak, peak])


# training


@pytest.fixture(scope="module")
def by_heart(module) -> tuple[torch.nn.Module, GrammarData]:
    """A small model that has seen few sentences often."""
    data = grammar_data(60)
    model = grammar_model(module, data, SMALL)
    train(model, find_functions(module), data, SMALL, minutes=5, steps=400)
    return model, data


def test_a_small_model_learns_its_sentences_by_heart(module, by_heart):
    model, data = by_heart
    known = replace(data, held_out=data.train)
    result = measure(module, model, known)
    assert (result.sentences, result.decoded) == (57, True)
    assert result.exact >= 0.9 * result.sentences
    assert [pair for *pair, _ in result.translations] == [list(pair) for pair in data.train]
    assert measure(module, grammar_model(module, data, SMALL), known).exact == 0


def test_the_same_seed_gives_the_same_weights(module, data):
    models = [grammar_model(module, data, SMALL, seed=4) for _ in range(2)]
    for model in models:
        train(model, FUNCTIONS, data, SMALL, minutes=5, steps=3, seed=4)
    first, second = (model.state_dict() for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_training_steps_at_the_schedules_rates(module, data):
    steps, rates = [], []

    def learning_rate(step: int, d_model: int, warmup: int) -> float:
        steps.append((step, d_model, warmup))
        return step * 1e-4

    def train_step(model, source, target, optimizer, pad_id, loss_function) -> float:
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        assert loss_function is torchs_loss
        assert pad_id == data.target.pad_id
        return 0.0

    functions = replace(
        find_functions(module),
        label_smoothed_loss=torchs_loss,
        learning_rate=learning_rate,
        train_step=train_step,
    )
    train(grammar_model(module, data, SMALL), functions, data, SMALL, minutes=5, steps=3)
    assert rates == pytest.approx([1e-4, 2e-4, 3e-4])
    assert steps[:3] == [(1, 32, 400), (2, 32, 400), (3, 32, 400)]


def test_training_stops_when_the_time_is_over_and_reports_on_its_way(module, data, monkeypatch):
    clock = iter(range(0, 10_000, 3))
    monkeypatch.setattr(five_minutes, "monotonic", lambda: next(clock))
    seen = []
    model = grammar_model(module, data, SMALL)
    last = train(model, FUNCTIONS, data, SMALL, minutes=2.2, report=seen.append)
    assert [progress.steps for progress in seen] == [20, 40, 44]  # a step takes 3 seconds
    assert seen[-1] is last
    assert last.minutes == pytest.approx(2.2)
    assert last.epochs == pytest.approx(44 * 16 / 190)
    assert 5 < last.rate * 3 / 16 < 20  # tokens in a sentence


@pytest.mark.parametrize(
    ("limits", "message"),
    [({"minutes": 0}, "minutes (0)"), ({"minutes": 1, "steps": 0}, "steps (0)")],
)
def test_no_time_and_no_steps_are_refused(module, data, limits, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        train(grammar_model(module, data, SMALL), FUNCTIONS, data, SMALL, **limits)


# measuring


def test_judging_without_decoding_gives_the_same_count(module, by_heart):
    model, data = by_heart
    mixed = replace(data, held_out=[*data.train, *data.held_out])
    decoded = measure(module, model, mixed)
    judged = measure(types.ModuleType("without_greedy_decode"), model, mixed)
    assert 0 < decoded.exact < decoded.sentences == 60
    assert (judged.exact, judged.sentences) == (decoded.exact, 60)
    assert (judged.decoded, judged.translations) == (False, ())


# what is missing


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no module"),
        ("import nothing_of_this_name", "cannot be imported (ModuleNotFoundError"),
        ("x = (", "cannot be imported (SyntaxError"),
        ("x = 1", "has no Transformer"),
    ],
)
def test_a_module_without_a_model_is_refused(tmp_path, content, message):
    path = tmp_path / "module.py"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(Incomplete, match=re.escape(message)):
        load_module(path)


def test_an_unanswered_constructor_is_named(tmp_path, data):
    unanswered = with_stub(tmp_path, "def sinusoidal_encoding(")
    with pytest.raises(Incomplete, match="sinusoidal_encoding is not answered yet"):
        grammar_model(unanswered, data, SMALL)


def test_an_unanswered_part_is_named_when_training_meets_it(tmp_path, data):
    unanswered = with_stub(tmp_path, "def scaled_dot_product_attention(")
    model = grammar_model(unanswered, data, SMALL)
    with pytest.raises(Incomplete, match="scaled_dot_product_attention is not answered yet"):
        train(model, FUNCTIONS, data, SMALL, minutes=1, steps=1)


# the command


@pytest.fixture
def small(monkeypatch, tmp_path) -> None:
    """A small model, and an empty folder to work in."""
    monkeypatch.setattr("lab.five_minutes.Recipe", lambda: SMALL)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def slow_clock(monkeypatch) -> None:
    """A step takes three seconds."""
    clock = iter(range(0, 10_000, 3))
    monkeypatch.setattr(five_minutes, "monotonic", lambda: next(clock))


@pytest.mark.usefixtures("small")
def test_the_command_trains_and_says_what_came_of_it(capsys):
    command = ["train", str(MODULE), "--minutes", "0.01", "--pairs", "200"]
    assert main(command) == 0
    printed = capsys.readouterr()
    for line in (
        r"corpus       200 pairs: 190 to train on, 10 held out, no sentence on both sides",
        r"vocabulary   \d+ English and \d+ French tokens",
        r"model        [\d,]+ parameters: d_model 32, 1 \+ 1 layers, 2 heads, d_ff 48, post-norm",
        rf"your own     Transformer, {', '.join(NAMES)}",
        r"training     0\.0 minutes \(\d\.\d of CPU time\), [\d,]+ steps, .* loss [\d.]+",
        r"exact match  \d+\.\d% of 10 held-out sentences, with greedy_decode",
        r"  negation \(ne \.\.\. pas\) +\d+% of \d+",
        r"kept in runs/mine; talk to it: python -m trainer talk runs/mine",
    ):
        assert re.search(f"^{line}$", printed.out, re.MULTILINE), line
    assert re.search(r"^\[#+\] 0\.0 of 0\.01 min, step \d+, loss ", printed.err, re.MULTILINE)


@pytest.mark.usefixtures("small", "slow_clock")
def test_the_same_sentences_are_translated_on_the_way_and_the_model_is_kept(tmp_path, capsys):
    command = ["train", str(MODULE), "--minutes", "2.2", "--pairs", "200", "--seed", "3"]
    assert main([*command, "--out", "here/kept"]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^(\d\.\d) min {6}0 ", printed, re.M) == ["1.0", "2.0"]
    run = read_kept(tmp_path / "here" / "kept")
    stages = run.stages()
    assert [stage.steps for stage in stages] == [20, 40, 44]
    assert [stage.minutes for stage in stages] == pytest.approx([1.0, 2.0, 2.2])
    lines = (run.path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    kinds = ["train", "sample", "train", "sample", "train", "measured"]
    assert [record["kind"] for record in records] == kinds
    watched = [record["translations"] for record in records if record["kind"] == "sample"]
    assert [len(said) for said in watched] == [
        len(telling_pairs(grammar_data(200, 3).held_out))
    ] * 2


@pytest.mark.usefixtures("small", "slow_clock")
def test_ctrl_c_keeps_what_was_trained(tmp_path, monkeypatch, capsys):
    def stopped(*_) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lab.train_command.Watch._sample", stopped)
    assert main(["train", str(MODULE), "--pairs", "200"]) == 130
    printed = capsys.readouterr().out
    assert "stopped      1.0 minutes" in printed and "kept in runs/mine" in printed
    assert [stage.steps for stage in read_kept(tmp_path / "runs" / "mine").stages()] == [20]


@pytest.mark.usefixtures("small")
def test_an_earlier_run_stays(tmp_path, capsys):
    command = ["train", str(MODULE), "--minutes", "0.01", "--pairs", "200"]
    assert main(command) == main(command) == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["mine", "mine-2"]
    capsys.readouterr()
    assert main([*command, "--out", "runs/mine"]) == 2
    assert "--out runs/mine is taken" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_without_greedy_decode_nothing_is_translated_and_the_model_is_kept(tmp_path, capsys):
    unanswered = Path(str(with_stub(tmp_path, "def greedy_decode(").__file__))
    assert main(["train", str(unanswered), "--minutes", "0.01", "--pairs", "200"]) == 0
    printed = capsys.readouterr().out
    assert "judged without greedy_decode" in printed
    assert "watched" not in printed and "where the grammar asks" not in printed
    assert len(read_kept(tmp_path / "runs" / "mine").stages()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], "there is no module nowhere.py; python -m lab assemble makes one"),
        ([str(MODULE), "--pairs", "3"], "too few to hold out"),
    ],
)
def test_wrong_arguments_are_explained(capsys, arguments, message):
    assert main(["train", *arguments]) == 2
    assert message in capsys.readouterr().err
