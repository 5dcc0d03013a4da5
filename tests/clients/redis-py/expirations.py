"""Expirations in all their spellings. Waits are for an event by a deadline."""

import time

import redis


def run(h):
    r = h.client()

    def absolute_and_relative():
        now = r.time()[0]
        r.set("ex", "v", ex=100)
        r.set("px", "v", px=100_000)
        r.set("exat", "v", exat=now + 100)
        r.set("pxat", "v", pxat=(now + 100) * 1000)
        r.setex("setex", 100, "v")
        r.psetex("psetex", 100_000, "v")
        for key in ("ex", "px", "exat", "pxat", "setex", "psetex"):
            h.equal(95 <= r.ttl(key) <= 101, True)
            h.equal(95_000 <= r.pttl(key) <= 101_000, True)
        h.equal(r.expiretime("exat"), now + 100)
        h.equal(r.pexpiretime("pxat"), (now + 100) * 1000)
        h.equal((r.ttl("nothing"), r.pttl("nothing"), r.expiretime("nothing")), (-2, -2, -2))

    def keep_and_lose():
        r.set("k", "v", ex=100)
        r.set("k", "w", keepttl=True)
        h.equal(r.ttl("k") > 0, True)
        r.append("k", "x")
        h.equal(r.ttl("k") > 0, True)
        r.set("k", "v")
        h.equal(r.ttl("k"), -1)
        r.set("k", "v", ex=100)
        h.equal((r.persist("k"), r.persist("k"), r.ttl("k")), (True, False, -1))

    def getex():
        r.set("k", "v")
        h.equal(r.getex("k", ex=50), b"v")
        h.equal(0 < r.ttl("k") <= 50, True)
        h.equal(r.getex("k"), b"v")
        h.equal(r.ttl("k") > 0, True)
        h.equal(r.getex("k", persist=True), b"v")
        h.equal(r.ttl("k"), -1)
        h.equal(r.getex("nothing", ex=50), None)

    def expire_conditions():
        r.set("k", "v")
        h.equal(r.expire("k", 100, xx=True), False)
        h.equal(r.expire("k", 100, nx=True), True)
        h.equal(r.expire("k", 200, nx=True), False)
        h.equal(r.expire("k", 50, gt=True), False)
        h.equal(r.expire("k", 200, gt=True), True)
        h.equal(r.expire("k", 300, lt=True), False)
        h.equal(r.expire("k", 50, lt=True), True)
        h.equal(0 < r.ttl("k") <= 50, True)
        h.equal(r.expire("nothing", 10), False)
        h.raises(redis.ResponseError, "", lambda: r.execute_command("EXPIRE", "k", "10", "NX", "XX"))

    def past():
        r.set("k", "v")
        h.equal(r.expireat("k", 1), True)
        h.equal(r.exists("k"), 0)
        r.set("k", "v")
        h.equal(r.pexpire("k", -1), True)
        h.equal(r.get("k"), None)
        h.raises(redis.ResponseError, "invalid expire", lambda: r.set("k", "v", ex=0))

    def not_early_and_then_gone():
        started = time.monotonic()
        r.set("soon", "v", px=150)
        h.eventually(lambda: r.get("soon") is None, 5)
        elapsed = time.monotonic() - started
        if elapsed < 0.145:
            raise AssertionError(f"gone after {elapsed * 1000:.0f} ms of 150")

    def thousands_leave_by_themselves():
        other = h.client(db=5)
        pipe = other.pipeline(transaction=False)
        for number in range(20_000):
            pipe.set(f"brief:{number}", "v", px=200 + number % 200)
        pipe.set("stays", "v")
        pipe.execute()
        h.eventually(lambda: other.dbsize() == 1, 20)
        h.equal(list(other.scan_iter(count=1000)), [b"stays"])
        h.equal(other.randomkey(), b"stays")
        other.flushdb()

    for name, body in (
        ("EX, PX, EXAT, PXAT, SETEX, PSETEX and their TTL", absolute_and_relative),
        ("KEEPTTL, PERSIST, and which writes drop a TTL", keep_and_lose),
        ("GETEX", getex),
        ("EXPIRE with NX, XX, GT, LT", expire_conditions),
        ("a time in the past removes the key", past),
        ("a key is not gone early, and then gone", not_early_and_then_gone),
        ("20000 keys leave without being read", thousands_leave_by_themselves),
    ):
        h.check(f"expirations: {name}", body)
