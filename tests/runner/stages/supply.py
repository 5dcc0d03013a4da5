"""Crates from outside under cargo-deny: licences, sources, bans, and advisories where their data base can be had.

Only in the long form, since the tool takes minutes to build; licences and sources are also checked by tests/workspace.
"""

import need
from job import Job, Stage

CARGO_DENY = "0.20.2"


def deny(job, *what):
    """One of cargo-deny's checks."""
    tool = need.cargo_tool("cargo-deny", CARGO_DENY)
    job.command([tool, "--all-features", "check", *what], name=f"cargo deny check {' '.join(what)}")


def pieces(_job):
    return [(what, lambda job, what=what: deny(job, what)) for what in ("licenses", "sources", "bans")]


STAGE = Stage("supply", "licences, sources and bans of crates from outside", pieces=pieces)
