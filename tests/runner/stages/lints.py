"""Lints and documentation, with every warning an error."""

import need
from job import Job, Stage


def run(job: Job):
    need.cargo_component("clippy", "clippy")
    job.command(["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"], name="clippy")
    # Crates with a feature for scripts, in a server without them.
    job.command(["cargo", "clippy", "--locked", "--package", "onggi-script", "--package", "onggi-server",
                 "--no-default-features", "--", "-D", "warnings"], name="clippy, without scripts")
    # The documentation is for those who work on the code, so it may link to what is private.
    job.command(["cargo", "doc", "--locked", "--workspace", "--no-deps", "--document-private-items"], name="cargo doc",
                env={"RUSTDOCFLAGS": "-D warnings -A rustdoc::private_intra_doc_links"})


STAGE = Stage("lints", "clippy and rustdoc find nothing", run)
