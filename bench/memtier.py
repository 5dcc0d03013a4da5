#!/usr/bin/env python3
"""GET and SET next to Valkey's, by memtier_benchmark and by `onggi bench run`, which show different ratios.

    python3 bench/memtier.py --onggi target/release/onggi --valkey valkey-server --memtier memtier_benchmark

A million keys with values of 64 bytes, 50 connections of one thread, both servers without log and saves, Onggi with one
worker and without compression. The servers take turns in each round. Shown are the user and system time of the server
for a command, and how many commands it got by one read: by its own counters in INFO. memtier_benchmark runs twice, with
its default, where all connections draw the same keys in the same order, and with a seed for each connection.
"""

import argparse
import re
import statistics
import subprocess

from scripts import Server, ask

KEYS, VALUE_BYTES, CONNECTIONS, SECONDS = 1_000_000, 64, 50, 3
# With the number, about the 16 bytes of a key of `onggi bench run`.
KEY_PREFIX = "key:000000"
SEEDS = ["--distinct-client-seed", "--randomize"]


def counters(server):
    """Commands, and reads of sockets, since the server began."""
    with server.connect() as connection:
        text = ask(connection, ["INFO", "stats"])
    names = ("total_commands_processed", "total_reads_processed")
    return [int(re.search(rf"\r\n{name}:(\d+)".encode(), text).group(1)) for name in names]


def by_memtier(memtier, extra):
    def command(server, test, pipeline):
        return [memtier, "-s", "127.0.0.1", "-p", str(server.port), "-c", str(CONNECTIONS), "-t", "1", *extra,
                "--pipeline", str(pipeline), "--ratio", "1:0" if test == "set" else "0:1", "--key-pattern", "R:R",
                "--key-minimum", "1", "--key-maximum", str(KEYS), "--key-prefix", KEY_PREFIX,
                "-d", str(VALUE_BYTES), "--test-time", str(SECONDS), "--hide-histogram"]
    return command


def by_onggi(onggi, extra=("--no-load",)):
    def command(server, test, pipeline):
        return [onggi, "bench", "run", "--addr", f"127.0.0.1:{server.port}", "--test", test,
                "--pipeline", str(pipeline), "--seconds", str(SECONDS), "--keys", str(KEYS),
                "--value-size", str(VALUE_BYTES), "--connections", str(CONNECTIONS), *extra]
    return command


def fill(server, memtier, onggi):
    """Every key of both generators: `onggi bench run` writes its own before it reads them, if it may."""
    words = [word if word != "R:R" else "P:P" for word in by_memtier(memtier, [])(server, "set", 64)]
    seconds = words.index("--test-time")
    words[seconds:seconds + 2] = ["-n", "allkeys"]
    words[words.index("-c") + 1] = "1"
    for command in (words, by_onggi(onggi, [])(server, "get", 64)):
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def measure(server, words):
    """Microseconds of CPU for a command, and commands of one read."""
    commands, reads = counters(server)
    begun = server.cpu_seconds()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    spent = server.cpu_seconds() - begun
    commands_after, reads_after = counters(server)
    commands = commands_after - commands
    return spent / commands * 1e6, commands / (reads_after - reads)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onggi", required=True)
    parser.add_argument("--valkey", required=True)
    parser.add_argument("--memtier", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    servers = {"Onggi": Server([options.onggi, "--workers", "1", "--compression", "off"]),
               "Valkey": Server([options.valkey])}
    generators = {"memtier_benchmark": by_memtier(options.memtier, []),
                  "memtier_benchmark, a seed for each connection": by_memtier(options.memtier, SEEDS),
                  "onggi bench": by_onggi(options.onggi)}
    for server in servers.values():
        fill(server, options.memtier, options.onggi)
    print("| Generator | Command | Pipeline | Onggi, us CPU | Valkey | Valkey / Onggi "
          "| commands of a read: Onggi | Valkey |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for test in ("get", "set"):
        for pipeline in (1, 16, 64):
            for name, generator in generators.items():
                seen = {server: [] for server in servers}
                for turn in range(options.rounds):
                    for server in sorted(servers, reverse=turn % 2 == 0):
                        seen[server].append(measure(servers[server], generator(servers[server], test, pipeline)))
                (cpu, batch), (peer_cpu, peer_batch) = (
                    map(statistics.median, zip(*seen[server])) for server in ("Onggi", "Valkey"))
                print(f"| {name} | {test.upper()} | {pipeline} | {cpu:.2f} | {peer_cpu:.2f} | {peer_cpu / cpu:.2f} "
                      f"| {batch:.1f} | {peer_batch:.1f} |", flush=True)
    for server in servers.values():
        server.end()


if __name__ == "__main__":
    main()
