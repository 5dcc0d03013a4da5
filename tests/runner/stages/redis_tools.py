"""redis-cli, `onggi cli` and redis-benchmark against the server; see tests/redis-tools/. The long form runs Valkey 9.1
as well."""

import need
from job import ROOT, Job, Stage
from servers import Server

HOME = ROOT / "tests" / "redis-tools"
SECONDS_MAX = 300


def against(kind):
    """The function that runs the tools against a fresh server of the kind."""

    def run(job: Job):
        need.apt("redis-tools")
        with Server(kind, password="correct-horse-battery") as server:
            own = [need.onggi()] if kind == "onggi" else []
            job.command(["python3", "main.py", "127.0.0.1", server.port, server.password, server.unix, *own],
                        name=f"redis-tools on {kind}", cwd=HOME, timeout=SECONDS_MAX, counts=True)
            job.check(f"{kind} lives after redis-tools", None if server.alive() else "the server has ended")

    return run


STAGE = Stage("redis-tools", "redis-cli in all its modes, onggi cli, MONITOR, redis-benchmark", against("onggi"),
              lambda _job: [(kind, against(kind)) for kind in ("onggi", "valkey")])
