"""Every test of the workspace, under the test profile (optimised a little, with assertions and overflow checks).

The long form has what takes too much memory or time for each change, by a variable that the test reads."""

import workspace
from job import Job, Stage


def run(job: Job):
    job.command(["cargo", "test", *workspace.TESTED, "--no-fail-fast"], name="cargo test", counts=True)
    # A feature that the server does not use.
    job.command(["cargo", "test", "--locked", "-p", "onggi-plex", "--features", "tracing", "--test", "spans"],
                name="spans of plex", counts=True)


def tables_of_a_terabyte(job):
    """The choice of a merge among a million tables, and their open, as small tables of a terabyte would be; some
    gigabytes of memory."""
    for test in ["a_choice_costs_what_changed", "an_open_reads_no_tables_of_a_large_database"]:
        job.command(
            ["cargo", "test", "--locked", "-p", "onggi-plex", "--lib", test],
            name=f"a million tables: {test}", env={"PLEX_TABLES": "1000000"}, counts=True,
        )


def many_calls(job):
    """Random calls of plex against a sorted map, across policies and options."""
    job.command(
        ["cargo", "test", "--locked", "-p", "onggi-plex", "--test", "model", "random_operations"],
        name="20 million calls of plex", env={"PLEX_CALLS": "20000000"}, counts=True,
    )


def pieces(_job):
    return [("a million tables", tables_of_a_terabyte), ("20 million calls of plex", many_calls)]


STAGE = Stage("unit", "the tests of every crate", run, pieces)
