"""Tests of the runner itself: a runner that cannot count a failure makes every stage worthless."""

import io
import unittest
from contextlib import redirect_stdout
from unittest.mock import patch

import __main__ as runner
import long_run
import may_skip
from job import Failed, Job, Skip, Stage
from tally import Tally


class Counting(unittest.TestCase):
    """Lines of programs become counts."""

    def test_lines(self):
        tally = Tally()
        for line in ("test a::b ... ok", "test c ... FAILED", "test d ... ignored, no loop device", "ok - one",
                     "not ok - two: why", "ok - three # SKIP no root", "ok, fine", "test result: ok. 1 passed"):
            tally.read(line)
        self.assertEqual((tally.passed, tally.failed), (2, 2))
        self.assertEqual(tally.skips, [("d", "no loop device"), ("three", "no root")])


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
            (lambda job: job.command(["sh", "-c", "echo 'ok - x'; exit 3"], counts=True), (1, "1 passed, 1 failed, 0 skipped")),
            (lambda job: job.command(["sh", "-c", "echo 'not ok - x: y'; exit 3"], counts=True), (1, "0 passed, 1 failed, 0 skipped")),
            (lambda job: job.command(["sleep", "60"], timeout=0.2), (1, "0 passed, 1 failed, 0 skipped")),
            (lambda job: None, (1, "0 passed, 1 failed, 0 skipped")),
        ):
            self.assertEqual(self.outcome(body), expected)

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


class LongRuns(unittest.TestCase):
    """A long run goes on where it stopped, on the same commit, and repeats what failed."""

    def test_progress(self):
        ran = []

        def piece(name, problem=None):
            def body(job):
                ran.append(name)
                job.check(name, problem)
            return name, body

        def once(pieces, again=False):
            ran.clear()
            stage = Stage("self-test-long", "a long stage of the self test", pieces=lambda _job: pieces)
            with redirect_stdout(io.StringIO()):
                status = long_run.run([stage], again=again, verbose=False)
            return status, list(ran)

        good = [piece("a"), piece("b", "broken"), piece("c")]
        self.assertEqual(once(good, again=True), (1, ["a", "b", "c"]))
        self.assertEqual(once([piece("a"), piece("b"), piece("c")]), (0, ["b"]))
        self.assertEqual(once([piece("a"), piece("b"), piece("c"), piece("d")]), (0, ["d"]))
        self.assertEqual(once(good[:1], again=True), (0, ["a"]))
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
