"""Modes of redis-cli, and of `onggi cli`, that walk the keys or watch the server: --scan, --bigkeys, --memkeys,
--hotkeys, --stat, --latency, --lru-test."""

import re
import subprocess


def run(t):
    def scan():
        keys = t.cli("--scan", "--pattern", "mass:9999*").split()
        t.equal(sorted(keys), sorted(f"mass:9999{n}" for n in [""] + list(range(10))))
        every = t.cli("--scan").splitlines()
        t.equal(len(every), len(set(every)), "a key was met twice")
        t.equal(len(every), int(t.cli("DBSIZE")))

    def bigkeys():
        t.cli("SET", "the big one", "x" * 10_000)
        out = t.cli("--bigkeys")
        total = int(t.cli("DBSIZE"))
        t.matches(rf"Sampled {total} keys in the keyspace!", out)
        t.matches(r'Biggest string found \'"the big one"\' has 10000 bytes', out)
        t.matches(rf"^{total} strings with \d+ bytes \(100\.00% of keys", out)

    def memkeys():
        out = t.cli("--memkeys")
        t.matches(rf"Sampled {int(t.cli('DBSIZE'))} keys in the keyspace!", out)
        found = t.matches(r'Biggest string found \'"the big one"\' has (\d+) bytes', out)
        t.equal(10_000 < int(found[1]) < 20_000, True, found[0])

    def hotkeys():
        t.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        try:
            t.cli("SET", "hot", "x")
            t.cli("-r", "200", "GET", "hot")
            out = t.cli("--hotkeys")
            t.matches(r'hot key found with counter: \d+\s+keyname: "?hot"?', out)
        finally:
            t.cli("CONFIG", "SET", "maxmemory-policy", "noeviction")
        t.matches(r"LFU maxmemory policy is not selected", t.cli("--hotkeys", status=1))

    def stat():
        process = t.start("--stat", "-i", "0.05")
        try:
            lines = [process.stdout.readline() for _ in range(7)]
        finally:
            process.kill()
            process.wait()
        t.matches(r"^keys +mem +clients +blocked +requests +connections", lines[1])
        rows = [re.match(r"^(\d+) +([\d.]+[BKMG]) +(\d+) +(\d+) +(\d+) (\(\+\d+\)) +(\d+)", line) for line in lines[2:]]
        t.equal(all(rows), True, lines)
        t.equal({row[1] for row in rows}, {t.cli("DBSIZE").strip()})
        requests = [int(row[5]) for row in rows]
        t.equal(requests, sorted(requests))
        t.equal(requests[-1] > requests[0], True, requests)

    def latency():
        low, high, average, samples = t.cli("--raw", "--latency", "-i", "0.5").split()
        t.equal(0 <= float(low) <= float(average) <= float(high), True)
        t.equal(int(samples) > 0, True, samples)

    def latency_history():
        process = t.start("--raw", "--latency-history", "-i", "0.2")
        try:
            rows = [process.stdout.readline().split() for _ in range(3)]
        finally:
            process.kill()
            process.wait()
        t.equal([len(row) >= 4 for row in rows], [True] * 3, rows)

    def first_lines(count, *words):
        process = t.start(*words)
        try:
            return [process.stdout.readline().rstrip("\n") for _ in range(count)]
        finally:
            process.kill()
            process.wait()

    def latency_dist():
        lines = first_lines(9, "--latency-dist", "-i", "0.1")
        t.equal([lines[0], lines[7]], ["-" * 45] * 2, lines)
        t.equal(lines[3], "A,B,C,D,E        10,20,30,40,50  milliseconds")
        t.equal(lines[6].startswith("From 0 to 100%: \x1b[48;5;0m \x1b[48;5;233m "), True, lines[6])
        # Each class is its colour and its sign; one at least has a share.
        cells = re.findall(r"\x1b\[48;5;(\d+)m(.)", lines[8])
        t.equal("".join(sign for _, sign in cells), ".-*#123456789ABCDEFGHIJKLMNOPQ?", lines[8])
        t.equal({colour for colour, _ in cells} > {"0"}, True, lines[8])
        t.equal(lines[8].startswith("\x1b[38;5;0m") and lines[8].endswith("\x1b[0m"), True, lines[8])

    def lru_test():
        # redis-cli does not flush its rows to a pipe.
        lines = first_lines(2, "--lru-test", "9")
        rows = [re.fullmatch(r"(\d+) Gets/sec \| Hits: (\d+) \(([\d.]+)%\) \| Misses: (\d+) \([\d.]+%\)", line)
                for line in lines]
        t.equal(all(rows), True, lines)
        for row in rows:
            t.equal(int(row[1]), int(row[2]) + int(row[4]))
        # The second row finds what the first has written.
        t.equal(float(rows[1][3]) > 99, True, lines)
        t.cli("DEL", *(f"lru:{number}" for number in range(1, 10)))

    def intrinsic_info():
        info = t.cli("INFO", "everything")
        for part in (
            "# Server", "# Clients", "# Memory", "# Stats", "# Replication", "# CPU", "# Commandstats", "# Keyspace",
        ):
            t.matches(f"^{part}\r?$", info)
        t.matches(rf"^db0:keys={t.cli('DBSIZE').strip()},expires=0,", info)

    for name, body in (
        ("--scan meets every key, by pattern too", scan),
        ("--bigkeys finds the biggest", bigkeys),
        ("--memkeys measures it", memkeys),
        ("--hotkeys finds the hottest", hotkeys),
        ("--stat counts keys and requests", stat),
        ("--latency", latency),
        ("--latency-history", latency_history),
        ("--latency-dist shows a spectrum", latency_dist),
        *([("--lru-test counts hits and misses", lru_test)] if t.name != "redis-cli" else []),
        ("INFO has every section that tools read", intrinsic_info),
    ):
        t.check(f"{t.name}: {name}", body)
