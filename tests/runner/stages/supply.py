"""Crates from outside under cargo-deny: licences, sources, bans, and advisories where their data base can be had. And
the crates that can be published: whether they build from their packages alone, and their examples run.

Only in the long form, since all of it takes minutes to build; licences and sources are also checked by tests/workspace.
"""

import need
from job import ROOT, Job, Stage

CARGO_DENY = "0.20.2"
# Of the workspace, the crates that a registry may have.
PUBLISHED = ["onggi-base", "onggi-vfs", "onggi-plex"]


def deny(job, *what):
    """One of cargo-deny's checks."""
    tool = need.cargo_tool("cargo-deny", CARGO_DENY)
    job.command([tool, "--all-features", "check", *what], name=f"cargo deny check {' '.join(what)}")


def publishing(job):
    """`plex` and what it needs, as a registry would have them."""
    packages = [word for crate in PUBLISHED for word in ("-p", crate)]
    job.command(["cargo", "package", "--locked", "--allow-dirty", *packages], name="cargo package")
    for example in sorted((ROOT / "crates/storage/plex/examples").glob("*.rs")):
        job.command(["cargo", "run", "--locked", "-p", "onggi-plex", "--example", example.stem],
                    name=f"plex: the example {example.stem}")


def pieces(_job):
    checks = [(what, lambda job, what=what: deny(job, what)) for what in ("licenses", "sources", "bans")]
    return [*checks, ("publishing", publishing)]


STAGE = Stage("supply", "licences, sources and bans of crates from outside; packages of those that can be published",
              pieces=pieces)
