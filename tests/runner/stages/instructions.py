"""Instructions of the hot commands, counted by callgrind, within their budgets (tests/instructions)."""

import re
import subprocess
from dataclasses import dataclass

import need
from job import ROOT, TARGET, Failed, Job, Skip, Stage

BUDGETS = ROOT / "tests" / "instructions"
# A count that exceeds its budget by more than this fails. Counts repeat within 0.1 % on one machine.
OVER_MAX = 0.005
# A count below its budget by more than this fails too, so that the budget is lowered and the gain stays.
UNDER_MAX = 0.03
# Commands that are also counted as a user with every right, while other users have rules: the budget is the same.
AS_USER = ("GET", "SET")


@dataclass(frozen=True)
class Budgets:
    """What tests/instructions says: the compiler of the counts, and rows of command, pipeline and instructions."""

    compiler: str
    rows: list

    @classmethod
    def parse(cls, text):
        """Reads the file's text."""
        lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
        compilers = [" ".join(words[1:]) for words in lines if words[0] == "compiler"]
        if len(compilers) != 1:
            raise Failed(f"{BUDGETS.name}: expected one line `compiler VERSION TARGET`, found {len(compilers)}")
        rows = [(command, pipeline, int(budget)) for command, pipeline, budget in
                (words for words in lines if words[0] != "compiler")]
        return cls(compilers[0], rows)


def compiler(verbose_version):
    """Version and target of the output of `rustc -vV`: `rustc 1.95.0 x86_64-unknown-linux-gnu`."""
    version, host = re.match(r"rustc \S+", verbose_version), re.search(r"^host: (\S+)", verbose_version, re.M)
    if not version or not host:
        raise Failed(f"rustc -vV gave no version: {verbose_version[:80]!r}")
    return f"{version[0]} {host[1]}"


def problem(counted, budget):
    """What is wrong with a count; None when it is within its bounds."""
    over = counted / budget - 1
    if over > OVER_MAX:
        return f"{counted:.0f} instructions a request, {100 * over:.1f} % above the budget of {budget}"
    if over < -UNDER_MAX:
        return f"{counted:.0f} instructions a request; lower the budget of {budget} in tests/{BUDGETS.name}"
    return None


def count(job, program, command, pipeline, *more):
    """Instructions per request of a command."""
    out = job.build(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no",
                     "--toggle-collect=*::measured", program, command, pipeline, *more], timeout=600)
    requests, collected = re.search(r"^(\d+) requests", out, re.M), re.search(r"Collected : (\d+)", out)
    if not requests or not collected or int(collected[1]) == 0:
        raise Failed(f"callgrind gave no count for {command}: {out.strip().splitlines()[-1:]}")
    return int(collected[1]) / int(requests[1])


def run(job: Job):
    budgets = Budgets.parse(BUDGETS.read_text())
    ours = compiler(subprocess.run(["rustc", "-vV"], cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    if ours != budgets.compiler:
        raise Skip(f"the budgets are for {budgets.compiler}, and this is {ours}")
    need.program("valgrind", "valgrind")
    job.build(["cargo", "build", "--release", "--locked", "-p", "onggi-server", "--example", "instructions"])
    program = TARGET / "release" / "examples" / "instructions"
    for command, pipeline, budget in budgets.rows:
        counted = count(job, program, command, pipeline)
        job.check(f"{command} at pipeline {pipeline}: {counted:.0f} instructions of {budget}", problem(counted, budget))
        if command in AS_USER:
            counted = count(job, program, command, pipeline, "users")
            job.check(
                f"{command} at pipeline {pipeline} as a user among others: {counted:.0f} instructions of {budget}",
                problem(counted, budget),
            )


STAGE = Stage("instructions", "GET, SET, HSET, ZADD and scripts take no more instructions than their budgets", run)
