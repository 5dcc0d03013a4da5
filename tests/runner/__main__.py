"""Runs stages of the test suite, times them, and closes with `N passed, N failed, N skipped`."""

import argparse
import os
import resource
import subprocess
import time
from dataclasses import dataclass

import long_run
import may_skip
import seeds
from job import Failed, Job, Skip
from stages import STAGES
from tally import Tally

# What the whole suite may take, from a fresh clone on two cores that do nothing else.
MINUTES_MAX = 60
# Lines of a failed stage that are repeated at the end, because readers of a log see its end first.
REASONS_MAX = 8
REASON_CHARS_MAX = 400


def main():
    parser = argparse.ArgumentParser(prog="tests/run", description=__doc__)
    parser.add_argument("stage", nargs="*", help="stages to run; all when none is named")
    parser.add_argument("--list", action="store_true", help="print the stages and end")
    parser.add_argument("--long", action="store_true", help="the long form of the named stages, resumable")
    parser.add_argument("--piece", default="", help="with --long: only pieces whose names begin so")
    parser.add_argument("--again", action="store_true", help="with --long: forget earlier progress")
    parser.add_argument("--verbose", action="store_true", help="show what the stages print")
    args = parser.parse_args()
    if args.list:
        for stage in STAGES:
            forms = ", ".join(f for f, on in (("test", stage.run), ("test-long", stage.pieces)) if on)
            print(f"{stage.name:14} {stage.purpose} ({forms})")
        return 0
    chosen = choose(parser, args)
    if args.long:
        return long_run.run(chosen, again=args.again, verbose=args.verbose, beginning=args.piece)
    return run(chosen, args.verbose, named=bool(args.stage))


def choose(parser, args):
    """The stages to run, in their fixed order."""
    by_name = {stage.name: stage for stage in STAGES}
    for name in args.stage:
        if name not in by_name:
            parser.error(f"no stage {name!r}; there are: {', '.join(by_name)}")
    if args.long:
        long_ones = [s.name for s in STAGES if s.pieces]
        if not args.stage:
            parser.error(f"name a stage (STAGE=...); those with a long form: {', '.join(long_ones)}")
        for name in args.stage:
            if name not in long_ones:
                parser.error(f"stage {name!r} has no long form; those that have: {', '.join(long_ones)}")
        return [by_name[name] for name in args.stage]
    return [s for s in STAGES if s.run and (s.name in args.stage if args.stage else s.present())]


def run(chosen, verbose, named):
    """Runs the stages one after another and prints the table and the closing line. `named`: on the command line."""
    in_ci = os.environ.get("CI") == "true"
    allowed = may_skip.rules()
    rows, reasons = [], []
    print(f"seed {seeds.fixed()} ({seeds.NAME} gives another)", flush=True)
    for stage in chosen:
        print(f"== {stage.name}: {stage.purpose}", flush=True)
        job, cost, again = run_stage(stage, verbose, named)
        if in_ci:
            for check, reason in may_skip.refused(stage.name, job.tally.skips, allowed):
                job.check(f"skip of {check}", f"not listed in tests/may_skip: {reason}")
        report(job, cost)
        rows.append((stage.name, cost, job.tally, again))
        if job.tally.failed:
            reasons += [f"{stage.name}: {line}" for line in (job.failures() + job.panics())[:REASONS_MAX]]
    print_table(rows)
    for line in reasons:
        print(line[:REASON_CHARS_MAX])
    passed = sum(t.passed for _, _, t, _ in rows)
    failed = sum(t.failed for _, _, t, _ in rows)
    skipped = sum(len(t.skips) for _, _, t, _ in rows)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed else 0


def run_stage(stage, verbose, named):
    """One stage, and once more when nothing failed but measurements, which other work on the machine can spoil. A check
    of loss, order, corruption or replies that failed is a verdict, and stays one. Its job, what it cost, and whether it
    was the second try."""
    before = Cost.now()
    job = attempt(Job(stage, verbose), named)
    again = 0 < job.tally.failed == job.tally.measured
    if again:
        print(f"   failed at the first try after {(Cost.now() - before).clock:.0f} s:")
        for line in job.failures():
            print(f"   {line}")
        print("   second try", flush=True)
        job.say("== second try; what is above failed at the first")
        job = attempt(Job(stage, verbose, after=job), named)
    return job, Cost.now() - before, again


def attempt(job, named):
    """Runs the job's stage, with whatever it raises turned into a skip or a failed check."""
    stage = job.stage
    try:
        if stage.pending and not named:
            raise Skip(f"pending: {stage.pending}")
        stage.run(job)
        if job.tally == Tally():
            job.check(stage.name, "the stage checked nothing")
    except Skip as reason:
        job.skip_check(stage.name, str(reason))
    except (Failed, OSError, subprocess.SubprocessError) as problem:
        job.check(stage.name, str(problem))
    return job


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock, and of processors by the programs that a stage started."""

    clock: float
    processor: float

    @classmethod
    def now(cls):
        """What was spent until now."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(time.monotonic(), used.ru_utime + used.ru_stime)

    def __sub__(self, earlier):
        return Cost(self.clock - earlier.clock, self.processor - earlier.processor)

    def __add__(self, other):
        return Cost(self.clock + other.clock, self.processor + other.processor)


def report(job, cost):
    """What a stage found, with the end of its log when it failed."""
    tally = job.tally
    print(
        f"   {tally.passed} passed, {tally.failed} failed, {len(tally.skips)} skipped in {cost.clock:.0f} s", flush=True
    )
    for check, reason in tally.skips:
        print(f"   skipped {check}: {reason}")
    if tally.failed:
        for line in job.tail():
            print(f"   | {line}")
        print(f"   failed checks (whole log: {job.log_path}):")
        for line in job.failures():
            print(f"   {line}")


def print_table(rows):
    """Minutes per stage: on the clock, and of processors, which other work on the machine does not change."""
    print("\nstage           minutes  processor minutes  passed  failed  skipped")
    for name, cost, tally, again in rows:
        note = "" if not again else "  failed twice" if tally.failed else "  passed at the second try"
        print(
            f"{name:14} {cost.clock / 60:8.1f} {cost.processor / 60:18.1f} {tally.passed:7} {tally.failed:7} "
            f"{len(tally.skips):8}{note}"
        )
    whole = sum((cost for _, cost, _, _ in rows), start=Cost(0, 0))
    print(f"{'all':14} {whole.clock / 60:8.1f} {whole.processor / 60:18.1f}"
          f"  (at most {MINUTES_MAX} minutes on two idle cores, from a fresh clone)")
    second = [name for name, _, tally, again in rows if again and not tally.failed]
    if second:
        print(f"passed at the second try: {', '.join(second)}; what failed at the first is in their logs")
    print()


if __name__ == "__main__":
    raise SystemExit(main())
