"""What the tests share: the course, its chapters and the built book."""

import doctest
import fcntl
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from autograder.bridge import STUDENT
from autograder.common.course import Course
from autograder.common.startup import import_quickly, use_own_tools
from autograder.isolation.fork_server import ForkServer
from autograder.judge.texts import CODE, EVALUATORS, METHODS, PICKLED, RUNNERS, RUNS, STARTING
from tests.browsing import Page, browsing

ROOT = Path(__file__).parents[1]
COURSE = Course.find(ROOT)
CHAPTERS = COURSE.chapters()

# Files with minutes of work in one piece, and those that mostly wait; then what takes more than
# 15 seconds, the longest first, but what looks at the book only when it may have been built.
LONG_WORK = (
    *("hostile/test_hostile.py", "hostile/test_awkward.py", "hostile/test_leaks.py"),
    *("test_book.py", "test_demo_class.py", "test_hub.py", "test_hub_killed.py", "test_cluster.py"),
    *("test_pool.py", "sandbox/test_limits.py", "test_nbgrader.py", "test_grade.py"),
    *("test_benchmarks.py", "test_course_rules.py", "test_book_browser.py"),
    *("test_book_translator.py", "test_answers.py", "judge/test_worth.py", "test_failures.py"),
    *("test_grade_command.py", "test_handout.py", "test_contest.py", "test_quickstart.py"),
    *("test_keeper.py", "test_trainer_command.py", "test_nbgraders_own.py", "test_fingerprint.py"),
    *("test_counted.py", "test_growth.py", "test_watching.py", "judge/test_own_question.py"),
    *("test_shapes.py", "test_running.py", "sandbox/test_life.py", "test_formgrader_browser.py"),
    *("test_groupshared.py", "judge/test_test_cells.py", "test_check_command.py"),
    *("test_exchange.py", "test_rebuild.py", "test_bench.py", "test_slips.py"),
    *("test_handout_command.py", "test_collector.py", "test_syntax.py", "judge/test_later.py"),
    *("test_page_browser.py", "test_history.py", "test_trainer_contest.py", "test_kill.py"),
    *("test_arrivals.py", "test_wrong_answers.py", "judge/test_rules_applied.py"),
    *("bridge/test_enemies.py", "test_trainer_distributed.py", "test_trainer_checkpoints.py"),
    *("judge/test_plain.py", "test_exports.py", "test_lateness.py", "test_lab_corpus.py"),
    *("test_archives.py", "test_requests.py", "judge/test_between_questions.py"),
    *("test_settings.py", "test_own_chapter.py", "test_fixtures.py", "test_nbgrader_page.py"),
    *("test_exchange_users.py", "test_extensions.py", "test_release.py"),
    *("judge/test_instructors_classes.py", "judge/test_stand_ins.py"),
    *("judge/test_objects_handed_over.py", "judge/test_whose_names.py", "test_load_drill.py"),
    *("test_store.py", "test_journal.py", "test_lab_five_minutes.py"),
)

SLOW = {  # files with more than some 6 s of work: what `make quick` leaves out
    "bridge/test_enemies.py",
    "bridge/test_forged_records.py",
    "bridge/test_records.py",
    "hostile/test_awkward.py",
    "hostile/test_hostile.py",
    "hostile/test_leaks.py",
    "judge/test_between_questions.py",
    "judge/test_gaps.py",
    "judge/test_instructors_classes.py",
    "judge/test_later.py",
    "judge/test_loaded.py",
    "judge/test_nothing.py",
    "judge/test_objects_handed_over.py",
    "judge/test_ordinary_tests.py",
    "judge/test_own_question.py",
    "judge/test_plain.py",
    "judge/test_rules_applied.py",
    "judge/test_stand_ins.py",
    "judge/test_test_cells.py",
    "judge/test_vetted.py",
    "judge/test_whose_names.py",
    "judge/test_worth.py",
    "sandbox/test_life.py",
    "sandbox/test_limits.py",
    "test_answers.py",
    "test_archives.py",
    "test_arrivals.py",
    "test_bench.py",
    "test_benchmarks.py",
    "test_book.py",
    "test_book_browser.py",
    "test_book_drawn.py",
    "test_book_keys.py",
    "test_book_scrolled.py",
    "test_book_skipped.py",
    "test_book_steady.py",
    "test_book_translator.py",
    "test_check_command.py",
    "test_clock.py",
    "test_cluster.py",
    "test_cluster_parts.py",
    "test_collector.py",
    "test_contest.py",
    "test_counted.py",
    "test_course_rules.py",
    "test_demo_class.py",
    "test_exchange.py",
    "test_exchange_users.py",
    "test_exports.py",
    "test_extensions.py",
    "test_failures.py",
    "test_fingerprint.py",
    "test_fixtures.py",
    "test_formgrader_browser.py",
    "test_grade.py",
    "test_grade_command.py",
    "test_groupshared.py",
    "test_growth.py",
    "test_handout.py",
    "test_handout_command.py",
    "test_history.py",
    "test_hub.py",
    "test_hub_killed.py",
    "test_ideas.py",
    "test_in_class.py",
    "test_keeper.py",
    "test_kill.py",
    "test_lab_corpus.py",
    "test_lab_five_minutes.py",
    "test_lab_page.py",
    "test_lab_stories.py",
    "test_lab_translator.py",
    "test_lateness.py",
    "test_load_drill.py",
    "test_model_answer.py",
    "test_names_in_answers.py",
    "test_nbgrader.py",
    "test_nbgrader_page.py",
    "test_nbgraders_own.py",
    "test_nothing_done.py",
    "test_own_chapter.py",
    "test_own_weights.py",
    "test_page_browser.py",
    "test_pool.py",
    "test_quickstart.py",
    "test_reach.py",
    "test_ready_parts.py",
    "test_rebuild.py",
    "test_rehearsal.py",
    "test_release.py",
    "test_report.py",
    "test_requests.py",
    "test_rotating.py",
    "test_rules_other_names.py",
    "test_running.py",
    "test_settings.py",
    "test_shapes.py",
    "test_shards.py",
    "test_site_findings.py",
    "test_slips.py",
    "test_status.py",
    "test_store.py",
    "test_syntax.py",
    "test_texts.py",
    "test_trainer_checkpoints.py",
    "test_trainer_command.py",
    "test_trainer_contest.py",
    "test_trainer_decoding.py",
    "test_trainer_distributed.py",
    "test_trainer_fused.py",
    "test_trainer_loop.py",
    "test_trainer_talk.py",
    "test_trainer_tasks.py",
    "test_trainer_update.py",
    "test_transformer.py",
    "test_unzip.py",
    "test_watch.py",
    "test_watching.py",
    "test_whose.py",
    "test_wrong_answers.py",
}

use_own_tools()
import_quickly()


class Together(LoadScopeScheduling):
    """Side by side, a file's tests stay together, and all that look at the hostile class."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "hostile" if "/hostile/" in path else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    """How tests are shared out when several processes run them."""
    return Together(config, log)


def _file(item: pytest.Item) -> str:
    """Its path below tests/."""
    return item.path.relative_to(ROOT / "tests").as_posix()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where no slow test is asked for, their files are not even imported."""
    if config.option.markexpr != "not slow" or not collection_path.is_relative_to(ROOT / "tests"):
        return None
    return collection_path.relative_to(ROOT / "tests").as_posix() in SLOW or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first, or all wait for them."""
    places = {name: place for place, name in enumerate(LONG_WORK)}
    items.sort(key=lambda item: places.get(_file(item), len(places)))  # stable
    for item in items:
        if _file(item) in SLOW:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What was imported and collected is looked through by no collector any more."""
    gc.freeze()


def make(target: str) -> None:
    """Run a task of the Makefile; on failure show the end of what it said."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "making").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # one at a time: several processes may run tests
        done = subprocess.run(
            ["make", target], cwd=ROOT, capture_output=True, text=True, check=False
        )
    if done.returncode:
        pytest.fail(f"make {target} failed:\n{(done.stdout + done.stderr)[-4000:]}")


@pytest.fixture(scope="module", autouse=True)
def libraries_that_run_texts() -> Iterator[None]:
    """What a file's tests keep libraries from, as where submissions are graded, ends with them."""
    loaders = {(home, n): vars(sys.modules[home])[n] for home, n in PICKLED if home in sys.modules}
    finds = doctest.DocTestParser.get_examples
    yield
    doctest.DocTestParser.get_examples = finds
    for module in (doctest, *(sys.modules[one] for one in RUNNERS if one in sys.modules)):
        for name in RUNS:
            vars(module).pop(name, None)
    for home, kind, method, _ in METHODS:
        owner = getattr(sys.modules.get(home), kind, None)
        if hasattr(getattr(owner, method, None), "__wrapped__"):
            setattr(owner, method, getattr(owner, method).__wrapped__)
    for (home, name), function in loaders.items():
        setattr(sys.modules[home], name, function)
    names = (*EVALUATORS, *CODE, *STARTING)
    kept: list[Any] = [getattr(sys.modules.get(module), name, None) for module, name in names]
    for guarded in filter(lambda one: hasattr(one, "__wrapped_evaluator__"), kept):
        for module in [one for one in sys.modules.values() if one is not None]:
            if vars(module).get(guarded.__name__) is guarded:
                setattr(module, guarded.__name__, guarded.__wrapped_evaluator__)


@pytest.fixture(scope="session")
def course() -> Course:
    """The course this repository holds."""
    return COURSE


@pytest.fixture(params=CHAPTERS)
def chapter(request: pytest.FixtureRequest) -> str:
    """Each chapter in turn."""
    return request.param


@pytest.fixture(scope="session")
def book_html() -> Path:
    """The built book's folder; built if it is stale."""
    make("book")
    return ROOT / "book" / "_build" / "html"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A running browser's page."""
    with browsing(tmp_path_factory.mktemp("window"), {}) as page:
        yield page


@pytest.fixture(scope="session")
def open_fork_server() -> Iterator[ForkServer]:
    """Where students' processes come from, without the sandbox; one for all who ask."""
    with ForkServer(["torch", "numpy"], student=STUDENT, sandboxed=False) as made:
        yield made


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For models too small to share out; on busy cores, threads wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
