"""Counts of checks, and how they are read from what a program prints.

Two notations are understood, line by line:

    test base::glob ... ok                    cargo test (with `FAILED`, and `ignored, REASON` for a skip)
    ok - NAME / not ok - NAME: REASON         every other program of ours, in any language
    ok - NAME # SKIP REASON
    not ok - NAME: REASON # MEASURED          a wait or resident memory was beyond its bound, and nothing else was wrong

A program that ends with a non-zero status without a failed check counts as one failed check.
"""

import re
from dataclasses import dataclass, field

CARGO = re.compile(r"^test (?P<name>\S.*?) \.\.\. (?P<result>ok|FAILED|ignored)(?:, (?P<reason>.*))?$")
PLAIN = re.compile(r"^(?P<result>ok|not ok) - (?P<name>.*?)(?: # SKIP (?P<reason>.*))?$")
MEASURED = " # MEASURED"


@dataclass
class Tally:
    """What a stage found. `skips` holds (check, reason). `measured` counts those of the failed checks that only measure
    waits or resident memory, which other work on the machine can spoil."""

    passed: int = 0
    failed: int = 0
    measured: int = 0
    skips: list = field(default_factory=list)

    def read(self, line):
        """Counts `line` if it reports a check; says whether it reported a failed one."""
        found = CARGO.match(line) or PLAIN.match(line)
        if not found:
            return False
        result, reason = found["result"], found["reason"]
        if result == "ignored" or (result == "ok" and reason):
            self.skips.append((found["name"], reason or "no reason given"))
        elif result == "ok":
            self.passed += 1
        else:
            self.failed += 1
            self.measured += int(result == "not ok" and line.endswith(MEASURED))
            return True
        return False

    def add(self, other):
        """Adds the counts of `other`."""
        self.passed += other.passed
        self.failed += other.failed
        self.measured += other.measured
        self.skips += other.skips
