"""pymemcache, as its users use it."""

from pymemcache.client.base import Client, PooledClient
from pymemcache.client.retrying import RetryingClient
from pymemcache.serde import pickle_serde


def run(port, check):
    plain = Client(("127.0.0.1", port), timeout=10)
    check("set and get", plain.set("a", b"1") and plain.get("a") == b"1")
    check("noreply", plain.set("b", b"2", noreply=True) and plain.get("b") == b"2")
    check("get_many", plain.get_many(["a", "b", "c"]) == {"a": b"1", "b": b"2"})
    check("set_many", plain.set_many({"x": b"1", "y": b"2"}, noreply=False) == [])
    check("add and replace", not plain.add("a", b"3", noreply=False) and plain.replace("a", b"4", noreply=False))
    check("append and prepend", plain.append("a", b"5", noreply=False) and plain.prepend("a", b"3", noreply=False)
          and plain.get("a") == b"345")
    value, token = plain.gets("a")
    check("cas", value == b"345" and plain.cas("a", b"new", token) is True and plain.cas("a", b"newer", token) is False
          and plain.cas("absent", b"1", token) is None)
    check("gets_many", set(plain.gets_many(["a", "b"])) == {"a", "b"})
    check("incr and decr", plain.set("n", b"10") and plain.incr("n", 5) == 15 and plain.decr("n", 20) == 0
          and plain.incr("absent", 1) is None)
    check("touch and expire", plain.touch("a", 100, noreply=False) and plain.set("e", b"1", expire=-1, noreply=False)
          and plain.get("e") is None)
    check("delete", plain.delete("a", noreply=False) and not plain.delete("a", noreply=False)
          and plain.delete_many(["x", "y"], noreply=False))
    check("stats and version", plain.stats()[b"curr_items"] >= 1 and plain.version().startswith(b"1."))
    pickled = PooledClient(("127.0.0.1", port), serde=pickle_serde, timeout=10)
    document = {"name": "x" * 50_000, "list": [1, 2.5, None]}
    check("pickled values keep their flags", pickled.set("d", document) and pickled.get("d") == document)
    check("large values", plain.set("l", b"z" * 1_000_000) and plain.get("l") == b"z" * 1_000_000)
    retrying = RetryingClient(plain, attempts=2)
    check("flush_all", retrying.flush_all(noreply=False) and plain.get("d") is None)
    plain.quit()
