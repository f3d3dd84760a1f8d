"""Everybody in the class that is graded once: attackers, and who is right in unusual words."""

from tests.hostile.attacks import INVENTED
from tests.hostile.awkward import AWKWARD
from tests.hostile.klass import VICTIM
from tests.hostile.pages import PAGES
from tests.hostile.rows import LISTED
from tests.hostile.rules import AROUND, NEAR
from tests.hostile.slips import SLIPS
from tests.hostile.values import VALUES

HOSTILE = [*LISTED, *INVENTED, *VALUES, *SLIPS, *AROUND, *PAGES]
RIGHT = [*AWKWARD, *NEAR]
EVERYBODY = [VICTIM, *HOSTILE, *RIGHT]
