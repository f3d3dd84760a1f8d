"""How many seconds a student on a hub waits for feedback.

    python -m tests.hub_speed [--rounds 5]

starts a real hub and a watcher, as root. Each round, three students submit at the same moment a
work that differs from their last, and each asks for feedback until the new page is there.
"""

import argparse
import statistics
import sys
import time

from tests.hubs import STUDENTS, NoHub, Person, Site, press, site, wait_for
from tests.small_course import RIGHT


def measure(site: Site, rounds: int) -> list[float]:
    """Seconds from pressing submit to the page, of each student in each round."""
    ines = Person(site, "ines")
    press(ines, "assign")
    press(ines, "release")
    students = {name: Person(site, name) for name in STUDENTS}
    for student in students.values():
        student.open_server()
        student.press("fetch")
    found = []
    with site.watcher():
        for number in range(rounds):
            begun = {}
            for name, student in students.items():
                student.answer(RIGHT | {"draw": f"print({number})"})
                begun[name] = time.monotonic()
                student.press("submit")
            for name, student in students.items():
                wait_for(student.feedback, f"{name}'s feedback")
                found.append(time.monotonic() - begun[name])
            print(f"round {number + 1}: " + ", ".join(f"{one:.1f} s" for one in found[-3:]))
    return found


def main() -> int:
    """Measure and say so."""
    parser = argparse.ArgumentParser(
        description="Measure how long a student on a hub waits for feedback."
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    try:
        with site() as made:
            found = measure(made, options.rounds)
    except NoHub as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"{len(found)} works, from submit to feedback: median {statistics.median(found):.1f} s, "
        f"longest {max(found):.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
