"""The picture of a checkpoint under load, at 256 MB: `papers persistence --part picture`.

Usage: main.py PAPERS ONGGI. The check is one line, `ok - NAME` or `not ok - NAME: REASON`.

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


def longest_silence(steps):
    """The most steps in a row in which nothing was answered."""
    longest = now = 0
    for value in steps:
        now = now + 1 if value == 0 else 0
        longest = max(longest, now)
    return longest


def main():
    name = "the picture of a checkpoint of 256 MB under load is drawn, and clients are served meanwhile"
    papers, onggi = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="onggi-test-") as scratch:
        try:
            drawn(papers, onggi, Path(scratch))
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            print(f"not ok - {name}: {error}")
            return 1
    print(f"ok - {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
