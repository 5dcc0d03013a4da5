"""Runs stages of the test suite, times them, and closes with `N passed, N failed, N skipped`."""

import argparse
import os
import time

import long_run
import may_skip
from job import Failed, Job, Skip
from stages import STAGES
from tally import Tally

# What the whole suite may take, from a fresh clone on two cores that do nothing else.
MINUTES_MAX = 20


def main():
    parser = argparse.ArgumentParser(prog="tests/run", description=__doc__)
    parser.add_argument("stage", nargs="*", help="stages to run; all when none is named")
    parser.add_argument("--list", action="store_true", help="print the stages and end")
    parser.add_argument("--long", action="store_true", help="the long form of the named stages, resumable")
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
        return long_run.run(chosen, again=args.again, verbose=args.verbose)
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
    rows = []
    for stage in chosen:
        print(f"== {stage.name}: {stage.purpose}", flush=True)
        job, seconds = run_stage(stage, verbose, named)
        if in_ci:
            for check, reason in may_skip.refused(stage.name, job.tally.skips, allowed):
                job.check(f"skip of {check}", f"not listed in tests/may_skip: {reason}")
        report(job, seconds)
        rows.append((stage.name, seconds, job.tally))
    print_table(rows)
    passed = sum(t.passed for _, _, t in rows)
    failed = sum(t.failed for _, _, t in rows)
    skipped = sum(len(t.skips) for _, _, t in rows)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed else 0


def run_stage(stage, verbose, named):
    """One stage, with whatever it raises turned into a skip or a failed check."""
    started = time.monotonic()
    job = Job(stage, verbose)
    try:
        if stage.pending and not named:
            raise Skip(f"pending: {stage.pending}")
        stage.run(job)
        if job.tally == Tally():
            job.check(stage.name, "the stage checked nothing")
    except Skip as reason:
        job.skip_check(stage.name, str(reason))
    except (Failed, OSError) as problem:
        job.check(stage.name, str(problem))
    return job, time.monotonic() - started


def report(job, seconds):
    """What a stage found, with the end of its log when it failed."""
    tally = job.tally
    print(f"   {tally.passed} passed, {tally.failed} failed, {len(tally.skips)} skipped in {seconds:.0f} s", flush=True)
    for check, reason in tally.skips:
        print(f"   skipped {check}: {reason}")
    if tally.failed:
        for line in job.tail():
            print(f"   | {line}")
        print(f"   failed checks (whole log: {job.log_path}):")
        for line in job.failures():
            print(f"   {line}")


def print_table(rows):
    """Minutes per stage, longest names first column, with the sum."""
    print("\nstage           minutes  passed  failed  skipped")
    for name, seconds, tally in rows:
        print(f"{name:14} {seconds / 60:8.1f} {tally.passed:7} {tally.failed:7} {len(tally.skips):8}")
    print(f"{'all':14} {sum(s for _, s, _ in rows) / 60:8.1f}  (at most {MINUTES_MAX} on two idle cores, from a fresh clone)\n")


if __name__ == "__main__":
    raise SystemExit(main())
