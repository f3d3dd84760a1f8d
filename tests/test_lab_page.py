"""A trained model in a page: the recipe, the rounding, the files, and what is refused."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lab.__main__ import main
from lab.files import digest
from lab.kept import read_kept
from lab.little import PEAK, cooled
from lab.page import numbers, plain, writing
from lab.page.command import content_of
from tests.conftest import ROOT
from tests.small_training import MODULE

BOOKS = ROOT / "book" / "translator" / "weights.js"
LARGEST = 350_000  # bytes of the book's model, compressed

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the recipe that was over after three steps."""
    path = tmp_path_factory.mktemp("runs") / "little"
    made = main(["little", str(MODULE), "--steps", "3", "--pairs", "300", "--out", str(path)])
    assert made == 0
    return path


@pytest.fixture(scope="module")
def content(run: Path) -> dict:
    """What a page holds of it."""
    return content_of(run, ["the cat sleeps ."])


def test_the_rate_rises_and_falls_to_zero():
    rates = [cooled(step, 10, 100) for step in range(1, 101)]
    assert max(rates) == rates[9] == PEAK
    assert rates[:10] == sorted(rates[:10])
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert 0 < rates[-1] < PEAK / 50


def test_the_recipe_gives_the_same_weights_again(run: Path, tmp_path: Path):
    out = tmp_path / "again"
    main(["little", str(MODULE), "--steps", "3", "--pairs", "300", "--out", str(out)])
    first, second = (read_kept(path).stages()[-1].tensors() for path in (run, out))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_row_is_rounded_by_its_own_largest_number():
    matrix = torch.tensor([[1.0, -127.0, 63.4], [0.5, 0.25, 0.0], [0.0, 0.0, 0.0]])
    rounded = numbers.Rounded.of(matrix)
    assert rounded.whole.tolist() == [[1, -127, 63], [127, 64, 0], [0, 0, 0]]
    assert (rounded.matrix() - matrix).abs().max() <= 0.5 * rounded.factors.max()


def test_a_file_gives_back_what_was_rounded(run: Path, content: dict):
    kept = read_kept(run)
    model = kept.model(kept.stages()[-1].tensors(), "it")
    tensors, positions = numbers.unpacked(content)
    assert tensors.keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        wanted = numbers.Rounded.of(tensor).matrix() if tensor.dim() == 2 else tensor
        assert torch.equal(tensors[name], wanted), name
    assert torch.equal(positions, kept.module.sinusoidal_encoding(*positions.shape))
    assert tensors["generator.weight"] is tensors["target_embedding.weight"]


def test_damaged_numbers_are_noticed(content: dict):
    data = bytearray(base64.b64decode(content["data"]))
    data[5] ^= 1
    damaged = content | {"data": base64.b64encode(data).decode()}
    with pytest.raises(ValueError, match="damaged"):
        numbers.unpacked(damaged)


@pytest.mark.parametrize("norm_first", [False, True])
def test_plain_arithmetic_is_the_models(norm_first: bool, run: Path):
    module = read_kept(run).module
    sizes = plain.Sizes(8, 2, 2, 12, norm_first, 0.01, 0)
    torch.manual_seed(1)
    positions = torch.randn(9, 8)
    model = module.Transformer(
        *(7, 9, positions, 8, 2, 2, 12), pad_id=0, norm_first=norm_first, tied=False
    ).eval()
    for name, parameter in model.named_parameters():
        torch.nn.init.normal_(parameter, mean=float("gain" in name), std=0.5)
    for part in model.modules():
        if hasattr(part, "eps"):
            part.eps = sizes.eps
    tensors = dict(model.state_dict())
    assert {n: tuple(t.shape) for n, t in tensors.items()} == plain.shapes(sizes, (7, 9))
    source, target = torch.tensor([[2, 3, 6, 0]]), torch.tensor([[2, 5, 0, 8, 1]])
    with torch.no_grad():
        apart = model(source, target) - plain.logits(tensors, sizes, positions, source, target)
    assert apart.abs().max() < 1e-4


def test_a_page_holds_all_that_it_needs(run: Path, tmp_path: Path, capsys):
    out = tmp_path / "page.html"
    assert main(["page", str(run), "--out", str(out)]) == 0
    page = out.read_text(encoding="utf-8")
    assert "http" not in page.replace(f"{'http'}://www.w3.org/2000/svg", "")
    assert page.count("<script>") == page.count("</script>") == 1
    assert str(out) in capsys.readouterr().out


def test_a_script_of_weights_is_one_call(run: Path, tmp_path: Path, content: dict):
    out = tmp_path / "weights.js"
    asked = ["--sentence", "the cat sleeps ."]
    assert main(["page", str(run), "--weights", *asked, "--out", str(out)]) == 0
    written = numbers.read_file(out.read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(content))
    assert "<" not in writing.weights_script(content)


def test_sentences_asked_for_come_first(content: dict):
    assert content["examples"][0] == "the cat sleeps ."
    assert len(content["examples"]) > 1


Change = Callable[[Path], object]


def _other_model(run: Path) -> None:
    """The module is one whose network takes another function than ReLU."""
    module, settings = run / "module.py", run / "run.json"
    text = module.read_text("utf-8").replace("torch.relu(", "torch.tanh(")
    module.write_text(text, "utf-8")
    words = json.loads(settings.read_text("utf-8"))
    words["sha256"]["module"] = digest(text)
    settings.write_text(json.dumps(words), "utf-8")


def _no_weights(run: Path) -> None:
    for path in (run / "weights").iterdir():
        path.unlink()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda run: (run / "run.json").unlink(), "holds no run of python -m lab train"),
        (_no_weights, "holds no weights yet"),
        (_other_model, "computes something else than the course's"),
    ],
)
def test_what_a_page_cannot_show_is_refused(
    change: Change, says: str, run: Path, tmp_path: Path, capsys
):
    copy = tmp_path / "run"
    copy.mkdir()
    for path in run.rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(run)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    change(copy)
    assert main(["page", str(copy), "--out", str(tmp_path / "page.html")]) == 2
    error = capsys.readouterr().err
    assert says in error and len(error.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()


def test_a_sentence_that_is_too_long_is_refused(run: Path, capsys):
    assert main(["page", str(run), "--sentence", "cat " * 99]) == 2
    assert "must have 1 to" in capsys.readouterr().err


def test_models_that_are_not_the_courses_are_refused():
    sizes = plain.Sizes(8, 1, 2, 12, False, 1e-5, 0)
    with pytest.raises(ValueError, match="this one lacks decoder"):
        numbers.course_tensors(torch.nn.Linear(1, 1, bias=False), sizes, (3, 3))


def test_the_books_model_is_small_and_whole():
    text = BOOKS.read_text(encoding="utf-8")
    content = numbers.read_file(text)
    numbers.unpacked(content)
    assert writing.gzipped(text) <= LARGEST
    assert content["measured"]["exact"] >= 0.95 * content["measured"]["sentences"]


def test_the_books_model_is_the_one_whose_digest_is_recorded():
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert digest(BOOKS.read_text(encoding="utf-8")) in told
    for sentence in numbers.read_file(BOOKS.read_text(encoding="utf-8"))["examples"][:4]:
        assert f'--sentence "{sentence}"' in told


def test_an_opening_is_what_the_model_writes(content: dict):
    first = content["openings"][0]
    assert first["sentence"] == "the cat sleeps ."
    assert first["english"][0] == "<bos>" and first["english"][-1] == "<eos>"
    assert len(first["french"]) == len(first["shares"]) == len(first["weights"])
    assert all(sum(row) == pytest.approx(1, abs=0.02) for row in first["weights"])
    assert 0 <= first["chosen"] < len(first["french"])
