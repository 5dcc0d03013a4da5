"""Tests of the runner itself: a runner that cannot count a failure makes every stage worthless."""

import io
import os
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

TESTS = Path(__file__).resolve().parent.parent
sys.path += [str(TESTS / "big-collections"), str(TESTS / "bad-input")]

import __main__ as runner
import areas
import long_run
import may_skip
import seeds
import stuck
from job import Failed, Job, Skip, Stage
from stages import instructions
from tally import Tally
from turns import again, slow_parts


class Counting(unittest.TestCase):
    """Lines of programs become counts."""

    def test_lines(self):
        tally = Tally()
        for line in ("test a::b ... ok", "test c ... FAILED", "test d ... ignored, no loop device", "ok - one",
                     "not ok - two: why", "ok - three # SKIP no root", "ok, fine", "test result: ok. 1 passed"):
            tally.read(line)
        self.assertEqual((tally.passed, tally.failed), (2, 2))
        self.assertEqual(tally.skips, [("d", "no loop device"), ("three", "no root")])


class Areas(unittest.TestCase):
    """Two folders of tests may have modules of one name, which differ in what they import."""

    def test_one_name(self):
        with tempfile.TemporaryDirectory() as directory:
            for area in ("first", "second"):
                home = Path(directory, area)
                home.mkdir()
                (home / "told_by_neighbour.py").write_text(f"NAME = {area!r}\n")
                (home / "of_one_name.py").write_text("from told_by_neighbour import NAME\n")
            names = [areas.module(Path(directory, area), "of_one_name").NAME for area in ("first", "second", "first")]
            self.assertEqual(names, ["first", "second", "first"])


class Turns(unittest.TestCase):
    """What is slow in every run is distinguished from what is slow in one."""

    def test_stretches(self):
        self.assertEqual(slow_parts([(1, 1), (9, 9), (5, 50), (6, 6)], 5), ([0.25, 0.75], 0.25))

    def test_what_comes_again(self):
        long = 0.001
        for runs, is_slow in (
            ([([], 1)], False),
            ([([0.5], 1)], True),
            # A short step has one stretch: the least of all runs.
            ([([0], 1), ([], 1), ([0], 1)], False),
            ([([0], 1), ([0], 1), ([0], 1)], True),
            # Far from each other, and near each other.
            ([([0.5], long), ([0.6], long)], False),
            ([([0.2, 0.5], long), ([0.52, 0.9], long)], True),
            # Too often, though never at the same moment.
            ([([at / 100 for at in range(10)], 0.01), ([at / 100 for at in range(50, 53)], 0.01)], True),
        ):
            self.assertEqual(again(runs) is not None, is_slow, runs)


class Stages(unittest.TestCase):
    """Whatever a stage does, its outcome is counted."""

    def outcome(self, body, environment=None, pending=None, named=False):
        out = io.StringIO()
        stage = Stage("self-test-inner", "a stage of the self test", body, pending=pending)
        with redirect_stdout(out), patch.dict("os.environ", {"CI": "false", **(environment or {})}):
            status = runner.run([stage], verbose=False, named=named)
        return status, out.getvalue().splitlines()[-1]

    def test_outcomes(self):
        def raises(problem):
            def body(_job):
                raise problem
            return body

        for body, expected in (
            (lambda job: job.check("a"), (0, "1 passed, 0 failed, 0 skipped")),
            (lambda job: job.check("a", "line one\nline two"), (1, "0 passed, 1 failed, 0 skipped")),
            (raises(Failed("a\nb")), (1, "0 passed, 1 failed, 0 skipped")),
            (raises(OSError("gone")), (1, "0 passed, 1 failed, 0 skipped")),
            (lambda job: job.command(["true"]), (0, "1 passed, 0 failed, 0 skipped")),
            (lambda job: job.command(["false"]), (1, "0 passed, 1 failed, 0 skipped")),
            (
                lambda job: job.command(["sh", "-c", "echo 'ok - x'; exit 3"], counts=True),
                (1, "1 passed, 1 failed, 0 skipped"),
            ),
            (
                lambda job: job.command(["sh", "-c", "echo 'not ok - x: y'; exit 3"], counts=True),
                (1, "0 passed, 1 failed, 0 skipped"),
            ),
            (lambda job: job.command(["sleep", "60"], timeout=0.2), (1, "0 passed, 1 failed, 0 skipped")),
            (lambda job: None, (1, "0 passed, 1 failed, 0 skipped")),
        ):
            self.assertEqual(self.outcome(body), expected)

    def test_failures_are_said_again_at_the_end(self):
        said = "echo 'test a::b ... FAILED'; echo \"thread 'a::b' (7) panicked at b.rs:1:2:\"; echo 'no four'; exit 1"
        out = io.StringIO()
        stage = Stage(
            "self-test-inner", "a stage of the self test", lambda job: job.command(["sh", "-c", said], counts=True)
        )
        with redirect_stdout(out), patch.dict("os.environ", {"CI": "false"}):
            runner.run([stage], verbose=False, named=False)
        self.assertEqual(out.getvalue().splitlines()[-3:], [
            "self-test-inner: test a::b ... FAILED",
            "self-test-inner: thread 'a::b' (7) panicked at b.rs:1:2: no four",
            "0 passed, 1 failed, 0 skipped"])

    def test_only_measurements_have_a_second_try(self):
        def outcome(*tries):
            left = list(tries)

            def body(job):
                job.command(["sh", "-c", f"echo 'ok - a'; {left.pop(0)}"], counts=True)

            out = io.StringIO()
            stage = Stage("self-test-inner", "a stage of the self test", body)
            with redirect_stdout(out), patch.dict("os.environ", {"CI": "false"}):
                status = runner.run([stage], verbose=False, named=False)
            return status, out.getvalue(), len(tries) - len(left)

        good, slow, lost = (
            "echo 'ok - b'", "echo 'not ok - b: 9 ms # MEASURED'; exit 1", "echo 'not ok - c: a key is lost'; exit 1",
        )
        both, silent = f"echo 'not ok - b: 9 ms # MEASURED'; {lost}", "exit 3"
        for tries, expected, count, last in (
            ((good,), 0, 1, "2 passed, 0 failed, 0 skipped"),
            ((slow, good), 0, 2, "2 passed, 0 failed, 0 skipped"),
            ((slow, slow), 1, 2, "1 passed, 1 failed, 0 skipped"),
            ((slow, lost), 1, 2, "1 passed, 1 failed, 0 skipped"),
            ((lost, good), 1, 1, "1 passed, 1 failed, 0 skipped"),
            ((both, good), 1, 1, "1 passed, 2 failed, 0 skipped"),
            ((silent, good), 1, 1, "1 passed, 1 failed, 0 skipped"),
        ):
            status, text, ran = outcome(*tries)
            self.assertEqual((status, ran, text.splitlines()[-1]), (expected, count, last))
            self.assertEqual("passed at the second try" in text, tries == (slow, good))
            self.assertEqual("failed twice" in text, count == 2 and status == 1)
            self.assertEqual("not ok - b: 9 ms" in text, "9 ms" in tries[0])
        outcome(slow, good)
        log = Job(Stage("self-test-inner", "reads the log"), after=True).log_path.read_text()
        self.assertIn("not ok - b: 9 ms", log)
        self.assertIn("second try", log)

    def test_pending(self):
        def body(job):
            job.check("a", "broken")

        self.assertEqual(self.outcome(body, pending="no code yet"), (1, "0 passed, 0 failed, 1 skipped"))
        self.assertEqual(self.outcome(body, pending="no code yet", named=True), (1, "0 passed, 1 failed, 0 skipped"))

    def test_skips_in_continuous_integration(self):
        def body(job):
            job.check("a")
            raise Skip("no such machine")

        self.assertEqual(self.outcome(body, {"CI": "false"}), (0, "1 passed, 0 failed, 1 skipped"))
        with patch.object(may_skip, "rules", lambda: []):
            self.assertEqual(self.outcome(body, {"CI": "true"}), (1, "1 passed, 1 failed, 1 skipped"))
        rules = may_skip.parse("self-test-inner: no such .*chine  # why\n")
        with patch.object(may_skip, "rules", lambda: rules):
            self.assertEqual(self.outcome(body, {"CI": "true"}), (0, "1 passed, 0 failed, 1 skipped"))


class Seeds(unittest.TestCase):
    """`make test` draws from one number, a long run from fresh ones, and both from the environment when it has one."""

    def test_seeds(self):
        with patch.dict("os.environ"):
            os.environ.pop(seeds.NAME, None)
            self.assertEqual(seeds.fixed(), seeds.fixed())
            self.assertNotEqual([seeds.fresh() for _ in range(4)], [seeds.fresh() for _ in range(4)])
            os.environ[seeds.NAME] = "12"
            self.assertEqual((seeds.fixed(), seeds.fresh()), (12, 12))

    def test_programs_see_it(self):
        job = Job(Stage("self-test-inner", "a stage of the self test"), seed=34)
        self.assertEqual(job.build(["sh", "-c", f"echo ${seeds.NAME} $PROPTEST_RNG_SEED"]), "34 34\n")


class Stuck(unittest.TestCase):
    """A command that does not end leaves what its threads did."""

    def test_threads(self):
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        try:
            lines = stuck.describe(child.pid)
        finally:
            child.kill()
            child.wait()
        self.assertRegex("\n".join(lines), rf"^{child.pid}/{child.pid} \S+: state [A-Z], in \S+, 0\.\d s of processor$")
        self.assertEqual(stuck.describe(child.pid), [])


class Instructions(unittest.TestCase):
    """A count is judged by its budget, on the compiler of the budgets alone."""

    def test_budgets(self):
        for counted, fails in ((1000, False), (1004, False), (1006, True), (971, False), (969, True)):
            self.assertEqual(instructions.problem(counted, 1000) is not None, fails, counted)

    def test_compiler(self):
        ours = instructions.compiler("rustc 1.95.0 (59807616e 2026-04-14)\nhost: aarch64-unknown-linux-gnu\n")
        self.assertEqual(ours, "rustc 1.95.0 aarch64-unknown-linux-gnu")
        self.assertRaises(Failed, instructions.Budgets.parse, "GET 16 1000\n")

    def test_another_compiler_skips(self):
        other = instructions.Budgets("rustc 1.0.0 x86_64-unknown-linux-gnu", [])
        with patch.object(instructions.Budgets, "parse", lambda _text: other):
            self.assertRaisesRegex(Skip, "the budgets are for rustc 1.0.0", instructions.run, None)


class LongRuns(unittest.TestCase):
    """A long run continues where it stopped, on the same commit, and repeats what failed."""

    def test_progress(self):
        ran = []

        def piece(name, problem=None):
            def body(job):
                ran.append(name)
                job.check(name, problem)
            return name, body

        def once(pieces, again=False, beginning=""):
            ran.clear()
            stage = Stage("self-test-long", "a long stage of the self test", pieces=lambda _job: pieces)
            with redirect_stdout(io.StringIO()):
                status = long_run.run([stage], again=again, verbose=False, beginning=beginning)
            return status, list(ran)

        good = [piece("a"), piece("b", "broken"), piece("c")]
        self.assertEqual(once(good, again=True), (1, ["a", "b", "c"]))
        self.assertEqual(once([piece("a"), piece("b"), piece("c")]), (0, ["b"]))
        self.assertEqual(once([piece("a"), piece("b"), piece("c"), piece("d")]), (0, ["d"]))
        self.assertEqual(once(good[:1], again=True), (0, ["a"]))
        pieces = [piece("one a"), piece("two a"), piece("two b")]
        self.assertEqual(once(pieces, again=True, beginning="two"), (0, ["two a", "two b"]))
        self.assertEqual(once(pieces), (0, ["one a"]))
        with patch.object(long_run, "commit", lambda: "another"):
            self.assertEqual(once(good[:1]), (0, ["a"]))


def run(job: Job):
    """The tests above as checks of a stage."""
    result = unittest.TestResult()
    suite = unittest.defaultTestLoader.loadTestsFromModule(__import__(__name__))
    suite.run(result)
    for test, trace in result.failures + result.errors:
        job.check(str(test), trace)
    for _ in range(result.testsRun - len(result.failures) - len(result.errors)):
        job.check("a test of the runner")
