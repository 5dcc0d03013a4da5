"""Counters: exact sums over the catalogue and from many threads at once, and their limits."""

import threading
from collections import Counter

import catalogue
import redis

LARGEST = 2**63 - 1


def run(h):
    r = h.client()

    def population_by_country():
        expected = Counter()
        for batch in catalogue.batches(catalogue.cities().values()):
            pipe = r.pipeline(transaction=False)
            for city in batch:
                expected[city["countrycode"]] += city["population"]
                pipe.incrby(f"population:{city['countrycode']}", city["population"])
            pipe.execute()
        countries = sorted(expected)
        got = [int(v) for v in r.mget([f"population:{c}" for c in countries])]
        h.equal(got, [expected[c] for c in countries])
        r.delete(*[f"population:{c}" for c in countries])

    def steps_and_floats():
        h.equal([r.incr("n"), r.incrby("n", 41), r.decr("n"), r.decrby("n", 1)], [1, 42, 41, 40])
        h.equal(r.get("n"), b"40")
        h.equal(r.incrbyfloat("f", 10.5), 10.5)
        h.equal(r.incrbyfloat("f", 0.1), 10.6)
        h.equal(r.get("f"), b"10.6")
        r.set("f", "5.0e3")
        h.equal(r.incrbyfloat("f", "2.0e2"), 5200.0)
        h.equal(r.get("f"), b"5200")

    def limits():
        r.set("n", LARGEST)
        h.raises(redis.ResponseError, "overflow", lambda: r.incr("n"))
        h.equal(int(r.get("n")), LARGEST)
        r.set("n", -LARGEST - 1)
        h.raises(redis.ResponseError, "overflow", lambda: r.decr("n"))
        r.set("n", "12 ")
        h.raises(redis.ResponseError, "not an integer", lambda: r.incr("n"))
        r.set("n", "abc")
        h.raises(redis.ResponseError, "not a valid float", lambda: r.incrbyfloat("n", 1.0))

    def threads():
        def work():
            mine = h.client()
            for _ in range(50):
                pipe = mine.pipeline(transaction=False)
                for _ in range(100):
                    pipe.incr("together")
                pipe.execute()

        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        h.equal(r.get("together"), b"40000")

    for name, body in (
        ("INCRBY sums the catalogue by country", population_by_country),
        ("INCR, DECR, INCRBYFLOAT", steps_and_floats),
        ("overflow and wrong values are refused and change nothing", limits),
        ("8 threads lose no increment", threads),
    ):
        h.check(f"counters: {name}", body)
    r.delete("n", "f", "together")
