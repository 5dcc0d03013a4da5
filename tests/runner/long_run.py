"""The long form of a stage: named pieces, each done once per commit, with progress kept between runs.

Progress stands in `.tools/long/STAGE.json`: the commit it belongs to, and the names of the pieces that passed. Started
again on the same commit, a run continues with the first piece that is not there; on another commit it starts over. Some
of the pieces can be named by the beginning of their names, so that several runs share a stage. Each piece draws a fresh
seed and prints it.
"""

import json
import subprocess
import time

import seeds
from job import ROOT, TOOLS, Failed, Job, Skip


def run(chosen, again, verbose, beginning=""):
    """Runs the pieces of every chosen stage that have not passed yet on this commit, and whose names begin so."""
    passed = failed = skipped = 0
    for stage in chosen:
        job = Job(stage, verbose, part=beginning)
        progress = Progress(stage.name, again)
        try:
            pieces = list(stage.pieces(job))
        except (Skip, Failed) as reason:
            print(f"== {stage.name}: cannot run: {reason}")
            failed += 1
            continue
        pieces = [(name, piece) for name, piece in pieces if name.startswith(beginning)]
        todo = [(name, piece) for name, piece in pieces if name not in progress.done]
        print(f"== {stage.name}: {len(pieces)} pieces, {len(pieces) - len(todo)} done before", flush=True)
        for name, piece in todo:
            started = time.monotonic()
            job.seed = seeds.fresh()
            job.say(f"== {name}, seed {job.seed}")
            failed_before = job.tally.failed
            try:
                piece(job)
            except Skip as reason:
                job.skip_check(name, str(reason))
            except (Failed, OSError, subprocess.SubprocessError) as problem:
                job.check(name, str(problem))
            good = job.tally.failed == failed_before
            print(
                f"   {name}, seed {job.seed}: {'passed' if good else 'FAILED'} in "
                f"{(time.monotonic() - started) / 60:.1f} min",
                flush=True,
            )
            if good:
                progress.add(name)
            else:
                for line in job.tail():
                    print(f"   | {line}")
        passed += job.tally.passed
        failed += job.tally.failed
        skipped += len(job.tally.skips)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


def commit():
    """The commit that is checked out; empty when this is no clone."""
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()


class Progress:
    """Which pieces of a stage have passed on the commit that is checked out."""

    def __init__(self, stage, again):
        self.path = TOOLS / "long" / f"{stage}.json"
        self.commit = commit()
        if again:
            self.path.unlink(missing_ok=True)
        self.done = self.kept()

    def kept(self):
        """What the file has for this commit."""
        kept = json.loads(self.path.read_text()) if self.path.exists() else {}
        return kept["done"] if kept.get("commit") == self.commit else []

    def add(self, name):
        """Records a piece, with those of other runs; the file is replaced whole, so that an interrupted run leaves
        the old one."""
        self.done += [name, *(other for other in self.kept() if other not in self.done)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({"commit": self.commit, "done": self.done}, indent=1))
        fresh.replace(self.path)
