"""The scratch disk of a sandbox: where it is, and who may write to nothing else."""

DISK = "/scratch"  # not below /home or /tmp: Python itself may lie there
HOME = f"{DISK}/home"
ROOTS: list[str] = []  # where a worker of the pool may write; empty outside its sandbox
