"""Onggi's own tools on the files of real servers: backup, check, inspect, restore, repair, import and export, and the
picture of a checkpoint; see tests/tools/."""

import need
from job import ROOT, Job, Stage

HOME = ROOT / "tests" / "tools"
SECONDS_MAX = 900


def run(job: Job):
    job.command(["python3", "main.py", need.onggi()], name="onggi's own tools", cwd=HOME, timeout=SECONDS_MAX,
                counts=True, env={"PYTHONPATH": str(ROOT / "tests" / "runner")})


STAGE = Stage(
    "tools", "onggi backup, check, inspect, restore, repair, import and export on the files of real servers", run
)
