"""Login, protocol versions, the unix socket, and coming back after the server has closed a connection."""

import redis

# Commands that this program sends: COMMAND has to describe all of them.
USED = set(
    """append auth bitcount bitfield bitop bitpos client command config dbsize decr decrby del discard exec exists
expire expireat flushall get getbit getdel getex getrange hello incr incrby incrbyfloat mget mset multi persist pexpire
ping pttl scan select set setbit setrange strlen ttl type unlink unwatch watch""".split()
)


def run(h):
    r = h.client()

    def login():
        h.raises(redis.AuthenticationError, "", lambda: h.client(password=None).get("k"))
        h.raises(redis.AuthenticationError, "", lambda: h.client(password="wrong").get("k"))
        h.equal(h.client().ping(), True)
        h.equal(h.client(username="default").ping(), True)

    def both_protocols():
        two, three = h.client(protocol=2), h.client(protocol=3)
        for client in (two, three):
            h.equal(client.set("p", "v"), True)
            h.equal((client.get("p"), client.get("nothing"), client.exists("p")), (b"v", None, 1))
            h.equal(client.config_get("maxmemory-policy"), {"maxmemory-policy": "noeviction"})
            described = client.command()
            h.equal(client.command_count(), len(described))
            h.equal(USED - {str(name).lower() for name in described}, set())
        hello = three.execute_command("HELLO", "3")
        hello = {str(k, "ascii") if isinstance(k, bytes) else k: v for k, v in hello.items()}
        h.equal(hello["proto"], 3)
        h.raises(redis.ResponseError, "NOPROTO", lambda: two.execute_command("HELLO", "9"))

    def identity():
        one = h.client(client_name="catalogue")
        h.equal(one.client_getname() in (b"catalogue", "catalogue"), True)
        info = one.client_info()
        h.equal((info["name"], info["db"]), ("catalogue", "0" if isinstance(info["db"], str) else 0))
        h.equal(any(c["name"] == "catalogue" for c in r.client_list()), True)

    def server_facts():
        info = r.info()
        h.equal(info["redis_version"].count("."), 2)
        ports = [value["port"] for name, value in info.items() if name.startswith("listener") and "port" in value]
        h.equal(h.port in [info["tcp_port"], *ports], True)
        h.equal(info["connected_clients"] >= 1, True)
        h.equal(r.config_set("maxmemory-policy", "allkeys-lru"), True)
        h.equal(r.config_get("maxmemory-policy")["maxmemory-policy"], "allkeys-lru")
        h.equal(r.config_set("maxmemory-policy", "noeviction"), True)
        h.equal(len(r.time()), 2)
        h.equal(r.echo("hello"), b"hello")

    def unix_socket():
        local = h.local()
        local.set("through", "the socket")
        h.equal(r.get("through"), b"the socket")

    def reconnect():
        victim = h.client(max_connections=1)
        h.equal(victim.set("before", "1"), True)
        identifier = victim.client_id()
        h.equal(r.client_kill_filter(_id=identifier), 1)
        h.equal(victim.get("before"), b"1")
        h.equal(victim.client_id() != identifier, True)

    def many_connections():
        clients = [h.client(max_connections=1) for _ in range(200)]
        for number, client in enumerate(clients):
            client.set("connection", number)
        h.equal(r.get("connection"), b"199")
        h.equal(r.info("clients")["connected_clients"] >= 200, True)
        for client in clients:
            client.close()
        h.eventually(lambda: r.info("clients")["connected_clients"] < 100, 5)

    for name, body in (
        ("login is needed, wrong passwords are refused", login),
        ("RESP2 and RESP3", both_protocols),
        ("CLIENT SETNAME, INFO, LIST", identity),
        ("INFO, CONFIG, TIME, ECHO", server_facts),
        ("unix socket", unix_socket),
        ("the client comes back after CLIENT KILL", reconnect),
        ("200 connections", many_connections),
    ):
        h.check(f"connections: {name}", body)
