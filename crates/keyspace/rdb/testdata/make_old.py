#!/usr/bin/env python3
"""Makes files with forms that the servers at hand read and do not write: crates/keyspace/rdb/testdata/make_old.py

old-forms.rdb: what Redis 2.6 to 6.2 wrote, byte by byte after docs/formats/rdb.md; the test of real servers loads it
into Redis 7.0 and Valkey 9.1. redis74-fields.rdb: hashes with field expirations as Redis 7.4 keeps them, and a value of
a module; neither server reads these.
"""

import struct
from pathlib import Path

HERE = Path(__file__).parent


def length(n):
    if n < 64:
        return bytes([n])
    if n < 1 << 14:
        return struct.pack(">H", 0x4000 | n)
    return b"\x80" + struct.pack(">I", n)


def string(text):
    return length(len(text)) + text


def ziplist(elements):
    out, before, last = b"", 0, 10
    for element in elements:
        head = bytes([before]) if before < 254 else b"\xfe" + struct.pack("<I", before)
        if isinstance(element, int):
            if 0 <= element <= 12:
                body = bytes([0xF1 + element])
            elif -128 <= element < 128:
                body = b"\xfe" + struct.pack("<b", element)
            elif -(1 << 15) <= element < 1 << 15:
                body = b"\xc0" + struct.pack("<h", element)
            elif -(1 << 23) <= element < 1 << 23:
                body = b"\xf0" + struct.pack("<i", element)[:3]
            elif -(1 << 31) <= element < 1 << 31:
                body = b"\xd0" + struct.pack("<i", element)
            else:
                body = b"\xe0" + struct.pack("<q", element)
        elif len(element) < 64:
            body = bytes([len(element)]) + element
        elif len(element) < 1 << 14:
            body = struct.pack(">H", 0x4000 | len(element)) + element
        else:
            body = b"\x80" + struct.pack(">I", len(element)) + element
        last, before = 10 + len(out), len(head + body)
        out += head + body
    return struct.pack("<IIH", len(out) + 11, last, len(elements)) + out + b"\xff"


def zipmap(pairs):
    def size(n):
        return bytes([n]) if n < 254 else b"\xfe" + struct.pack("<I", n)

    out = b""
    for number, (field, value) in enumerate(pairs):
        unused = number % 3
        out += size(len(field)) + field + size(len(value)) + bytes([unused]) + value + bytes(unused)
    return bytes([len(pairs)]) + out + b"\xff"


def listpack(elements):
    out = b""
    for element in elements:
        if isinstance(element, int):
            body = b"\xf4" + struct.pack("<q", element)
            if 0 <= element < 128:
                body = bytes([element])
            elif -4096 <= element < 4096:
                body = struct.pack(">H", 0xC000 | element & 0x1FFF)
            elif -(1 << 23) <= element < 1 << 23:
                body = b"\xf2" + struct.pack("<i", element)[:3]
        else:
            body = bytes([0x80 | len(element)]) + element
        assert len(body) < 128
        out += body + bytes([len(body)])
    return struct.pack("<IH", len(out) + 7, len(elements)) + out + b"\xff"


def entry(kind, key, body):
    return bytes([kind]) + string(key) + body


def score(text):
    return bytes([len(text)]) + text


INTEGERS = [0, 12, 13, -1, 127, -128, 128, -32768, 32768, -8388608, 8388608, -(1 << 31), 1 << 31, -(1 << 63)]
LONG = b"x" * 300


def old_forms():
    out = b"REDIS0006\xfe\x00"
    out += entry(1, b"list", length(3) + string(b"a") + string(b"") + string(LONG))
    out += entry(2, b"set", length(2) + string(b"a") + b"\xc0\x07")
    out += entry(3, b"zset", length(4) + string(b"a") + score(b"1.5") + string(b"b") + score(b"-1e+100")
                 + string(b"c") + b"\xfe" + string(b"d") + b"\xff")
    out += entry(9, b"zipmap", string(zipmap([(b"a", b"1"), (b"b", b""), (LONG, b"v" * 256)])))
    out += entry(10, b"list-ziplist", string(ziplist([b"a", LONG, b"after a long one", b"", *INTEGERS])))
    out += entry(11, b"set-intset", string(struct.pack("<II3h", 2, 3, -5, 0, 700)))
    out += entry(12, b"zset-ziplist", string(ziplist([b"a", b"-0.5", b"b", 3, 17, b"inf"])))
    out += entry(13, b"hash-ziplist", string(ziplist([b"field", b"value", 1, 2])))
    out += entry(14, b"list-quicklist", length(2) + string(ziplist([b"a", 1])) + string(ziplist([b"b" * 20000])))
    out += b"\xfd" + struct.pack("<i", 2000000000) + entry(0, b"seconds", string(b"expires"))
    node = listpack([2, 1, 2, b"name", b"other", 0,
                     2, 0, 0, b"a", b"b", 5,
                     3, 0, 1, b"gone", b"gone", 5,
                     0, 1000, -3, 1, b"own", -4096, 6])
    key = struct.pack(">QQ", 1000, 5)
    pending = key + struct.pack("<q", 1600000000000) + length(3)
    group = (string(b"group") + length(2000) + length(2) + length(1) + pending
             + length(1) + string(b"consumer") + struct.pack("<q", 1600000000001) + length(1) + key)
    out += entry(15, b"stream", length(1) + string(key) + string(node) + length(2) + length(2000) + length(2)
                 + length(1) + group)
    return out + b"\xff" + bytes(8)


def redis74_fields():
    earliest = 4102444800000
    out = b"REDIS0012\xfa" + string(b"redis-ver") + string(b"7.4.0")
    out += b"\xf7" + b"\x81" + struct.pack(">Q", MODULE) + length(2) + length(2) + length(5) + string(b"aux") +
    length(0) out += b"\xfe\x00\xf4" + length(7) + length(3) + length(0)
    out += entry(24, b"hash", struct.pack("<q", earliest) + length(3)
                 + length(0) + string(b"stays") + string(b"1")
                 + length(1) + string(b"goes") + string(b"2")
                 + length(8) + string(b"later") + string(b"3"))
    out += entry(25, b"hash-listpack", struct.pack("<q", earliest)
                 + string(listpack([b"goes", b"2", earliest, b"later", 3, earliest + 7, b"stays", 1, 0])))
    value = (length(1) + length(3) + length(2) + length(9) + length(3) + struct.pack("<f", 1) + length(4)
             + struct.pack("<d", 2) + length(5) + string(b"inside") + length(0))
    out += entry(7, b"module", b"\x81" + struct.pack(">Q", MODULE) + value)
    return out + b"\xff" + bytes(8)


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
MODULE = 3
for place, letter in enumerate(reversed("tree-type")):
    MODULE |= LETTERS.index(letter) << (10 + 6 * place)

(HERE / "old-forms.rdb").write_bytes(old_forms())
(HERE / "redis74-fields.rdb").write_bytes(redis74_fields())
