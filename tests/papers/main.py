"""A checkpoint under load at 256 MB (`papers persistence --part picture`), and a sample of `papers pmem`.

Usage: main.py PAPERS ONGGI. Each check is one line, `ok - NAME` or `not ok - NAME: REASON`.

Judged is what no busy machine changes: that all was measured and drawn, and that clients were served while it was
saved. The figures at full size are in bench/results.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCALE = 0.05
# Steps of 100 ms in a row without an answer; a server that forks is silent for some, one that stops to save for all.
SILENT_STEPS_MAX = 15
SECONDS_MAX = 240


def drawn(papers, onggi, scratch):
    out, place = scratch / "picture", scratch / "picture-data"
    place.mkdir()
    done = subprocess.run(
        [papers, "persistence", "--part", "picture", "--server", "onggi", "--scale", str(SCALE), "--rounds", "1",
         "--seconds", "1", "--directory", place, "--out", out],
        env=os.environ | {"ONGGI_SERVER": onggi}, capture_output=True, text=True, timeout=SECONDS_MAX,
    )
    # 1: a target is missed, which is for an idle machine to say.
    assert done.returncode in (0, 1), f"status {done.returncode}: {done.stderr.strip()}"
    results = json.loads((out / "results.json").read_text())
    pictures = results["pictures"]
    assert len(pictures) == 2, [picture["title"] for picture in pictures]
    for picture in pictures:
        (track,) = picture["tracks"]
        step, begin = track["step_seconds"], -track["from_seconds"]
        steps = track["values"][round(begin / step):round((begin + track["end_seconds"]) / step) + 1]
        silent = longest_silence(steps)
        assert steps and sum(steps) > 0, f"{picture['title']}: no client was served during {track['end_seconds']} s"
        assert silent <= SILENT_STEPS_MAX, f"{picture['title']}: nothing in {silent} steps of {step} s"
    page = (out / "index.html").read_text()
    assert page.count("<svg") >= len(pictures)
    assert all(picture["title"] in (out / "README.md").read_text() for picture in pictures)


def tiered(papers, onggi, scratch):
    out, place, tiers = scratch / "pmem", scratch / "pmem-data", scratch / "pmem-tiers"
    place.mkdir()
    tiers.mkdir()
    done = subprocess.run(
        [papers, "pmem", "--part", "cost", "--server", "onggi", "--scale", "0.01", "--rounds", "1", "--seconds", "0.6",
         "--tier-place", tiers, "--directory", place, "--out", out],
        env=os.environ | {"ONGGI_SERVER": onggi}, capture_output=True, text=True, timeout=SECONDS_MAX,
    )
    assert done.returncode in (0, 1), f"status {done.returncode}: {done.stderr.strip()}"
    cost, over = json.loads((out / "results.json").read_text())["sections"]
    titles = [f"{test}, log {log}, pipeline {pipeline}"
              for log in ("off", "on") for test in ("GET", "SET") for pipeline in (1, 16)]
    assert [row["title"] for row in cost["rows"]] == titles, [row["title"] for row in cost["rows"]]
    for row in cost["rows"]:
        servers = [cell["server"] for cell in row["cells"]]
        assert servers == ["onggi", "onggi-dram"] and all(cell["samples"][0] > 0 for cell in row["cells"]), row
    assert [row["title"] for row in over["rows"]] == titles and all(row["verdict"] for row in over["rows"])
    assert (out / "index.html").read_text().count("<svg") >= len(titles)
    assert not list(tiers.iterdir()), "directories of tiers are left"


def longest_silence(steps):
    """The most steps in a row in which nothing was answered."""
    longest = now = 0
    for value in steps:
        now = now + 1 if value == 0 else 0
        longest = max(longest, now)
    return longest


CHECKS = {
    "the picture of a checkpoint of 256 MB under load is drawn, and clients are served meanwhile": drawn,
    "GET and SET with values in memory and on a tier are measured": tiered,
}


def main():
    papers, onggi = sys.argv[1:]
    failed = 0
    for name, check in CHECKS.items():
        with tempfile.TemporaryDirectory(prefix="onggi-test-") as scratch:
            try:
                check(papers, onggi, Path(scratch))
                print(f"ok - {name}", flush=True)
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"not ok - {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
