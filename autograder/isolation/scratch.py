"""Where a trusted process within its walls may write: its own scratch disk, and nowhere else."""

ROOTS: list[str] = []  # empty outside the walls
