"""What a stage is, and what it may use while it runs."""

import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional

import seeds
import stuck
from tally import Tally

ROOT = seeds.ROOT
TOOLS = ROOT / ".tools"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
LOGS = TARGET / "test-logs"


class Skip(Exception):
    """Raised by a stage that cannot run here; the text is the reason."""


class Failed(Exception):
    """Raised by a stage whose ground (a tool, a build) failed; the text is the reason."""


@dataclass(frozen=True)
class Stage:
    """One stage. `run` is part of `make test`; `pieces` yields (name, function) for `make test-long`, each piece a
    unit of progress; `present` says whether the tree has what the stage tests. `pending` is the reason why a stage that
    is written ahead of the code is skipped until it is named on the command line; it goes when the code is there."""

    name: str
    purpose: str
    run: Optional[Callable[["Job"], None]] = None
    pieces: Optional[Callable[["Job"], list]] = None
    present: Callable[[], bool] = lambda: True
    pending: Optional[str] = None


class Job:
    """A stage under way: its log, its counts, its seed, and the commands it starts. Several threads may use one. With
    `after`, the job of a first try, the log continues after that one's; a part of the stage has a log of its own."""

    def __init__(self, stage, verbose=False, seed=None, after=None, part=""):
        self.stage = stage
        self.seed = seeds.fixed() if seed is None else seed
        self.tally = Tally()
        self.lock = threading.Lock()
        self.verbose = verbose
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log_path = LOGS / f"{stage.name}{'-' + part.replace(' ', '-').replace('/', '-') if part else ''}.log"
        self.log = open(self.log_path, "w" if after is None else "a", errors="replace")
        self.log_start = self.log_path.stat().st_size

    def say(self, line):
        """One line into the log, and on the screen when asked for."""
        with self.lock:
            self.log.write(line + "\n")
            self.log.flush()
        if self.verbose:
            print(f"    {line}")

    def check(self, name, problem=None):
        """Counts one check made by the stage itself: passed when `problem` is None. It is never a measurement."""
        with self.lock:
            self.tally.add(Tally(passed=int(problem is None), failed=int(problem is not None)))
        self.say(f"ok - {name}" if problem is None else f"not ok - {name}: {problem}")

    def skip_check(self, name, reason):
        """Counts one check that cannot run here."""
        with self.lock:
            self.tally.skips.append((name, reason))
        self.say(f"ok - {name} # SKIP {reason}")

    def command(self, argv, name=None, cwd=ROOT, env=None, timeout=1800, counts=False):
        """Runs a command into the log. With `counts` its output is read for checks (see tally.py); without, or when it
        reports none, its exit status is one check called `name`. Returns the status."""
        argv = [str(a) for a in argv]
        name = name or " ".join(argv[:3])
        self.say(f"$ {' '.join(argv)}")
        seen = Tally()
        deadline = time.monotonic() + timeout
        child = subprocess.Popen(
            argv, cwd=cwd, env=self._environment(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        killer = _kill_at(child, deadline, self.say)
        try:
            for line in child.stdout:
                line = line.rstrip("\n")
                self.say(line)
                if counts:
                    seen.read(line)
            status = child.wait()
        finally:
            timed_out = killer()
        with self.lock:
            self.tally.add(seen)
        if timed_out:
            self.check(name, f"no end after {timeout} s")
        elif status != 0 and seen.failed == 0:
            self.check(name, f"exit status {status}")
        elif status == 0 and seen == Tally():
            self.check(name)
        return status

    def build(self, argv, env=None, cwd=ROOT, timeout=3600, says=True):
        """Runs a command that only prepares: it counts nothing, and its failure ends the stage. Returns its output,
        which is in the log too unless it succeeds and `says` is false."""
        argv = [str(a) for a in argv]
        self.say(f"$ {' '.join(argv)}")
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=self._environment(env),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=timeout,
        )
        for line in done.stdout.splitlines() if says or done.returncode != 0 else ():
            self.say(line)
        if done.returncode != 0:
            raise Failed(f"{' '.join(argv[:4])}: exit status {done.returncode}")
        return done.stdout

    def failures(self):
        """The lines of the log that report a failed check."""
        return [line for line in self.lines() if Tally().read(line)]

    def panics(self, lines=3):
        """Where tests of Rust panicked, each with the first lines of what they said."""
        logged = self.lines()
        return [" ".join(part.strip() for part in logged[at:at + lines])
                for at, line in enumerate(logged) if re.match(r"^thread '.*panicked at ", line)]

    def tail(self, lines=60):
        """The last lines of the log, for a failed stage."""
        return self.lines()[-lines:]

    def lines(self):
        """What this job has logged."""
        with self.lock:
            self.log.flush()
        with open(self.log_path, "rb") as file:
            file.seek(self.log_start)
            return file.read().decode("utf-8", "replace").splitlines()

    def _environment(self, extra):
        """What every command sees: one build directory for all stages, the seed, and no colours in the logs."""
        return {
            **os.environ,
            "CARGO_TARGET_DIR": str(TARGET),
            "CARGO_TERM_COLOR": "never",
            **seeds.environment(self.seed),
            **(extra or {}),
        }


def _kill_at(child, deadline, say):
    """Ends the child's process group at the deadline, and says what its threads did. Returns a function that stops the
    watch and says if it fired."""
    fired = threading.Event()
    stop = threading.Event()

    def watch():
        if not stop.wait(max(0.0, deadline - time.monotonic())):
            fired.set()
            for line in stuck.describe(child.pid):
                say(line)
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()

    def finish():
        stop.set()
        thread.join()
        return fired.is_set()

    return finish
