"""Runs the tools and reports checks as `ok - NAME` or `not ok - NAME: REASON`."""

import os
import re
import subprocess

SECONDS_MAX = 60


class Tools:
    """The tools, set up for one server."""

    name = "redis-cli"

    def __init__(self, host, port, password, unix):
        self.host, self.port, self.password, self.unix = host, port, password, unix
        self.environment = dict(os.environ, REDISCLI_AUTH=password, LC_ALL="C.UTF-8", TERM="xterm")
        self.failed = 0

    def check(self, name, body):
        """Runs `body`; what it raises is the failure."""
        try:
            body()
            print(f"ok - {name}", flush=True)
        except Exception as problem:
            self.failed += 1
            print(f"not ok - {name}: {type(problem).__name__}: {str(problem)[:500]}", flush=True)

    def argv(self, *arguments):
        """The command line of redis-cli."""
        return ["redis-cli", "-h", self.host, "-p", self.port, *[str(a) for a in arguments]]

    def cli(self, *arguments, stdin=b"", status=0):
        """What redis-cli prints (both streams)."""
        done = subprocess.run(self.argv(*arguments), input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=self.environment, timeout=SECONDS_MAX)
        text = done.stdout.decode("utf-8", "backslashreplace")
        self.equal(done.returncode, status, text)
        return text

    def start(self, *arguments):
        """redis-cli as a process whose output is read line by line."""
        return subprocess.Popen(self.argv(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env=self.environment, text=True)

    @staticmethod
    def equal(got, expected, context=""):
        """Fails unless the two are equal."""
        if got != expected:
            raise AssertionError(f"got {got!r}, expected {expected!r} {context}")

    @staticmethod
    def matches(pattern, text):
        """The match of a regular expression in the text; fails when there is none."""
        found = re.search(pattern, text, re.MULTILINE)
        if not found:
            raise AssertionError(f"{pattern!r} is not in {text!r}")
        return found
