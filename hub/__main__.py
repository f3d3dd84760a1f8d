"""The hub's commands: python -m hub prepare, check, run."""

import argparse
import os
import sys
from pathlib import Path

from hub.check import check
from hub.prepare import prepare
from hub.settings import HubError, read

ROOT = Path(__file__).resolve().parent
COMMANDS = {
    "prepare": "make what is missing: the proxy, the exchange, folders with the right modes",
    "check": "say in words what the installation lacks",
    "run": "run the hub",
}


def main() -> int:
    """Run one command; what a person has to mend is one sentence."""
    parser = argparse.ArgumentParser(
        prog="python -m hub", description="A JupyterHub for a course; course.toml says which."
    )
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text)
    options = parser.parse_args()
    try:
        hub = read(ROOT)
        if options.command == "prepare":
            for said in prepare(hub):
                print(said)
            print("All is ready.")
            return 0
        if options.command == "check":
            return _tell(list(check(hub)))
        config = str(ROOT / "jupyterhub_config.py")
        os.execv(sys.executable, [sys.executable, "-m", "jupyterhub", "-f", config])
    except HubError as error:
        said = str(error)
    except ImportError as error:
        said = f"{error}; install requirements/hub.txt for {sys.executable}."
    except OSError as error:
        said = f"{error.filename}: {error.strerror}; copy hub/ whole, and say sudo."
    print(f"error: {said}", file=sys.stderr)
    return 2


def _tell(missing: list[str]) -> int:
    """Print what is missing."""
    for number, said in enumerate(missing, 1):
        print(f"{number}. {said}")
    print(f"{len(missing)} to be mended." if missing else "Nothing is missing.")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
