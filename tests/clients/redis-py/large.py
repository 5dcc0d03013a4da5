"""Values of a megabyte and of 64, and pipelines of ten thousand commands."""

import random

MEGABYTE = 1 << 20


def run(h):
    r = h.client()
    random_bytes = random.Random(1)

    def value_of(size):
        value = random_bytes.randbytes(size)
        h.equal(r.set("large", value), True)
        h.equal(r.strlen("large"), size)
        if r.get("large") != value:
            raise AssertionError("the value read differs")
        h.equal(r.getrange("large", size - 1000, size - 1), value[-1000:])
        h.equal(r.setrange("large", size // 2, b"changed"), size)
        changed = value[: size // 2] + b"changed" + value[size // 2 + 7 :]
        h.equal(r.append("large", b"tail"), size + 4)
        if r.get("large") != changed + b"tail":
            raise AssertionError("the changed value read differs")
        h.equal(r.delete("large"), 1)

    def grown_by_appends():
        piece = random_bytes.randbytes(64 * 1024)
        for count in range(1, 65):
            h.equal(r.append("grown", piece), count * len(piece))
        h.equal(r.get("grown") == piece * 64, True)
        r.delete("grown")

    def long_pipeline():
        pipe = r.pipeline(transaction=False)
        for number in range(25_000):
            pipe.set(f"p:{number}", f"value {number}")
            pipe.get(f"p:{number}")
        replies = pipe.execute()
        h.equal(replies[0::2], [True] * 25_000)
        h.equal(replies[1::2], [b"value %d" % n for n in range(25_000)])
        h.equal(r.unlink(*[f"p:{n}" for n in range(25_000)]), 25_000)

    def errors_in_a_pipeline():
        r.set("word", "abc")
        pipe = r.pipeline(transaction=False)
        for number in range(10_000):
            pipe.incr("word" if number % 100 == 0 else "pn")
        replies = pipe.execute(raise_on_error=False)
        h.equal(sum(isinstance(reply, Exception) for reply in replies), 100)
        h.equal([reply for reply in replies if not isinstance(reply, Exception)], list(range(1, 9_901)))
        r.delete("word", "pn")

    h.check("large: a value of 1 MB", lambda: value_of(MEGABYTE))
    h.check("large: a value of 64 MB", lambda: value_of(64 * MEGABYTE))
    h.check("large: a value grown by appends", grown_by_appends)
    h.check("pipelines: 50000 commands, replies in order", long_pipeline)
    h.check("pipelines: errors stay in their places", errors_in_a_pipeline)
