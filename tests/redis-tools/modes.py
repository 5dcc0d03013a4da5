"""redis-cli's ways to send and print: one command, standard input, output forms, repetition, errors, sockets."""

import json
import subprocess


def run(t):
    def one_command():
        t.equal(t.cli("SET", "greeting", "hello"), "OK\n")
        t.equal(t.cli("GET", "greeting"), "hello\n")
        t.equal(t.cli("GET", "nothing"), "\n")
        t.equal(t.cli("--no-raw", "GET", "nothing"), "(nil)\n")
        t.equal(t.cli("--no-raw", "STRLEN", "greeting"), "(integer) 5\n")
        t.equal(t.cli("--no-raw", "MGET", "greeting", "nothing"), '1) "hello"\n2) (nil)\n')

    def resp3():
        t.matches(r'^1# "maxmemory" => "0"$', t.cli("-3", "--no-raw", "CONFIG", "GET", "maxmemory"))
        t.matches(r'^1\) "maxmemory"$', t.cli("-2", "--no-raw", "CONFIG", "GET", "maxmemory"))
        t.equal(json.loads(t.cli("--json", "CONFIG", "GET", "maxmemory")), {"maxmemory": "0"})
        t.equal(t.cli("-3", "--csv", "MGET", "greeting", "nothing"), '"hello",NULL\n')
        t.equal(json.loads(t.cli("--json", "HELLO", "3"))["proto"], 3)

    def from_standard_input():
        t.equal(t.cli("-x", "SET", "piped", stdin=b"a\x00b\xff"), "OK\n")
        t.equal(t.cli("STRLEN", "piped"), "4\n")
        t.equal(t.cli("--no-raw", "GET", "piped"), '"a\\x00b\\xff"\n')
        t.equal(t.cli(stdin=b"SET a 1\nINCR a\nGET a\n"), "OK\n2\n2\n")

    def repeated():
        t.equal(t.cli("-r", "5", "INCR", "counted"), "1\n2\n3\n4\n5\n")
        t.equal(t.cli("-n", "7", "SET", "elsewhere", "7"), "OK\n")
        t.equal(t.cli("-n", "7", "DBSIZE"), "1\n")
        t.equal(t.cli("-n", "7", "FLUSHDB"), "OK\n")

    def errors():
        t.matches(r"^ERR unknown command 'NOSUCH', with args beginning with: 'x'", t.cli("NOSUCH", "x"))
        t.matches(r"^ERR wrong number of arguments for 'get' command", t.cli("GET"))
        t.matches(r"ERR unknown command", t.cli("-e", "NOSUCH", status=1))

    def password():
        bare = {k: v for k, v in t.environment.items() if k != "REDISCLI_AUTH"}
        done = subprocess.run(t.argv("GET", "a"), env=bare, capture_output=True, text=True, timeout=20)
        t.matches(r"^NOAUTH Authentication required\.", done.stdout)
        done = subprocess.run(t.argv("-a", "wrong", "GET", "a"), env=bare, capture_output=True, text=True, timeout=20)
        t.matches(r"AUTH failed: WRONGPASS", done.stdout + done.stderr)
        done = subprocess.run(
            ["redis-cli", "-u", f"redis://default:{t.password}@{t.host}:{t.port}/3", "PING"],
            env=bare, capture_output=True, text=True, timeout=20,
        )
        t.matches(r"^PONG$", done.stdout)

    def unix_socket():
        done = subprocess.run(["redis-cli", "-s", t.unix, "GET", "greeting"], env=t.environment, capture_output=True,
                              text=True, timeout=20)
        t.equal(done.stdout, "hello\n")

    def mass_insertion():
        rows = 100_000
        commands = b"".join(request(b"SET", b"mass:%d" % n, b"value %d" % n) for n in range(rows))
        out = t.cli("--pipe", stdin=commands)
        t.matches(rf"^errors: 0, replies: {rows}$", out)
        t.equal(t.cli("GET", f"mass:{rows - 1}"), f"value {rows - 1}\n")
        out = t.cli("--pipe", stdin=request(b"SET", b"mass:x") + request(b"PING") + b"INCR inline\r\n", status=1)
        t.matches(r"^errors: 1, replies: 3$", out)

    for name, body in (
        ("one command, raw and formatted", one_command),
        ("RESP2, RESP3, CSV and JSON output", resp3),
        ("commands and values from standard input", from_standard_input),
        ("-r and -n", repeated),
        ("errors are printed", errors),
        ("passwords: none, wrong, in an address", password),
        ("unix socket", unix_socket),
        ("--pipe inserts 100000 keys and counts errors", mass_insertion),
    ):
        t.check(f"redis-cli: {name}", body)


def request(*arguments):
    """A request of the protocol."""
    return b"*%d\r\n" % len(arguments) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in arguments)
