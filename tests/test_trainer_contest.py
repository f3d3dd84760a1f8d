"""The course's contest: what entries are given, recipes, weights that were handed in."""

import json
import pickle
import shutil
from pathlib import Path

import pytest

from autograder.classroom import contest as leaderboard
from autograder.common.course import Course
from autograder.isolation import machine
from lab.assembled import load_module
from lab.kept import read_kept
from tests import small_training
from tests.small_training import MODULE
from trainer import contest
from trainer.configs import CONFIGS
from trainer.decoding import translate
from trainer.preparation import learn_tokenizers
from trainer.runs import Source, begin, open_run

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {"pairs": 300, "sentences": 5}
RECIPE = """
    vocab_size = 200
    max_tokens = 512
    warmup_share = 0.1
    beam_size = 1
    [model]
    d_model = 16
    num_layers = 1
    num_heads = 2
    d_ff = 24
"""


def laid_out(folder: Path, found: contest.Contest, files: dict[str, str]) -> Path:
    """A folder as an entry's process has it."""
    for name, content in found.given.items():
        (folder / "given").mkdir(exist_ok=True)
        (folder / "given" / name).write_bytes(content)
    (folder / "entry").mkdir()
    for name, text in files.items():
        (folder / "entry" / name).write_text(text)
    return folder


def test_an_entry_is_given_the_questions_and_no_answer(tmp_path: Path):
    found = contest.begin(SMALL, tmp_path)
    given = json.loads(found.given[contest.DATA])
    corpus = small_training.corpus()
    assert given["sources"] == [source for source, _ in corpus.tests["test"][:5]]
    assert list(found.right) == [target for _, target in corpus.tests["test"][:5]]
    text = found.given[contest.DATA].decode()
    assert not any(f'"{answer}"' in text for answer in found.right)


def test_scores_are_bleu_and_exact_matches_by_what_decides(tmp_path: Path):
    found = contest.begin({**SMALL, "decides": "exact match"}, tmp_path)
    assert list(found.score(found.right)) == ["exact match", "BLEU"]
    assert found.score(found.right) == {"exact match": 100.0, "BLEU": pytest.approx(100.0)}
    said = [found.right[0], *[""] * 4]
    assert found.score(said)["exact match"] == 20.0
    assert contest.begin(SMALL, tmp_path).score(said)["BLEU"] < 50


def test_a_recipe_is_trained_within_its_time_and_translates(tmp_path: Path):
    (tmp_path / "module.py").write_text(MODULE.read_text())
    found = contest.begin({**SMALL, "module": "module.py"}, tmp_path)
    folder = laid_out(tmp_path, found, {contest.RECIPE: RECIPE})
    said = contest.enter(folder, seconds=2)
    assert len(said) == 5
    with pytest.raises(ValueError, match="the vocabulary took all of the time"):
        contest.enter(folder, seconds=0)


def test_a_recipe_without_a_module_asks_for_one(tmp_path: Path):
    folder = laid_out(tmp_path, contest.begin(SMALL, tmp_path), {contest.RECIPE: ""})
    with pytest.raises(ValueError, match=r"hand in your module as my_transformer.py"):
        contest.enter(folder, seconds=2)


@pytest.mark.parametrize("name", [contest.RECIPE, contest.OWN, contest.MODULE])
def test_a_recipe_has_no_room_for_weights_that_were_trained_before(tmp_path: Path, name: str):
    found = contest.begin(SMALL, tmp_path)
    texts = {contest.RECIPE: RECIPE, contest.OWN: "1 / 0", name: f"# {'0' * 100_000}"}
    folder = laid_out(tmp_path, found, texts)
    with pytest.raises(ValueError, match="of more than 100,000 bytes has room for weights"):
        contest.enter(folder, seconds=2)
    with pytest.raises(ValueError, match=r"alone; take tokenizer\.json out"):
        found.kind([contest.OWN, contest.RECIPE, "tokenizer.json"])


def test_weights_of_a_run_translate(tmp_path: Path):
    run = small_training.five_minute_run(tmp_path / "run")
    found = contest.begin(SMALL, tmp_path)
    folder = laid_out(tmp_path, found, {})
    for name in ("run.json", "source.json", "target.json"):
        shutil.copy(run / name, folder / "entry")
    shutil.copy(run / "module.py", folder / "entry" / contest.OWN)
    shutil.copy(read_kept(run).stages()[-1].path, folder / "entry" / contest.WEIGHTS)
    known = small_training.grammar_data(60).train[:5]
    data = json.loads(found.given[contest.DATA])
    data["sources"] = [source for source, _ in known]
    (folder / "given" / contest.DATA).write_text(json.dumps(data))
    opened = open_run(run)
    tokenizers = opened.source_tokenizer, opened.target_tokenizer
    model = opened.model(opened.weights())
    expected = translate(opened.module, model, data["sources"], *tokenizers)
    assert contest.enter(folder, seconds=1) == expected
    assert expected[0] == known[0][1]


def test_a_pickle_by_another_name_is_refused_before_the_module_runs(tmp_path: Path):
    folder = laid_out(tmp_path, contest.begin(SMALL, tmp_path), {contest.MODULE: "1 / 0"})
    (folder / "entry" / contest.WEIGHTS).write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match=r"model.safetensors is no safetensors file"):
        contest.enter(folder, seconds=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = [", "recipe.toml is no TOML"),
        ("x = " + "9" * 5000, "recipe.toml is no TOML"),
        ("steps = 10", "may not set steps, which the contest decides; take it out"),
        ("cpu_minutes = 90", "may not set cpu_minutes"),
        ("threads = 8", "may not set threads"),
        ("model.max_len = 9", r"may not set model\.max_len"),
        ("lerning_rate = 1", "sets lerning_rate, which no recipe has"),
        ("config = '../big.json'", "is none of tiny"),
        ("config = ['tiny']", "is none of tiny"),
        ("model = 3", "model must be a table"),
        ("model.d_model = 7", "must be divisible"),
        ("warmup = 'long'", "warmup must be of type int"),
    ],
)
def test_a_recipe_that_sets_what_it_may_not_is_refused(text: str, words: str):
    with pytest.raises(ValueError, match=words):
        contest.read_recipe(text)


def test_a_recipe_begins_with_one_by_name():
    found = contest.read_recipe("config = 'cpu20'\nmodel.dropout = 0.5\nmax_tokens = 512")
    assert found.model.dropout == 0.5 and found.max_tokens == 512
    assert found.peak_rate == CONFIGS["cpu20"].peak_rate and found.threads == 1
    assert contest.read_recipe("optimiser = 'adamw'").matrix_rate is None
    shared = contest.read_recipe("target_vocab_size = 0\nfirst_embeddings = 'drawn'")
    assert (shared.target_vocab_size, shared.first_embeddings) == (0, "drawn")


def test_sentences_of_ones_own_lie_below_the_courses_root(tmp_path: Path):
    for name, words in (("train", "a b c d e"), ("valid", "f"), ("test", "g h")):
        for language in ("en", "fr"):
            path = tmp_path / "ours" / f"{name}.{language}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{language} {word}\n" for word in words.split()))
    found = contest.begin({"data": "ours"}, tmp_path)
    assert list(found.right) == ["fr g", "fr h"]
    assert json.loads(found.given[contest.DATA])["sources"] == ["en g", "en h"]


@pytest.mark.parametrize("field", contest.MAY_SET)
def test_what_a_recipe_may_set_there_is(field: str):
    group, _, name = field.rpartition(".")
    content = CONFIGS["cpu10"].to_json()
    assert name in (content[group] if group else content)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"test_set": "x"}, "no setting test_set; it may have data"),
        ({"test": "newstest"}, "grammar has no test 'newstest'; its tests: test"),
        ({"decides": "luck"}, "decides must be one of"),
        ({"accepts": ["pickles"]}, "accepts a list of"),
        ({"sentences": 0}, "must be a whole number above 0"),
        ({"module": "none.py"}, "cannot be read as text"),
    ],
)
def test_settings_that_name_what_there_is_not_are_refused(tmp_path, settings, words: str):
    with pytest.raises(ValueError, match=words):
        contest.begin({"pairs": 300, **settings}, tmp_path)


def test_files_say_what_an_entry_is(tmp_path: Path):
    found = contest.begin({**SMALL, "accepts": ["recipe"]}, tmp_path)
    assert found.kind([contest.RECIPE, contest.OWN]) == "recipe, trained here"
    with pytest.raises(ValueError, match="takes recipe only"):
        found.kind([contest.WEIGHTS])
    for names in ([], [contest.RECIPE, contest.WEIGHTS]):
        with pytest.raises(ValueError, match=f"; {len(names)} of them are there"):
            found.kind(names)


def test_weights_of_a_run_by_a_recipe_translate(tmp_path: Path):
    corpus, run = small_training.corpus(), tmp_path / "run"
    tokenizer, module = learn_tokenizers(corpus, small_training.CONFIG), load_module(MODULE)
    begin(run, small_training.CONFIG, Source("grammar", pairs=300), corpus, MODULE, tokenizer, {})
    small_training.trained(module, small_training.data(), small_training.CONFIG, run=run)
    folder = laid_out(tmp_path, contest.begin(SMALL, tmp_path), {})
    for name in ("module.py", "config.json", "tokenizer.json"):
        shutil.copy(run / name, folder / "entry")
    (weights,) = (run / "checkpoints").glob("*/model.safetensors")
    shutil.copy(weights, folder / "entry" / contest.WEIGHTS)
    assert len(contest.enter(folder, seconds=1)) == 5


def test_weights_that_were_handed_in_are_scored_in_the_sandbox(tmp_path: Path):
    if not machine.probe().namespaces:
        pytest.skip(" ".join(machine.probe().missing))
    (tmp_path / "nbgrader_config.py").write_text(
        "c = get_config()\nc.Contest.module = 'trainer.contest'\nc.Contest.minutes = 0.1\n"
        "c.Contest.answer_minutes = 0.4\nc.Contest.settings = {'pairs': 300, 'sentences': 5}\n"
    )
    run = small_training.five_minute_run(tmp_path / "run")
    weights = read_kept(run).stages()[-1].path.read_bytes()
    header = json.dumps({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}})
    wide = json.loads((run / "run.json").read_text())
    wide["recipe"] |= {"d_model": 1 << 20}
    for name, content in {
        "ada": weights,
        "pickle": pickle.dumps({"a": 1}),
        "vast": len(header).to_bytes(8, "little") + header.encode(),
        "wide": weights,
    }.items():
        shutil.copytree(run, tmp_path / "class" / name)
        (tmp_path / "class" / name / contest.WEIGHTS).write_bytes(content)
    (tmp_path / "class" / "wide" / "run.json").write_text(json.dumps(wide))
    places = leaderboard.run(Course(tmp_path), tmp_path / "class")
    found = {place.student: place.outcome for place in places}
    assert places[0].student == "ada" and found["ada"].scores["BLEU"] > 0
    assert found["ada"].kind == "weights, trained before"
    assert found["pickle"].failed.startswith("model.safetensors is no safetensors file")
    assert found["vast"].failed.startswith("model.safetensors is cut: 4,398,0")
    assert found["wide"].failed == "it needs more memory than there is; make it smaller"
