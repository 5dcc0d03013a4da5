"""Keys as such: existence, types, renaming, copying, databases, and the string commands around SET."""

import redis


def run(h):
    r = h.client()

    def set_options():
        h.equal(r.set("k", "one", nx=True), True)
        h.equal(r.set("k", "two", nx=True), None)
        h.equal(r.set("k", "two", xx=True), True)
        h.equal(r.set("absent", "x", xx=True), None)
        h.equal(r.set("k", "three", get=True), b"two")
        h.equal(r.setnx("k", "four"), False)
        h.equal(r.getset("k", "five"), b"three")
        h.equal(r.getdel("k"), b"five")
        h.equal(r.get("k"), None)

    def conditional_set():
        r.set("k", "one")
        h.equal(r.execute_command("SET", "k", "two", "IFEQ", "other"), None)
        h.equal(r.execute_command("SET", "k", "two", "IFEQ", "one"), True)
        h.equal(r.get("k"), b"two")

    def ranges():
        r.set("text", "Hello World")
        h.equal(r.getrange("text", 0, 4), b"Hello")
        h.equal(r.getrange("text", -5, -1), b"World")
        h.equal(r.getrange("text", 50, 60), b"")
        h.equal(r.setrange("text", 6, "Redis"), 11)
        h.equal(r.append("text", "!"), 12)
        h.equal(r.get("text"), b"Hello Redis!")
        h.equal(r.setrange("padded", 5, "x"), 6)
        h.equal(r.get("padded"), b"\0\0\0\0\0x")

    def many_keys():
        h.equal(r.mset({"a": "1", "b": "2", "c": "3"}), True)
        h.equal(r.msetnx({"c": "x", "d": "4"}), False)
        h.equal(r.exists("d"), 0)
        h.equal(r.msetnx({"d": "4", "e": "5"}), True)
        h.equal(r.exists("a", "b", "a", "nothing"), 3)
        h.equal(r.touch("a", "b", "nothing"), 2)
        h.equal(r.unlink("a", "b", "nothing"), 2)
        h.equal(r.delete("c", "d", "e"), 3)

    def rename_and_copy():
        r.set("from", "value", px=600_000)
        h.equal(r.rename("from", "to"), True)
        h.equal(0 < r.pttl("to") <= 600_000, True)
        h.raises(redis.ResponseError, "no such key", lambda: r.rename("from", "to"))
        r.set("taken", "other")
        h.equal(r.renamenx("to", "taken"), False)
        h.equal(r.copy("to", "taken"), False)
        h.equal(r.copy("to", "taken", replace=True), True)
        h.equal(r.get("taken"), b"value")
        h.equal(r.copy("to", "to", destination_db=1), True)
        h.equal(h.client(db=1).get("to"), b"value")

    def dump_and_restore():
        r.set("text", "value")
        r.rpush("row", *range(300))
        r.hset("fields", mapping={"a": "1", "b": "2"})
        for key in ("text", "row", "fields"):
            payload = r.dump(key)
            h.raises(redis.ResponseError, "BUSYKEY", lambda: r.restore(key, 0, payload))
            h.equal(r.restore(key, 600_000, payload, replace=True, idletime=100), b"OK")
            h.equal(r.object("idletime", key) >= 100, True)
            h.equal(0 < r.pttl(key) <= 600_000, True)
            h.raises(redis.ResponseError, "checksum", lambda: r.restore("copy", 0, payload[:-1] + b"?"))
        h.equal(r.get("text"), b"value")
        h.equal(r.lrange("row", 298, -1), [b"298", b"299"])
        h.equal(r.hgetall("fields"), {b"a": b"1", b"b": b"2"})
        h.equal(r.dump("nothing"), None)

    def types_and_encodings():
        r.set("number", "12345")
        r.set("short", "abc")
        r.set("long", "x" * 1000)
        h.equal([r.type(k) for k in ("number", "nothing")], [b"string", b"none"])
        h.equal([r.object("encoding", k) for k in ("number", "short", "long")], [b"int", b"embstr", b"raw"])
        h.equal(r.object("refcount", "short"), 1)
        h.equal(r.object("idletime", "short") >= 0, True)
        h.equal(r.memory_usage("long") > 1000, True)

    def databases():
        one, two = h.client(db=2), h.client(db=3)
        one.set("where", "two")
        h.equal(one.move("where", 3), True)
        h.equal((one.exists("where"), two.get("where")), (0, b"two"))
        h.equal(r.swapdb(2, 3), True)
        h.equal((one.get("where"), two.exists("where")), (b"two", 0))
        h.equal(one.flushdb(), True)
        h.equal(one.dbsize(), 0)
        h.raises(redis.ResponseError, "out of range", lambda: h.client(db=9999).ping())

    def longest_common_subsequence():
        r.mset({"lcs1": "ohmytext", "lcs2": "mynewtext"})
        h.equal(r.lcs("lcs1", "lcs2"), b"mytext")
        h.equal(r.lcs("lcs1", "lcs2", len=True), 6)

    def binary_keys():
        every_byte = bytes(range(256))
        r.set(every_byte, every_byte * 3)
        h.equal(r.get(every_byte), every_byte * 3)
        h.equal(every_byte in set(r.scan_iter(match=b"\x00\x01*", count=5000)), True)
        h.equal(r.delete(every_byte), 1)

    def errors():
        h.raises(redis.ResponseError, "unknown command", lambda: r.execute_command("NOSUCH", "x"))
        h.raises(redis.ResponseError, "wrong number of arguments", lambda: r.execute_command("GET"))
        h.raises(redis.ResponseError, "syntax error", lambda: r.execute_command("SET", "k", "v", "NONSENSE"))
        h.equal(r.ping(), True)

    for name, body in (
        ("SET with NX, XX and GET; GETSET, GETDEL", set_options),
        ("SET with IFEQ", conditional_set),
        ("GETRANGE, SETRANGE, APPEND", ranges),
        ("MSET, MSETNX, EXISTS, TOUCH, UNLINK, DEL", many_keys),
        ("RENAME, RENAMENX, COPY keep value and expiration", rename_and_copy),
        ("DUMP, RESTORE", dump_and_restore),
        ("TYPE, OBJECT, MEMORY USAGE", types_and_encodings),
        ("SELECT, MOVE, SWAPDB, FLUSHDB", databases),
        ("LCS", longest_common_subsequence),
        ("keys and values of any bytes", binary_keys),
        ("errors keep the connection", errors),
    ):
        h.check(f"keys: {name}", body)
