"""The skips that continuous integration accepts: tests/may_skip, one `STAGE: REGEX OF THE REASON` a line."""

import re

from job import ROOT

PATH = ROOT / "tests" / "may_skip"


def rules():
    """The list as (stage, compiled pattern)."""
    return parse(PATH.read_text())


def parse(text):
    """The rules of a text in the form of the list."""
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        stage, colon, pattern = line.partition(":")
        if not colon:
            raise SystemExit(f"{PATH}:{number}: expected `STAGE: REASON PATTERN`, found {line!r}")
        out.append((stage.strip(), re.compile(pattern.strip())))
    return out


def refused(stage, skips, allowed):
    """Of a stage's (check, reason) skips, those that no rule allows."""
    return [(check, reason) for check, reason in skips
            if not any(name == stage and pattern.search(reason) for name, pattern in allowed)]
