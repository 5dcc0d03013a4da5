"""Damaged payloads for RESTORE, with the checksum that they should have: bytes changed, cut, doubled, lengths that
lie."""

from arguments import answer
from resp import Connection, request
from suite import MB, expect

DAMAGED = 4000
# What short payloads make the server hold: requests, replies, one value after the other.
GROWTH_MAX = 64 * MB
# The server's `proto-max-bulk-len`: what the compressed strings of a payload may stand for.
LIMIT = 64 * MB

VALUES = [
    ["SET", "{p}string", "a text that is long enough to be compressed " * 10],
    ["RPUSH", "{p}list", "a", "1", "-5", "b" * 70, "c" * 300],
    ["SADD", "{p}integers", 1, 2, 300, 70000],
    ["SADD", "{p}set", "a", "b", "1"],
    ["ZADD", "{p}zset", 1, "a", 2.5, "b", "inf", "c"],
    ["HSET", "{p}hash", "f", "v", "g", "1", "h", ""],
    ["HSET", "{p}timed", "f", "v", "g", "w"],
    ["HPEXPIREAT", "{p}timed", 4102444800000, "FIELDS", 1, "f"],
    ["XADD", "{p}stream", "5-1", "a", "1", "b", "2"],
    ["XADD", "{p}stream", "6-1", "c", "3"],
    ["XGROUP", "CREATE", "{p}stream", "g", "0"],
    ["XREADGROUP", "GROUP", "g", "alice", "COUNT", 2, "STREAMS", "{p}stream", ">"],
]

# What Redis 7.0 packs, which is where lengths lie best: a list, a set of integers, a sorted set, a hash, a stream.
PACKED = [
    bytes.fromhex("12 01 02 0f 0f000000 0300 8161 02 8162 02 01 01 ff"),
    bytes.fromhex("0b 0e 02000000 03000000 0100 0200 0300"),
    bytes.fromhex("11 1c 1c000000 0600 8161 02 01 01 8162 02 83322e35 04 8163 02 83696e66 04 ff"),
    bytes.fromhex("10 17 17000000 0400 826631 03 827631 03 826632 03 827632 03 ff"),
    bytes.fromhex(
        "13 01 10 00000000000000050000000000000001 2d 2d000000 1200 01 01 01 01 02 01 8161 02 8162 02 00 01 03 01 00 01"
        "00 01 01 01 02 01 05 01 02 01 01 01 00 01 03 01 04 01 05 01 ff 01 06 01 06 01 05 01 02 00"
    ),
]


def table():
    """CRC-64 as RDB files have it, by byte."""
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x95AC9329AC4BC9B5 if byte & 1 else 0)
        rows.append(byte)
    return rows


TABLE = table()


def payload(body, version):
    """A payload with its version and its checksum."""
    body += version.to_bytes(2, "little")
    crc = 0
    for byte in body:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return body + crc.to_bytes(8, "little")


def damaged(rng, body):
    """The body with a few bytes changed, removed, or there twice."""
    body = bytearray(body)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(body)) if body else 0
        match rng.randrange(5):
            case 0 | 1 if body:
                body[at] = rng.choice([0, 1, 0x7F, 0x80, 0x81, 0xC3, 0xE0, 0xF4, 0xFE, 0xFF, rng.randrange(256)])
            case 2:
                del body[at : at + rng.randrange(1, 5)]
            case 3:
                body[at:at] = body[at : at + rng.randrange(1, 9)]
            case _ if body:
                body[at] ^= 1 << rng.randrange(8)
    return bytes(body)


def damage(suite):
    """Each is refused, or is a value that comes back the same from DUMP; the connection stays open."""
    server, rng = suite.server, suite.random("payloads")
    with Connection(server) as connection:
        for command in VALUES:
            connection.call(*command)
        keys = {
            command[2] if command[0] == "XGROUP" else command[1] for command in VALUES if command[0] != "XREADGROUP"
        }
        whole = [connection.call("DUMP", key) for key in sorted(keys)]
        bodies = [(dump[:-10], int.from_bytes(dump[-10:-8], "little")) for dump in whole]
        bodies += [(body, 10) for body in PACKED]
        for body, version in bodies:
            expect(
                connection.call("RESTORE", "{p}whole", 0, payload(body, version), "REPLACE") == b"OK",
                "a whole payload is refused",
            )
        taken = 0
        for _ in range(DAMAGED * suite.times):
            body, version = rng.choice(bodies)
            sent = payload(damaged(rng, body), version)
            connection.send(request("RESTORE", "{p}new", 0, sent, "REPLACE") + request("ECHO", "after"))
            answers = [answer(connection), answer(connection)]
            expect(answers[1] == b"after", f"{sent.hex()}: {str(answers)[:300]}")
            if answers[0] == b"OK":
                taken += 1
                first = connection.call("DUMP", "{p}new")
                connection.call("RESTORE", "{p}copy", 0, first, "REPLACE")
                again = connection.call("DUMP", "{p}copy")
                expect(first == again, f"{sent.hex()}: {first.hex()}, then {again.hex()}")
        print(f"   {taken} of {DAMAGED * suite.times} damaged payloads were values still", flush=True)
        connection.call("FLUSHALL")


def expanding(suite):
    """A list of strings of 16 MB each, compressed to a hundredth: what it stands for is more than a value may have
    here."""
    server, references = suite.server, 16 * MB // 264
    # A byte, and then references to the byte before, of 264 bytes each.
    one, length = b"\x00x" + b"\xe0\xff\x00" * references, 1 + references * 264
    string = b"\xc3\x80" + len(one).to_bytes(4, "big") + b"\x80" + length.to_bytes(4, "big") + one
    with Connection(server) as connection:
        error = connection.error(
            "RESTORE", "{p}bomb", 0, payload(bytes([1, LIMIT // length + 1]) + string * (LIMIT // length + 1), 10)
        )
        expect("proto-max-bulk-len" in error, f"not refused as too long: {error!r}")
        expect(connection.call("EXISTS", "{p}bomb") == 0, "it is there")


def run(suite):
    suite.attack("damaged payloads", lambda: damage(suite), growth=GROWTH_MAX)
    # Up to the limit it is expanded before it is refused.
    suite.attack("payloads that expand", lambda: expanding(suite), growth=LIMIT + GROWTH_MAX)
