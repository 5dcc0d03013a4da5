"""The page in a headless Chromium, with axe-core, and /metrics in the parsers of Prometheus' client library; see
tests/page/."""

import need
from job import ROOT, Job, Stage
from stages.clients import system_certificates

HOME = ROOT / "tests" / "page"
SECONDS_MAX = 600


def run(job: Job):
    npm, chromium = need.program("npm", "npm"), need.program("chromium", "chromium")
    job.build([npm, "ci", "--silent", "--no-audit", "--no-fund", "--prefix", HOME],
              env=system_certificates())
    axe = HOME / "node_modules" / "axe-core" / "axe.min.js"
    python = need.python_environment() / "python"
    job.command([python, "main.py", "--axe", axe, "--chromium", chromium], name="the page and the metrics", cwd=HOME,
                timeout=SECONDS_MAX, counts=True, env={"PYTHONPATH": str(ROOT / "tests" / "runner")})


STAGE = Stage("page", "the page in Chromium, and /metrics in the parsers of Prometheus", run)
