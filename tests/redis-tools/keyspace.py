"""Modes of redis-cli, and of `onggi cli`, that walk the keys or watch the server: --scan, --bigkeys, --memkeys,
--hotkeys, --stat, --latency."""

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
        ("INFO has every section that tools read", intrinsic_info),
    ):
        t.check(f"{t.name}: {name}", body)
