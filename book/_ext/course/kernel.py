"""Cells run with the book's settings, wherever it is built: nobody's own profile is read."""

import os
from pathlib import Path

from sphinx.application import Sphinx

SETTINGS = """\
c = get_config()  # noqa: F821
# A kernel on this machine, for this build alone, warns on stderr that it is not encrypted.
c.IPKernelApp.log_level = 40
# What a cell prints comes in one piece: pieces, sent by the clock, would each end in a new line.
c.IPKernelApp.exec_lines = [
    "import sys; sys.stdout.flush_interval = sys.stderr.flush_interval = 86_400; del sys"
]
# Pictures become parts of the page (drawn.py); the same cell gives the same bytes.
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.print_figure_kwargs = {"bbox_inches": "tight", "metadata": {"Date": None}}
"""


def use_settings_of_the_book(app: Sphinx) -> None:
    """Give the kernels a profile beside what is built."""
    home = Path(app.outdir).parent / "ipython"
    profile = home / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(SETTINGS, encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(home)
