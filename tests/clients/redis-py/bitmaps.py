"""Bitmaps over the catalogue, compared with Python's integers."""

import catalogue
import redis


def run(h):
    r = h.client()
    cities = catalogue.cities().values()
    north = [city["latitude"] > 0 for city in cities]
    big = [city["population"] > 100_000 for city in cities]

    def as_bytes(bits):
        value = int("".join("1" if bit else "0" for bit in bits).ljust((len(bits) + 7) // 8 * 8, "0"), 2)
        return value.to_bytes((len(bits) + 7) // 8, "big")

    def set_bits():
        for key, bits in (("north", north), ("big", big)):
            for batch in catalogue.batches([i for i, bit in enumerate(bits) if bit]):
                pipe = r.pipeline(transaction=False)
                for index in batch:
                    pipe.setbit(key, index, 1)
                h.equal(set(pipe.execute()), {0})
            expected = as_bytes(bits)
            h.equal(r.get(key), expected[: len(r.get(key))])
            h.equal(r.bitcount(key), sum(bits))
        for index in (0, 7, 8, len(cities) - 1, len(cities) + 1000):
            h.equal(r.getbit("north", index), int(index < len(north) and north[index]))

    def operations():
        length = max(r.strlen("north"), r.strlen("big"))
        a = int.from_bytes(as_bytes(north)[:length], "big")
        b = int.from_bytes(as_bytes(big)[:length], "big")
        every = (1 << (8 * length)) - 1
        for operation, expected in (("AND", a & b), ("OR", a | b), ("XOR", a ^ b)):
            h.equal(r.bitop(operation, "out", "north", "big"), length)
            h.equal(int.from_bytes(r.get("out"), "big"), expected)
        h.equal(r.bitop("NOT", "out", "north"), r.strlen("north"))
        h.equal(r.bitcount("out"), bin(~a & every).count("1") - 8 * (length - r.strlen("north")))
        h.raises(redis.ResponseError, "single source", lambda: r.bitop("NOT", "out", "north", "big"))

    def ranges_and_positions():
        bits = [bool(byte >> (7 - i) & 1) for byte in r.get("big") for i in range(8)]
        for start, end in ((0, 99), (100, -100), (-500, -1)):
            first = start if start >= 0 else len(bits) // 8 + start
            last = end if end >= 0 else len(bits) // 8 + end
            h.equal(r.bitcount("big", start, end), sum(bits[first * 8 : last * 8 + 8]))
        h.equal(r.bitcount("big", 5, 1000, "BIT"), sum(bits[5:1001]))
        h.equal(r.bitpos("big", 1), bits.index(True))
        h.equal(r.bitpos("big", 0), bits.index(False))
        h.equal(r.bitpos("big", 1, 1000), bits.index(True, 8000))
        h.equal(r.bitpos("big", 1, 77, 99999, "BIT"), bits.index(True, 77))
        h.equal((r.bitpos("nothing", 1), r.bitpos("nothing", 0)), (-1, 0))

    def fields():
        h.equal(r.bitfield("bf").set("u8", 0, 255).get("u4", 0).incrby("u8", 0, 1).execute(), [0, 15, 0])
        saturating = r.bitfield("bf", default_overflow="SAT").incrby("u8", 8, 250).incrby("u8", 8, 250)
        h.equal(saturating.execute(), [250, 255])
        failing = (
            r.bitfield("bf", default_overflow="FAIL").incrby("u8", 8, 1).incrby("i5", "#4", -16).incrby("i5", "#4", -1)
        )
        h.equal(failing.execute(), [None, -16, None])
        h.equal(r.bitfield_ro("bf", "u8", 8), [255])
        h.raises(redis.ResponseError, "", lambda: r.execute_command("BITFIELD", "bf", "GET", "u64", "0"))

    for name, body in (
        ("SETBIT, GETBIT and BITCOUNT of the catalogue", set_bits),
        ("BITOP equals the model", operations),
        ("BITCOUNT and BITPOS of ranges equal the model", ranges_and_positions),
        ("BITFIELD with each overflow rule", fields),
    ):
        h.check(f"bitmaps: {name}", body)
    r.delete("north", "big", "out", "bf")
