"""A PostgreSQL server for tests."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server that was started for this."""
    driver = next(filter(importlib.util.find_spec, ("psycopg2", "psycopg")), None)
    if driver is None:
        pytest.skip("no driver for PostgreSQL is installed (pip install psycopg2-binary)")
    placed = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")))
    programs = Path(shutil.which("initdb") or [*placed, ""][0]).resolve().parent
    if not (programs / "initdb").is_file() or not (programs / "postgres").is_file():
        pytest.skip("no PostgreSQL server is installed (initdb and postgres are not found)")
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        who: dict[str, Any] = {}
        if os.geteuid() == 0:  # as whom the server does not run
            nobody = pwd.getpwnam("nobody")
            who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        data = f"{folder}/data"
        made = [programs / "initdb", "-D", data, "-A", "trust", "-U", "grader", "-N", "-E", "UTF8"]
        subprocess.run([*made, "--locale=C"], check=True, capture_output=True, cwd=folder, **who)
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-k", folder, "-D", data]
        with (
            Path(folder, "log").open("wb") as log,
            subprocess.Popen(
                [programs / "postgres", *options], cwd=folder, stdout=log, stderr=log, **who
            ) as server,
        ):
            try:
                ready = [programs / "pg_isready", "-h", folder, "-t", "1"]
                while subprocess.run(ready, capture_output=True).returncode:
                    assert server.poll() is None, Path(f"{folder}/log").read_text()
                yield f"postgresql+{driver}://grader@/postgres?host={folder}"
            finally:
                server.terminate()
