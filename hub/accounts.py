"""Who may log in and in which groups they are: what course.toml says at that moment."""

from pathlib import Path
from typing import Any

from jupyterhub.auth import PAMAuthenticator
from traitlets import Unicode

from hub.settings import Hub, HubError, read


class Accounts(PAMAuthenticator):
    """The machine's accounts and passwords, of those in course.toml alone."""

    folder = Unicode(help="The hub's folder, with course.toml").tag(config=True)
    _last: Hub | None = None

    def course(self) -> Hub:
        """What course.toml says; while it cannot be read, what it said before."""
        try:
            self._last = read(Path(self.folder))
        except HubError as error:
            if self._last is None:
                raise
            self.log.error("%s Until then it counts as it was.", error)
        return self._last

    async def authenticate(self, handler: Any, data: dict[str, str]) -> Any:
        """Ask the machine whether the password is right."""
        name = await super().authenticate(handler, data)
        return name and {"name": name, "groups": groups(self.course(), name)}

    def check_allowed(self, username: str, authentication: Any = None) -> bool:
        """Nobody but who takes part."""
        return username in self.course().people

    async def refresh_user(self, user: Any, handler: Any = None, **_: Any) -> Any:
        """Whoever has left, or grades no more, loses what that gave: first groups, then the login.

        In this order, as a server that asks in somebody's name is not told of a refused login.
        """
        course = self.course()
        if user.name in course.people or user.groups:
            return {"name": user.name, "groups": groups(course, user.name)}
        return False


def grade(course: Hub) -> str:
    """The group of those who grade, as nbgrader calls it."""
    return f"formgrade-{course.course}"


def learn(course: Hub) -> str:
    """The group of those who take the course, as nbgrader calls it."""
    return f"nbgrader-{course.course}"


def groups(course: Hub, name: str) -> list[str]:
    """In which groups somebody is."""
    found = {grade(course): course.graders, learn(course): course.students}
    return [group for group, names in found.items() if name in names]
