"""ThreadSanitizer: the threaded tests of crates that ask with `[package.metadata.checks] tsan = [...]`.

The standard library is built anew with the sanitizer, so that its locks and channels are seen for what they are.
"""

import platform

import need
import workspace
from job import TARGET, Job, Skip, Stage

SECONDS_MAX = 900


def tsan(job, package, arguments):
    """The crate's tests under the sanitizer."""
    need.nightly("rust-src")
    if platform.machine() != "x86_64":
        raise Skip(f"ThreadSanitizer is set up for x86_64, not {platform.machine()}")
    job.command(
        [
            "cargo", "+nightly", "test", "--locked", "-Zbuild-std", "--target", "x86_64-unknown-linux-gnu", "-p",
            package, *arguments,
        ],
        name=package, timeout=SECONDS_MAX, counts=True,
        env={
            "RUSTFLAGS": "-Zsanitizer=thread",
            "TSAN_OPTIONS": "halt_on_error=1",
            "CARGO_TARGET_DIR": str(TARGET / "tsan"),
            "CARGO_INCREMENTAL": "0",  # it would keep gigabytes for builds that are rare
        },
    )


def run(job: Job):
    for package, arguments in workspace.checks("tsan"):
        tsan(job, package, arguments)


def pieces(_job):
    return [(f"{package}, time {repeat}", lambda job, p=package, a=arguments: tsan(job, p, a))
            for repeat in range(1, 101) for package, arguments in workspace.checks("tsan")]


STAGE = Stage(
    "tsan", "threaded tests under ThreadSanitizer", run, pieces, present=lambda: bool(workspace.checks("tsan"))
)
