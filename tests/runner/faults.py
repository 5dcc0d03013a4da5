"""What the stages of faults share: the program of tests/faults, the places it mounts things, and the page of
results."""

import datetime
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import long_run
import need
from job import ROOT, TARGET, Failed, Skip

PAGE = ROOT / "bench" / "results" / "long-runs" / "README.md"
# Another server in place of ours, to test the tests: `redis`.
KIND = os.environ.get("ONGGI_FAULTS_SERVER", "onggi")
# The window of async mode is short here, so that a load of a second or two outlasts what it may lose. Twice the window
# is promised, three times is judged: on a machine with ten times as many busy threads as cores, 504 ms of 500 were lost
# at most.
WINDOW_MS = 250
OPTIONS = {"onggi": [f"log-window={WINDOW_MS}"], "redis": []}
LOST_MS_MAX = {"onggi": 3 * WINDOW_MS, "redis": 2000}


def program(job):
    """The built program."""
    job.build(["cargo", "build", "--release", "--locked", "-p", "onggi-faults"])
    return TARGET / "release" / "faults"


def server():
    """The server's program."""
    return need.onggi() if KIND == "onggi" else need.program("redis-server", "redis-server")


def run(job, fault, *arguments, mode="sync", options=(), is_compressed=False, timeout=1800):
    """Runs one fault, with strings compressed if wanted and the server can; its lines of figures, or nothing when it
    failed."""
    before, failed = len(job.lines()), job.tally.failed
    with place() as directory:
        words = [
            program(job),
            fault, "--kind", KIND, "--program",
            server(),
            "--dir", directory, "--seed", job.seed, "--mode", mode, "--window-ms",
            LOST_MS_MAX[KIND],
            *arguments,
        ]
        for option in [*OPTIONS[KIND], *(options if KIND == "onggi" else ())]:
            words += ["--option", option]
        if is_compressed and KIND == "onggi":
            words.append("--compressed")
        job.command(
            words, name=f"{fault}, {mode}{', compressed' if is_compressed else ''}", timeout=timeout, counts=True
        )
        if job.tally.failed > failed and (directory / "output").exists():
            for line in (directory / "output").read_text(errors="replace").splitlines()[-60:]:
                job.say(f"   server | {line}")
    if job.tally.failed > failed:
        return None
    said = job.lines()[before:]
    figures = [line.strip() for line in said if line.startswith("   ") and " crashes, " in line]
    return "; ".join(figures or counted(line.removeprefix("ok - ") for line in said if line.startswith("ok - ")))


def counted(said):
    """What was said; of what differs in its numbers alone, how often."""
    alike = {}
    for text in said:
        alike.setdefault(re.sub(r"\d+", "N", text), []).append(text)
    return [texts[0] if len(texts) == 1 else f"{len(texts)} times {text}" for text, texts in alike.items()]


@contextmanager
def place():
    """A directory; what is mounted below it goes with it."""
    directory = Path(tempfile.mkdtemp(prefix="onggi-faults-"))
    try:
        yield directory
    finally:
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        # One that stands still could not even be unmounted.
        for point in sorted((p for p in mounted if p.startswith(f"{directory}/")), reverse=True):
            for command in (["fsfreeze", "-u", point], ["umount", "-l", point]):
                if shutil.which(command[0]):
                    subprocess.run(command, capture_output=True)
        shutil.rmtree(directory, ignore_errors=True)


def can_mount(file_system="ext4"):
    """Skips unless this machine lets us mount file systems in memory, and of this kind on loop devices."""
    if os.geteuid() != 0:
        raise Skip("not root: cannot mount")
    need.program("mount", "mount")
    need.program("mkfs.ext4", "e2fsprogs")
    if file_system == "xfs":
        need.program("mkfs.xfs", "xfsprogs")
    with place() as directory:
        _mount(directory / "memory", ["-t", "tmpfs", "-o", "size=8m", "onggi-faults"], "cannot mount")
        image = directory / "image"
        with open(image, "wb") as file:
            file.truncate(320 << 20)
        done = subprocess.run([f"mkfs.{file_system}", "-q", image], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"mkfs.{file_system}: {done.stderr.strip()}")
        _mount(
            directory / "volume",
            ["-t", file_system, "-o", "loop", image],
            f"cannot mount {file_system} on a loop device",
        )


def _mount(point, words, otherwise):
    point.mkdir()
    done = subprocess.run(["mount", *words, point], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"{otherwise}: {' '.join(done.stderr.split())}")


def can_trace():
    """Skips unless strace can inject errors here."""
    need.program("strace", "strace")
    done = subprocess.run(
        ["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "inject=fsync:error=EIO:when=9", "true"],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise Skip(f"strace cannot trace: {' '.join(done.stderr.split())}")


def record(job, stage, figures):
    """Appends a piece's date, commit, seed and figures to the page of results."""
    if figures is None or KIND != "onggi":
        return
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    with open(PAGE, "a") as page:
        page.write(f"| {date} | {long_run.commit()[:10]} | {stage} | {job.seed} | {figures} |\n")
