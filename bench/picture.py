#!/usr/bin/env python3
"""Draws docs/performance.svg from kept results: what Valkey and Redis cost, with Onggi as 1.

    python3 bench/picture.py            # writes the picture
    python3 bench/picture.py --check    # exit code 1 if the picture is not what the results give

Each bar names the kept result, the section and the row that it shows, so a new result changes the picture.
"""

import json
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "performance.svg"

BY_MODE = "CPU time per operation, by mode of the log"

# Label, kept result, title of the section, title of the row.
BARS = [
    ("GET, pipeline 16: CPU", "2026-11-23-strings", "CPU time per operation", "get, pipeline 16, 64 B"),
    ("SET, pipeline 16: CPU", "2026-11-23-strings", "CPU time per operation", "set, pipeline 16, 64 B"),
    ("SET, log every second: CPU", "2026-11-25-log", BY_MODE, "SET, pipeline 16, log async"),
    ("SET, log always: CPU", "2026-11-25-log", BY_MODE, "SET, pipeline 16, log sync"),
    ("Overhead per key of 16 B", "2026-11-25-memory", "Memory per key beyond key and value", "16 B values"),
    ("Checkpoint of 2.5 GB: CPU", "2026-11-24-snapshot", "CPU time of a checkpoint", "random data"),
    ("Restart with 2.5 GB: time", "2026-11-24-snapshot", "Time of a restart", "random data"),
]
SERVERS = [("onggi", "Onggi", "#2f7d5b"), ("valkey", "Valkey 9.1", "#8aa4c8"), ("redis", "Redis 7.0", "#c9b08a")]
LONGEST = 10.0
LABEL_WIDTH, BAR_WIDTH, BAR_HEIGHT, GAP = 230, 430, 12, 14


def costs(result, section_title, row_title):
    """The median of each server in one row of a kept result."""
    kept = json.loads((ROOT / "bench" / "results" / result / "results.json").read_text())
    sections = [section for section in kept["sections"] if section["title"] == section_title]
    rows = [row for section in sections for row in section["rows"] if row["title"] == row_title]
    if len(rows) != 1:
        raise SystemExit(f"{result}: {len(rows)} rows {row_title!r} in sections {section_title!r}, expected 1")
    return {cell["server"]: cell["value"]["median"] for cell in rows[0]["cells"]}


def draw():
    """The whole picture as text."""
    group = len(SERVERS) * BAR_HEIGHT + GAP
    height = 58 + group * len(BARS) + 26
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{height}" viewBox="0 0 720 {height}" '
        'font-family="sans-serif" font-size="12">',
        "<title>What Valkey and Redis cost, with Onggi as 1</title>",
        f'<rect width="720" height="{height}" fill="#ffffff"/>',
        '<text x="12" y="22" font-size="15" font-weight="bold" fill="#222222">'
        "Cost, with Onggi as 1 (shorter is better)</text>",
    ]
    for number, (_, name, colour) in enumerate(SERVERS):
        x = LABEL_WIDTH + 110 * number
        parts.append(f'<rect x="{x}" y="34" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 15}" y="43" fill="#222222">{name}</text>')
    for number, (label, result, section, row) in enumerate(BARS):
        top = 58 + group * number
        of = costs(result, section, row)
        left = LABEL_WIDTH - 10
        parts.append(f'<text x="{left}" y="{top + 22}" text-anchor="end" fill="#222222">{escape(label)}</text>')
        for place, (server, _, colour) in enumerate(SERVERS):
            times = of[server] / of["onggi"]
            width = round(BAR_WIDTH * min(times, LONGEST) / LONGEST, 1)
            y = top + BAR_HEIGHT * place
            right = round(LABEL_WIDTH + width + 5, 1)
            bar = f'width="{width}" height="{BAR_HEIGHT - 2}" fill="{colour}"'
            parts.append(f'<rect x="{LABEL_WIDTH}" y="{y}" {bar}/>')
            parts.append(f'<text x="{right}" y="{y + 9}" font-size="10" fill="#444444">{times:.2f}</text>')
    parts.append(f'<text x="12" y="{height - 10}" font-size="10" fill="#666666">AMD EPYC, 2 cores; compression off, '
                 "and the log off unless named; from bench/results by bench/picture.py</text>")
    return "\n".join([*parts, "</svg>", ""])


def main():
    picture = draw()
    if sys.argv[1:] == ["--check"]:
        if PICTURE.read_text() != picture:
            raise SystemExit("docs/performance.svg is not what the kept results give; run python3 bench/picture.py")
    elif not sys.argv[1:]:
        PICTURE.write_text(picture)
    else:
        raise SystemExit("usage: python3 bench/picture.py [--check]")


if __name__ == "__main__":
    main()
