"""redis-benchmark: its tests run to the end, and what they leave in the server is what they sent."""

import csv
import subprocess

SECONDS_MAX = 120


def run(t):
    def benchmark(*arguments):
        done = subprocess.run(["redis-benchmark", "-h", t.host, "-p", t.port, "-a", t.password, "--csv", *arguments],
                              capture_output=True, text=True, timeout=SECONDS_MAX)
        t.equal(done.returncode, 0, done.stdout + done.stderr)
        t.equal("error" in (done.stdout + done.stderr).lower(), False, done.stdout + done.stderr)
        rows = list(csv.DictReader(done.stdout[done.stdout.index('"test"'):].splitlines()))
        for row in rows:
            # No measure of speed: that it is a number at all.
            t.equal(float(row["rps"]) > 0, True, row)
        return [row["test"] for row in rows]

    def pipelined():
        t.cli("FLUSHALL")
        names = benchmark("-t", "set,get,incr,ping,mset", "-P", "16", "-n", "200000", "-r", "10000", "-q")
        t.equal(names, ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"])
        keys = int(t.cli("DBSIZE"))
        t.equal(10_000 < keys <= 20_000, True, keys)

    def counted():
        t.cli("FLUSHALL")
        benchmark("-t", "incr", "-n", "50000", "-c", "50")
        t.equal(t.cli("GET", "counter:__rand_int__").strip(), "50000")

    def own_command():
        t.cli("FLUSHALL")
        benchmark("-n", "20000", "-P", "8", "-r", "1000", "APPEND", "log", "__rand_int__")
        t.equal(t.cli("STRLEN", "log").strip(), str(20_000 * len("000000000000")))

    def threads_and_large_values():
        t.cli("FLUSHALL")
        benchmark("-t", "set,get", "-n", "20000", "-d", "10000", "--threads", "2", "-c", "20", "-P", "4")
        t.equal(t.cli("STRLEN", "key:__rand_int__").strip(), "10000")

    for name, body in (
        ("-t set,get,incr,ping,mset -P 16", pipelined),
        ("50 clients lose no increment", counted),
        ("a command of one's own", own_command),
        ("two threads, values of 10 kB", threads_and_large_values),
    ):
        t.check(f"redis-benchmark: {name}", body)
