"""nbgrader's settings in the servers of those who take the course."""

import os

c = get_config()  # pyright: ignore[reportUndefinedVariable]

c.CourseDirectory.course_id = os.environ["HUB_COURSE"]
c.Exchange.root = os.environ["HUB_EXCHANGE"]
c.Authenticator.plugin_class = "nbgrader.auth.JupyterHubAuthPlugin"
