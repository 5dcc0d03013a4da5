"""What the threads of a process group do: evidence of a command that does not end."""

import os
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
THREADS_MAX = 200


def describe(group):
    """A line for each thread: whether it runs or waits, where in the kernel, and the processor time it has taken."""
    lines = []
    for process in PROC.iterdir():
        if process.name.isdigit() and _group(process) == group:
            lines += [line for thread in sorted((process / "task").glob("*")) if (line := _thread(process, thread))]
    return lines[:THREADS_MAX]


def _stat(path):
    """The name and the fields after it; empty if the thread has ended."""
    try:
        head, _, rest = (path / "stat").read_text().rpartition(")")
    except OSError:
        return None
    return head.partition("(")[2], rest.split()


def _group(process):
    stat = _stat(process)
    return int(stat[1][2]) if stat else None


def _thread(process, thread):
    stat = _stat(thread)
    if not stat:
        return None
    name, fields = stat
    try:
        waits_in = (thread / "wchan").read_text()
    except OSError:
        waits_in = "?"
    seconds = (int(fields[11]) + int(fields[12])) / TICKS
    return f"{process.name}/{thread.name} {name}: state {fields[0]}, in {waits_in}, {seconds:.1f} s of processor"
