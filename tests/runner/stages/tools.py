"""Onggi's own tools on the files of real servers: backup, check, inspect, restore, repair, import and export, and the
picture of a checkpoint; see tests/tools/."""

import os

import need
from job import ROOT, TARGET, Job, Skip, Stage

HOME = ROOT / "tests" / "tools"
SECONDS_MAX = 900
# A release build for another processor takes this long at most.
ARM64_SECONDS_MAX = 3600
# Of the long form, in which a replica is disturbed.
CUTS = 100
KILLS = 20


def run(job: Job):
    job.command(["python3", "main.py", need.onggi()], name="onggi's own tools", cwd=HOME, timeout=SECONDS_MAX,
                counts=True, env={"PYTHONPATH": str(ROOT / "tests" / "runner")})


def pieces(_job):
    def cuts(job):
        job.command(["python3", "main.py", need.onggi(), "cuts", CUTS, KILLS], name="cuts and kills", cwd=HOME,
                    timeout=SECONDS_MAX, counts=True, env={"PYTHONPATH": str(ROOT / "tests" / "runner")})

    def debian(job):
        if os.geteuid() != 0:
            raise Skip("not root: cannot enter a Debian of its own")
        job.command(["python3", "debian.py", need.onggi(), need.debian()], name="the package in a clean Debian",
                    cwd=HOME, timeout=SECONDS_MAX, counts=True, env={"PYTHONPATH": str(ROOT / "tests" / "runner")})

    def booted(job):
        if os.geteuid() != 0:
            raise Skip("not root: cannot boot a Debian of its own")
        need.apt("systemd-container")
        job.command(["python3", "booted.py", need.onggi(), need.debian()], name="the package under systemd",
                    cwd=HOME, timeout=SECONDS_MAX, counts=True, env={"PYTHONPATH": str(ROOT / "tests" / "runner")})

    def arm64(job):
        need.arm64()
        make = ["make", "-C", ROOT, "build", "deb", "image", "release", f"TARGET={need.ARM64}"]
        job.build(make, timeout=ARM64_SECONDS_MAX)
        job.command(["python3", "arm64.py", TARGET / need.ARM64 / "release" / "onggi", TARGET / "package"],
                    name="arm64 under qemu", cwd=HOME, timeout=SECONDS_MAX, counts=True,
                    env={"PYTHONPATH": str(ROOT / "tests" / "runner")})

    return [(f"{CUTS} cuts, {KILLS} kills of each side", cuts), ("the package in a clean Debian", debian),
            ("the package under systemd", booted), ("arm64 under qemu", arm64)]


STAGE = Stage(
    "tools", "onggi backup, check, inspect, restore, repair, import and export on the files of real servers", run,
    pieces,
)
