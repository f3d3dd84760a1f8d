"""The course on a real JupyterHub: from logging in to feedback, and what no student can reach.

Root starts it, for accounts with passwords of their own: so all of this is proven with the owners
and modes of a real machine. Without root, or where npm cannot have the proxy, it is skipped.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from nbgrader.api import Gradebook

from hub import check
from tests import hubs
from tests.browsing import BROWSER, browsing
from tests.hubs import COURSE, FORMGRADER, GRADER, STUDENTS, NoHub, Person, Site, press, wait_for
from tests.small_course import NAME, RIGHT

ANSWERS = {
    "ada": (RIGHT, 6.0),
    "bela": (RIGHT | {"square": "def square(x):\n    return x * abs(x)"}, 4.0),
    "chidi": ({"third": RIGHT["third"]}, 3.0),
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A machine on which a hub runs."""
    try:
        with hubs.site() as site:
            yield site
    except NoHub as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def ines(site: Site) -> Person:
    """An instructor, who has released the assignment in formgrader."""
    ines = Person(site, "ines")
    press(ines, "assign")
    press(ines, "release")
    return ines


@pytest.fixture(scope="module")
def students(site: Site, ines: Person) -> dict[str, Person]:
    """Three students, each with a server, who have fetched, answered and submitted."""
    found = {name: Person(site, name) for name in STUDENTS}
    for name, student in found.items():
        student.open_server()
        assert student.assignment()["status"] == "released"
        assert student.press("fetch")["status"] == "fetched"
        student.answer(ANSWERS[name][0])
        assert len(student.press("submit")["submissions"]) == 1
    return found


@pytest.fixture(scope="module")
def pages(site: Site, students: dict[str, Person]) -> dict[str, str]:
    """Each student's feedback, as their own server shows it."""
    return graded(site, students)


def graded(site: Site, students: dict[str, Person]) -> dict[str, str]:
    """What was submitted is collected, graded and given back; the pages that students fetch."""
    with site.watcher():
        return {
            name: wait_for(student.feedback, f"{name}'s feedback")
            for name, student in students.items()
        }


def points(site: Site) -> dict[str, float]:
    """What everybody has, by the gradebook."""
    with Gradebook(f"sqlite:///{site.course}/gradebook.db") as book:
        found: list[Any] = book.assignment_submissions(NAME)
        return {one.student.id: one.score for one in found}


def by_hand(who: Person, student: str) -> None:
    """Give 1.5 points for the written answer, in formgrader."""
    who.get(f"{FORMGRADER}/")
    found = who.ask(f"{FORMGRADER}/api/submitted_notebooks/{NAME}/numbers")
    (id,) = [one["id"] for one in found if one["student"] == student]
    for grade in who.ask(f"{FORMGRADER}/api/grades?submission_id={id}"):
        if grade["name"] == "why":
            given = {"manual_score": 1.5, "extra_credit": None}
            who.ask(f"{FORMGRADER}/api/grade/{grade['id']}", "PUT", given)


def status(who: Person, path: str) -> int:
    """With which status a page answers."""
    return who.get(path).status_code


def test_nothing_is_missing_in_what_prepare_has_made(site: Site):
    said = site.run("root", sys.executable, "-m", "hub", "check", where=site.folder)
    assert said == "Nothing is missing.\n"


def test_that_all_may_listen_on_low_ports_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check, "UNPRIVILEGED", tmp_path / "first")
    hub: Any = SimpleNamespace(inner_ports=(801, 1802, 803))
    for first, open_ones in (("1024", "1802"), ("802", "1802, 803")):
        (tmp_path / "first").write_text(first)
        (said,) = check._ports(hub)
        assert f"on port {open_ones}, and" in said


def test_who_takes_part_logs_in_and_nobody_else(site: Site):
    assert Person(site, "ada").there and Person(site, "hanna").there
    assert not Person(site, "ada", "a guess").there
    assert not Person(site, hubs.STRANGER).there and not Person(site, GRADER).there


def test_what_a_browser_is_given_it_sends_encrypted_alone(
    site: Site, ines: Person, students: dict[str, Person]
):
    for who in (ines, *students.values()):
        kept = {(cookie.name, cookie.path): cookie.secure for cookie in who.cookies}
        assert {"_xsrf", "jupyterhub-session-id"} < {name for name, _ in kept}
        assert all(kept.values()), kept
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(site.url, timeout=60)  # by whom nobody vouches
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(site.url.replace("https", "http"), timeout=60)


def test_each_student_submits_and_finds_the_own_feedback(pages: dict[str, str], site: Site):
    for name, (_, worth) in ANSWERS.items():
        assert points(site)[name] == worth
    assert "6 of 6" in pages["ada"] and "4 of 6" in pages["bela"] and "3 of 6" in pages["chidi"]


def test_what_is_given_by_hand_in_formgrader_stays_when_graded_again(
    site: Site, pages: dict[str, str], students: dict[str, Person]
):
    hanna = Person(site, "hanna")
    by_hand(hanna, "ada")
    assert points(site)["ada"] == 7.5
    press(hanna, "autograde", f"submission/{NAME}/ada")
    assert points(site) == {name: worth for name, (_, worth) in ANSWERS.items()} | {"ada": 7.5}
    press(Person(site, "jonas"), "generate_feedback")
    press(Person(site, "jonas"), "release_feedback")
    wait_for(
        lambda: "Score: 7.5 / 17.0" in students["ada"].feedback(), "the page says what was given"
    )


def test_more_time_and_the_grades_leave_the_course(site: Site, pages: dict[str, str]):
    said = site.grader("autograder", "extend", "bela", NAME, "2d")
    assert "bela" in said
    site.grader("nbgrader", "export", "--to=grades.csv")
    table = (site.course / "grades.csv").read_text()
    assert all(name in table for name in STUDENTS)


def test_the_courses_of_those_who_grade_lead_to_formgrader(site: Site, ines: Person):
    ines.open_server()
    (course,) = ines.ask(f"{ines.place}/formgraders")["value"]
    assert course["course_id"] == COURSE and f"/services/{COURSE}/" in course["url"]


def test_no_student_opens_formgrader_or_anothers_server(
    site: Site, students: dict[str, Person], pages: dict[str, str]
):
    bela = students["bela"]
    for path in (
        *(f"{FORMGRADER}/", f"/services/{COURSE}/api/contents", f"/services/{COURSE}/lab"),
        *("/user/ada/lab", "/user/ada/api/contents", f"/user/ada/assignments?course_id={COURSE}"),
        *("/hub/api/users", "/hub/api/users/ada", "/hub/api/groups", "/hub/api/proxy"),
    ):
        assert status(bela, path) in (403, 404), path
    assert status(bela, f"{bela.place}/formgrader/") == 404
    for method, path in (("POST", "/hub/api/users/ada/server"), ("POST", "/hub/api/groups/x")):
        with pytest.raises(requests.HTTPError, match=r"40[34]"):
            bela.ask(path, method, {})


ATTACK = """
import json, os, socket, sys, urllib.request
from pathlib import Path
told = {told}
found = []
def may(what, do):
    try:
        found.append([what, str(do())[:2000]])
    except Exception as error:
        pass
def asked(url, token=None, method="GET", data=None):
    request = urllib.request.Request(url, method=method, data=data)
    if token:
        request.add_header("Authorization", "token " + token)
    return urllib.request.build_opener(NoWay).open(request, timeout=60).read()
class NoWay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None
def listening(port):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind(("127.0.0.1", port))
        one.listen()
        return "listens"
mine = os.environ["JUPYTERHUB_API_TOKEN"]
api = os.environ["JUPYTERHUB_API_URL"]
may("own groups", lambda: asked(api + "/user", mine))
exchange = Path(told["exchange"]) / told["course"]
for place in told["closed"]:
    look = os.listdir if os.path.isdir(place) else lambda place: open(place).read()
    may("look into " + place, lambda: look(place))
for place in told["kept"]:
    may("move " + place, lambda: os.rename(place, place + "-gone"))
    may("open up " + place, lambda: os.chmod(place, 0o777))
for place in (exchange / "outbound", exchange / "feedback", exchange):
    may("write to %s" % place, lambda: (place / "mine").write_text("x"))
for port in told["ports"]:
    may("listen on %s" % port, lambda: listening(port))
may("proxy", lambda: asked(told["proxy"] + "/api/routes"))
may("proxy by own token", lambda: asked(told["proxy"] + "/api/routes", mine))
for path in ("/users", "/users/ada", "/groups", "/proxy", "/users/ada/tokens"):
    may("hub " + path, lambda: asked(api + path, mine))
may("formgrader", lambda: asked(told["formgrader"], mine))
for path in Path("/proc").glob("[0-9]*"):
    if path.exists() and path.stat().st_uid != os.getuid():
        may("environment of %s" % path, lambda: (path / "environ").read_bytes()[:100] or 1 / 0)
        may("memory of %s" % path, lambda: (path / "mem").open("rb").read(1))
print(json.dumps(found))
"""


def test_a_student_with_a_terminal_reaches_nothing_of_the_others_or_the_course(
    site: Site, students: dict[str, Person], pages: dict[str, str]
):
    shared = site.exchange / COURSE
    settings = (site.hub / "course.toml").read_text()
    ports = json.loads(settings.partition("inner_ports = ")[2].partition("\n")[0])
    (page, *_) = (site.home("ada") / NAME / "feedback").rglob("numbers.html")
    works = (shared / "inbound").glob("ada+*")
    inbound = next(one for one in works if one.stat().st_uid == site.id("ada"))
    told = {
        "exchange": str(site.exchange),
        "course": COURSE,
        "closed": [
            *map(str, (site.course, site.course / "gradebook.db", site.hub / "state")),
            str(site.hub / "students.csv"),
            *map(str, (shared / "inbound", shared / "feedback", site.home("ada"), page)),
            *(str(site.etc / "shadow"), "/etc/shadow", str(site.hub / "state" / "cookie_secret")),
        ],
        "kept": [*map(str, (shared, shared / "outbound", shared / "inbound", site.hub, inbound))],
        "ports": [*ports, int(site.url.rpartition(":")[2])],
        "proxy": f"http://127.0.0.1:{ports[1]}",
        "formgrader": f"http://127.0.0.1:{ports[2]}{FORMGRADER}/api/assignments",
    }
    (own, *more) = json.loads(students["bela"].terminal(ATTACK.format(told=repr(told))))
    assert own[0] == "own groups" and f"nbgrader-{COURSE}" in own[1]
    assert more == []


def test_no_student_submits_for_another_or_takes_anothers_feedback(
    site: Site, students: dict[str, Person], pages: dict[str, str]
):
    forge = (
        "import os\nfrom pathlib import Path\n"
        f"folder = Path({str(site.exchange)!r}, {COURSE!r}, 'inbound', "
        f"'ada+{NAME}+2099-01-01 10:00:00.000000 UTC+x')\n"
        "folder.mkdir()\nfolder.joinpath('numbers.ipynb').write_text('{}')\n"
        "folder.joinpath('timestamp.txt').write_text('2099-01-01 10:00:00.000000 UTC')\n"
        "os.chmod(folder, 0o755)\n"
        f"os.system('{sys.executable} -m nbgrader fetch_feedback {NAME} --course={COURSE} "
        f"--student=ada --Exchange.root={site.exchange}')\n"
        "print([str(one) for one in Path.home().rglob('numbers.html')])\n"
    )
    before = points(site)["ada"]
    mine = len(list(site.home("bela").rglob("numbers.html")))
    said = students["bela"].terminal(forge)
    assert said.strip().splitlines()[-1].count("numbers.html") == mine, said
    assert "it is bela's, not ada's" in site.grader("nbgrader", "collect", NAME, "--update")
    site.grader("autograder", "grade", "--no-report")
    assert points(site)["ada"] == before


def test_who_is_taken_off_the_list_loses_formgrader_and_a_new_name_needs_no_restart(site: Site):
    path = site.hub / "course.toml"
    text = path.read_text()
    jonas = Person(site, "jonas")
    assert status(jonas, f"{FORMGRADER}/") == 200
    asked = jonas.ask("/hub/api/user")
    assert asked["groups"] == [f"formgrade-{COURSE}"]
    try:
        path.write_text(text.replace('"ines", "jonas"', f'"ines", "{hubs.STRANGER}"'))
        wait_for(lambda: status(jonas, "/hub/api/user") == 403, "jonas is nobody here")
        new = Person(site, hubs.STRANGER)
        assert new.there and status(new, f"{FORMGRADER}/") == 200
        path.write_text("course = ")  # by half: what it said before holds
        assert Person(site, hubs.STRANGER).there and not Person(site, "jonas").there
    finally:
        path.write_text(text)


LIST = "document.querySelector('.lm-DockPanel').textContent"
OPENED = f"""(() => {{
    if ({LIST}.includes("{NAME}")) return true;
    if (window.jupyterapp) jupyterapp.commands.execute("nbgrader:open-assignment-list");
}})()"""


@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
def test_the_list_of_assignments_shows_in_a_browser(
    students: dict[str, Person], tmp_path_factory: pytest.TempPathFactory
):
    ada = students["ada"]
    headers = {"Authorization": f"token {ada.token()}"}
    known = "--ignore-certificate-errors"  # this one nobody else vouches for
    with browsing(tmp_path_factory.mktemp("chromium"), headers, known) as page:
        shown = page.show(f"{ada.site.url}{ada.place}/lab?reset", OPENED, LIST)
    assert NAME in shown and COURSE in shown


def test_what_is_not_as_it_should_be_is_said(site: Site):
    shared = site.exchange / COURSE
    config = site.course / "nbgrader_config.py"
    before = config.read_text()
    toml = (site.hub / "course.toml").read_text()
    try:
        site.exchange.chmod(0o777)
        (site.hub / "students.csv").chmod(0o644)
        os.chown(shared / "inbound", 0, 0)
        config.write_text(before.replace(str(site.exchange), "/elsewhere"))
        (site.hub / "course.toml").write_text(
            toml.replace('"jonas"', '"nemo"').replace("proxy = ", 'proxy = "/no/proxy"  # ')
        )
        (site.folder / "key.pem").chmod(0o640)
        (trusted,) = (site.etc / "certs").iterdir()
        trusted.rename(site.folder / trusted.name)
        site.home("ada").chmod(0o755)
        code, said = site.attempt("root", sys.executable, "-m", "hub", "check", where=site.folder)
    finally:
        config.write_text(before)
        (site.hub / "course.toml").write_text(toml)
        site.run("root", sys.executable, "-m", "hub", "prepare", where=site.folder)
        site.home("ada").chmod(0o700)
        (site.folder / "key.pem").chmod(0o600)
        (site.folder / trusted.name).rename(trusted)
    assert code == 1
    for part in (
        f"chmod 1777 {site.exchange}",
        f"chmod 600 {site.hub / 'students.csv'}",
        f"chown {GRADER} {shared / 'inbound'}",
        "The proxy /no/proxy is missing",
        "no account on this machine, see useradd: nemo",
        f"chmod 700 {site.home('ada')}",
        "has another exchange",
        f"chmod 600 {site.folder / 'key.pem'}",
        f"This machine itself does not trust {site.certificate} (self-signed certificate): copy",
    ):
        assert part in said, said


def test_passwords_that_come_unencrypted_are_said(tmp_path: Path):
    certificate, key = map(str, hubs.certified(tmp_path))
    for address, certificate_, key_, said in (
        ("http://:80", "", "", "Passwords come to http://:80 unencrypted"),
        ("https://:443", key, certificate, "are no certificate and its key"),
        ("https://:443", certificate, str(tmp_path / "none"), "are no certificate and its key"),
    ):
        hub: Any = SimpleNamespace(address=address, certificate=certificate_, key=key_)
        assert said in "".join(check._encryption(hub))
    hub = SimpleNamespace(address="http://127.0.0.1:80", certificate="", key="")
    assert not list(check._encryption(hub))
