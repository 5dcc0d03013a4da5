"""Lints and documentation, with every warning an error."""

import need
import workspace
from job import Job, Stage


def run(job: Job):
    need.cargo_component("clippy", "clippy")
    job.command(["cargo", "clippy", "--locked", "--workspace", *workspace.FEATURES, "--all-targets", "--", "-D",
                 "warnings"], name="clippy")
    # Crates with features, without them.
    without = [f"--package=onggi{name}" for name in ("", "-config", "-script", "-server", "-web")]
    job.command(["cargo", "clippy", "--locked", *without, "--no-default-features", "--", "-D", "warnings"],
                name="clippy, without features")
    # The documentation is for those who work on the code, so it may link to what is private.
    job.command(["cargo", "doc", "--locked", "--workspace", *workspace.FEATURES, "--no-deps",
                 "--document-private-items"], name="cargo doc",
                env={"RUSTDOCFLAGS": "-D warnings -A rustdoc::private_intra_doc_links"})


STAGE = Stage("lints", "clippy and rustdoc find nothing", run)
