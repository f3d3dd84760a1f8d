"""The shapes in signatures, checked while the tests of `lab` and of the assembled model run.

Each array that a function of these gets or gives back has the shape and the type of numbers that
its signature says, with one size for each letter. The checks are put in while modules are
imported, so the tests run in a process of their own.
"""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

CHECKED = ("assemble", "batching", "battery", "blocks", "five_minutes", "plots", "text")
FILES = [*(f"tests/test_lab_{name}.py" for name in CHECKED), "tests/test_transformer.py"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run tests with signatures checked."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"]
    hook = ["-p", "tests.typed", "--jaxtyping-packages=lab,solutions,tests.typed.checked"]
    return subprocess.run(
        [*command, *hook, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_arrays_have_the_shapes_that_signatures_say():
    done = run(*FILES, "-m", "not unchecked")
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.parametrize("length", [3, 4])
def test_a_shape_that_is_wrong_is_noticed(length: int, tmp_path):
    """A mask for 3 keys beside 3 keys passes, one for 4 does not."""
    path = tmp_path / "test_one.py"
    path.write_text(
        "import torch\n"
        "from lab.blocks import scaled_dot_product_attention as attention\n"
        "def test_one():\n"
        "    x = torch.zeros(2, 3, 4)\n"
        f"    attention(x, x, x, torch.ones(3, {length}, dtype=torch.bool))\n",
        encoding="utf-8",
    )
    done = run(str(path), "-c", "pyproject.toml")
    assert done.returncode == (0 if length == 3 else 1), done.stdout
    assert ("TypeCheckError" in done.stdout) == (length == 4)
