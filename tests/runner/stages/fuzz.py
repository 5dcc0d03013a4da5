"""Fuzzing: every target of fuzz/ for the same inputs each time, two targets at a time. The long form gives each an hour
in pieces of a minute, each from a fresh seed.

Inputs found in the long form stay in `target/fuzz-corpus/TARGET`, so that the next run starts where this one ended; the
short form starts from nothing, so that the same tree gives the same verdict. A failing input is in
`fuzz/artifacts/TARGET`. Inputs that once failed belong into `fuzz/seeds/TARGET`, which every run starts from.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import need
from job import ROOT, TARGET, Job, Stage

CARGO_FUZZ = "0.13.2"
# About half a minute each on a machine with two cores; a file that is loaded, written back and loaded again costs most.
RUNS = {"acl": 40_000, "config_file": 1_000, "function_restore": 15_000, "lua": 30_000}
RUNS_OF_OTHERS = 110_000
SECONDS_MAX = 120
SECONDS = 60
# A parser that needs more time for an input of 4 KiB is broken, not slow; a busy machine does not make a second ten.
INPUT_SECONDS_MAX = 10
PIECES = 60
MEMORY_MB_MAX = 512
HOME = ROOT / "fuzz"


def prepare(job):
    """Builds all targets; returns their names."""
    need.nightly("rust-src")
    need.program("c++", "g++")
    tool = need.cargo_tool("cargo-fuzz", CARGO_FUZZ)
    environment = {"CARGO_TARGET_DIR": str(TARGET / "fuzz")}
    job.build([tool, "fuzz", "build", "--fuzz-dir", HOME], env={**environment, "RUSTUP_TOOLCHAIN": "nightly"})
    return job.build([tool, "fuzz", "list", "--fuzz-dir", HOME]).split()


def fuzz(job, target, runs, seconds, corpus):
    """One target from the job's seed, for this many inputs, at most this many seconds."""
    artifacts = HOME / "artifacts" / target
    seeds = HOME / "seeds" / target
    for directory in (corpus, artifacts):
        directory.mkdir(parents=True, exist_ok=True)
    program = TARGET / "fuzz" / "x86_64-unknown-linux-gnu" / "release" / target
    job.command(
        [
            program,
            corpus,
            *([seeds] if seeds.exists() else []),
            f"-seed={job.seed}", f"-runs={runs}", f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS_MAX}",
            f"-rss_limit_mb={MEMORY_MB_MAX}", f"-artifact_prefix={artifacts}/", "-print_final_stats=1",
        ],
        name=f"{target} from seed {job.seed}",
        timeout=seconds + 120,
    )


def run(job: Job):
    targets = prepare(job)
    with TemporaryDirectory(prefix="onggi-fuzz-") as fresh, ThreadPoolExecutor(max_workers=2) as pool:
        for done in [pool.submit(fuzz, job, target, RUNS.get(target, RUNS_OF_OTHERS), SECONDS_MAX, Path(fresh) / target)
                     for target in targets]:
            done.result()


def pieces(job):
    return [(f"{target}, minute {minute}", lambda job, t=target: fuzz(job, t, -1, SECONDS, TARGET / "fuzz-corpus" / t))
            for minute in range(1, PIECES + 1) for target in prepare(job)]


STAGE = Stage(
    "fuzz", "parsers and formats against random input", run, pieces, present=lambda: (HOME / "Cargo.toml").exists()
)
