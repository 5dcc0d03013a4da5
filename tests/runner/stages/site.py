"""The documentation as a site: every page has its place, no link leads nowhere, the search works; see tests/site/."""

import sys

import need
from job import ROOT, TARGET, Job, Stage

HOME = ROOT / "tests" / "site"
SECONDS_MAX = 300


def run(job: Job):
    out = TARGET / "site"
    mdbook, chromium = need.mdbook(), need.program("chromium", "chromium")
    built = job.command([sys.executable, ROOT / "packaging" / "site", out], name="the site is built and its links lead",
                        env={"MDBOOK": str(mdbook)}, timeout=SECONDS_MAX)
    if built == 0:
        job.command([sys.executable, "main.py", "--chromium", chromium, out / "book"], name="the search", cwd=HOME,
                    timeout=SECONDS_MAX, counts=True, env={"PYTHONPATH": str(ROOT / "tests" / "page")})


STAGE = Stage("site", "the documentation as a site: places, links and search", run)
