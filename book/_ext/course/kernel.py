"""Cells run with IPython's defaults, wherever the book is built: nobody's own profile is read."""

import os
from pathlib import Path

from sphinx.application import Sphinx

# A kernel on this machine, for this build alone, warns on stderr that it is not encrypted.
SETTINGS = "c = get_config()  # noqa: F821\nc.IPKernelApp.log_level = 40\n"


def use_settings_of_the_book(app: Sphinx) -> None:
    """Give the kernels a profile beside what is built."""
    home = Path(app.outdir).parent / "ipython"
    profile = home / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(SETTINGS, encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(home)
