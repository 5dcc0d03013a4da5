#!/usr/bin/env python3
"""Programs of Onggi with different allocators, next to each other: a big hash and a big sorted set.

    python3 bench/allocators.py [--elements 1000000] [--rounds 3] NAME=PROGRAM...

Each round starts every program in turn, without log and compression. It fills a hash, changes its values to ones of
other lengths, fills a sorted set, changes its scores, deletes nine tenths of both in a random order, and flushes all.
The report gives, as medians of the rounds: nanoseconds of the server's CPU time for each request, the longest turn of a
worker by the clock of its thread, and resident memory above that of the empty server. docs/design/allocators.md says
which programs were built, and how.
"""

import argparse
import os
import random
import statistics
import time

from documents import Server

PIPELINE = 100
SETTLING_SECONDS = 5


def shuffled(count, seed):
    numbers = list(range(count))
    random.Random(seed).shuffle(numbers)
    return numbers


def fields(numbers):
    return ([b"HSET", b"hash", b"field:%010d" % number, b"v" * 64] for number in numbers)


def other_values(numbers):
    lengths = random.Random(3)
    return ([b"HSET", b"hash", b"field:%010d" % number, b"w" * lengths.randrange(1, 200)] for number in numbers)


def members(numbers):
    return ([b"ZADD", b"zset", b"%d" % number, b"member:%010d" % number] for number in numbers)


def other_scores(numbers):
    return ([b"ZADD", b"zset", b"%d.5" % number, b"member:%010d" % (number + 1)] for number in numbers[:-1])


def deletes(numbers):
    for number in numbers[: len(numbers) * 9 // 10]:
        yield [b"HDEL", b"hash", b"field:%010d" % number]
        yield [b"ZREM", b"zset", b"member:%010d" % number]


STEPS = (
    ("HSET, new", fields), ("HSET, other lengths", other_values), ("ZADD, new", members), ("ZADD, moved", other_scores),
    ("HDEL, ZREM", deletes),
)


def run(server, requests):
    """Nanoseconds of CPU a request, and the longest turn in microseconds."""
    server.ask([b"CONFIG", b"RESETSTAT"])
    requests = list(requests)
    before = server.processor_seconds()
    for at in range(0, len(requests), PIPELINE):
        server.ask(*requests[at : at + PIPELINE])
    spent = server.processor_seconds() - before
    return 1e9 * spent / len(requests), longest_turn(server)


def longest_turn(server):
    return int(server.info(b"stats")["longest_turn_cpu_usec"])


def measure(program, elements):
    """What one program does, by figure."""
    command = [os.path.abspath(program), "serve", "--http-port", "0", "--port", "{port}", "--dir", "{dir}",
               "--save", "", "--appendonly", "no", "--workers", "2"]
    server = Server("onggi", command)
    try:
        figures, empty = {}, server.resident()
        for number, (name, requests) in enumerate(STEPS):
            if name == "HDEL, ZREM":
                figures["MB, grown"] = (server.resident() - empty) / 1e6
            cpu, turn = run(server, requests(shuffled(elements, number)))
            figures[f"{name}: ns of CPU"] = cpu
            figures[f"{name}: longest turn, us"] = turn
        time.sleep(SETTLING_SECONDS)
        figures["MB, nine tenths deleted"] = (server.resident() - empty) / 1e6
        server.ask([b"CONFIG", b"RESETSTAT"])
        server.ask([b"FLUSHALL"])
        time.sleep(SETTLING_SECONDS)
        figures["FLUSHALL: longest turn, us"] = longest_turn(server)
        figures["MB, flushed"] = (server.resident() - empty) / 1e6
        return figures
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("programs", nargs="+", metavar="NAME=PROGRAM")
    options = parser.parse_args()
    programs = dict(each.split("=", 1) for each in options.programs)
    results = {name: [] for name in programs}
    for _ in range(options.rounds):
        for name, program in programs.items():
            results[name].append(measure(program, options.elements))
    print(f"| Figure | {' | '.join(programs)} |\n|---|{'---|' * len(programs)}")
    for figure in next(iter(results.values()))[0]:
        middles = [statistics.median(one[figure] for one in results[name]) for name in programs]
        print(f"| {figure} | {' | '.join(f'{middle:,.0f}' for middle in middles)} |")


if __name__ == "__main__":
    main()
