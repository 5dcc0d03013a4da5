"""`onggi cli` next to redis-cli: the same words give the same output. Its prompt passes the checks of redis-cli."""

import json
import os
import subprocess
import tempfile
import time

import interactive
import modes
from tools import SECONDS_MAX, Tools

# Made before the comparison.
DATA = (
    ("SET", "own:text", 'quotes " and \\ and \n'), ("SET", "own:bytes", "a\x01é"), ("RPUSH", "own:list", *range(12)),
    ("HSET", "own:hash", "f", "1", "g", "2"), ("SADD", "own:set", "member"), ("ZADD", "own:zset", "1.5", "a", "2", "b"),
    ("XADD", "own:stream", "1-1", "field", "value"),
)
# Commands whose output is compared, each plain, for people, and for people over RESP3.
COMPARED = (
    ("GET", "own:text"), ("GET", "own:bytes"), ("GET", "own:nothing"), ("STRLEN", "own:text"), ("PING",),
    ("LRANGE", "own:list", "0", "-1"), ("LRANGE", "own:nothing", "0", "-1"), ("HGETALL", "own:hash"),
    ("SMEMBERS", "own:set"), ("ZRANGE", "own:zset", "0", "-1", "WITHSCORES"), ("ZSCORE", "own:zset", "a"),
    ("XRANGE", "own:stream", "-", "+"), ("XREAD", "STREAMS", "own:stream", "0"), ("MGET", "own:text", "own:nothing"),
    ("NOSUCH", "x"), ("LPUSH", "own:text", "x"), ("COMMAND", "INFO", "get"), ("CONFIG", "GET", "maxmemory*"),
    ("OBJECT", "HELP"), ("EVAL", "return {1,{2,'x'},false}", "0"), ("CLIENT", "GETNAME"),
)


class OwnCli(Tools):
    """`onggi cli` in the place of redis-cli."""

    name = "onggi cli"

    def __init__(self, onggi, *server):
        super().__init__(*server)
        self.onggi = onggi

    def argv(self, *arguments):
        return [self.onggi, "cli", "-h", self.host, "-p", self.port, *[str(a) for a in arguments]]


def run(theirs, onggi):
    own = OwnCli(onggi, theirs.host, theirs.port, theirs.password, theirs.unix)

    def same_output():
        for command in DATA:
            theirs.cli(*command)
        for form in ((), ("--no-raw",), ("-3", "--no-raw"), ("-3", "--raw"), ("--csv",), ("-3", "--csv")):
            for command in COMPARED:
                t_out, o_out = theirs.cli(*form, *command), own.cli(*form, *command)
                own.equal(o_out, t_out, f"{form} {command}")

    def standard_input():
        lines = b"SET own:n 1\nINCR own:n\n\nGET 'own:n'\nECHO \"a\\x41\\n\"\n"
        own.equal(own.cli(stdin=lines), theirs.cli(stdin=lines))
        own.equal(own.cli("-x", "SET", "own:piped", stdin=b"a\x00b\xff"), "OK\n")
        own.equal(own.cli("--no-raw", "GET", "own:piped"), '"a\\x00b\\xff"\n')

    def repeated():
        own.equal(own.cli("-r", "3", "-i", "0.01", "INCR", "own:counted"), "1\n2\n3\n")
        own.equal(own.cli("-n", "7", "SET", "elsewhere", "7"), "OK\n")
        own.equal(own.cli("-n", "7", "DBSIZE"), "1\n")
        own.equal(own.cli("-n", "7", "FLUSHDB"), "OK\n")

    def json_output():
        own.equal(json.loads(own.cli("--json", "CONFIG", "GET", "maxmemory")), {"maxmemory": "0"})
        own.equal(json.loads(own.cli("--json", "LRANGE", "own:list", "0", "1")), ["0", "1"])
        own.equal(json.loads(own.cli("--json", "GET", "own:nothing")), None)

    def mass_insertion():
        rows = 20_000
        commands = b"".join(modes.request(b"SET", b"own:mass:%d" % n, b"x" * 50) for n in range(rows))
        out = own.cli("--pipe", stdin=commands)
        own.equal(out.splitlines()[-2:], ["Last reply received from server.", f"errors: 0, replies: {rows}"])
        # Replies of 20 MB: the requests are not all written before the first is read.
        own.cli("SET", "own:long", "x" * 10_000)
        out = own.cli("--pipe", stdin=modes.request(b"GET", b"own:long") * 2000)
        own.matches(r"^errors: 0, replies: 2000$", out)
        out = own.cli("--pipe", stdin=modes.request(b"SET", b"own:mass:x") + b"PING\r\nINCR inline\r\n", status=1)
        own.matches(r"^ERR wrong number of arguments for 'set' command$", out)
        own.matches(r"^errors: 1, replies: 3$", out)
        # The server waits for the rest of a request.
        out = own.cli("--pipe", "--pipe-timeout", 1, stdin=b"*2\r\n$99\r\n", status=1)
        own.matches(r"No replies for 1 seconds", out)

    def scripts():
        with tempfile.TemporaryDirectory() as home:
            file = os.path.join(home, "script.lua")
            with open(file, "w", encoding="utf-8") as out:
                out.write("return {KEYS, ARGV}")
            for words in (("a", "b", ",", "c"), ("a",), (",", "c", ","), ()):
                own.equal(own.cli("--no-raw", "--eval", file, *words), theirs.cli("--no-raw", "--eval", file, *words))
        own.matches(r"/no/script: No such file", own.cli("--eval", "/no/script", status=2))

    def refusals():
        own.matches(r"--cluster is for Redis Cluster", own.cli("--cluster", "info", status=2))
        for words, remedy in (
            (("--rdb", "/tmp/x.rdb"), "use BGSAVE RDB"), (("--functions-rdb", "/tmp/x.rdb"), "use FUNCTION DUMP"),
            (("--replica",), "use MONITOR"), (("--slave",), "use MONITOR"), (("--ldb",), "run the script with --eval"),
        ):
            own.matches(remedy, own.cli(*words, status=2))
        own.matches("--mono is for --latency-dist", own.cli("--mono", "PING", status=2))
        own.matches("is for --memkeys", own.cli("--memkeys-samples", 5, "PING", status=2))
        own.matches("0 is not in 1..", own.cli("--lru-test", "0", status=2))
        own.matches(r"cannot be used with", own.cli("--scan", "--bigkeys", status=2))
        own.matches(r"--pattern and --type are for --scan", own.cli("--pattern", "a*", "PING", status=2))
        own.matches(r"^\"own:long\"$", own.cli("--no-raw", "--scan", "--pattern", "own:lon*", "--type", "string"))

    def exit_codes():
        own.cli("NOSUCH", status=0)
        own.cli("-e", "NOSUCH", status=1)
        own.cli("-e", stdin=b"PING\nNOSUCH\n", status=1)
        done = subprocess.run([onggi, "cli", "-p", "1", "PING"], capture_output=True, text=True, timeout=SECONDS_MAX)
        own.equal(done.returncode, 2)
        own.matches(r"127\.0\.0\.1:1: cannot connect", done.stderr)

    def logins():
        bare = {k: v for k, v in own.environment.items() if k != "REDISCLI_AUTH"}
        for words, code, wanted in (
            (["-p", own.port, "GET", "a"], 0, r"^NOAUTH Authentication required\."),
            (["-p", own.port, "-a", "wrong", "GET", "a"], 2, r"WRONGPASS"),
            (["-u", f"redis://default:{own.password}@{own.host}:{own.port}/3", "PING"], 0, r"^PONG$"),
            (["-s", own.unix, "-a", own.password, "PING"], 0, r"^PONG$"),
        ):
            done = subprocess.run([onggi, "cli", *words], env=bare, capture_output=True, text=True, timeout=SECONDS_MAX)
            own.matches(wanted, done.stdout + done.stderr)
            own.equal(done.returncode, code, words)

    def messages():
        with own.start("SUBSCRIBE", "own:channel") as process:
            own.equal([process.stdout.readline() for _ in range(3)], ["subscribe\n", "own:channel\n", "1\n"])
            theirs.cli("PUBLISH", "own:channel", "hello")
            own.equal([process.stdout.readline() for _ in range(3)], ["message\n", "own:channel\n", "hello\n"])
            process.terminate()

    for name, body in (
        ("output as of redis-cli", same_output),
        ("commands and values from standard input", standard_input),
        ("-r, -i and -n", repeated),
        ("--json", json_output),
        ("--pipe", mass_insertion),
        ("--eval", scripts),
        ("what does not go together, and clusters", refusals),
        ("exit codes", exit_codes),
        ("passwords, addresses, unix socket", logins),
        ("messages of a subscription", messages),
    ):
        own.check(f"onggi cli: {name}", body)
    with tempfile.TemporaryDirectory() as home:
        own.environment.update(HOME=home)
        history = os.path.join(home, ".onggi_history")
        interactive.run(own)

        def at_the_prompt():
            terminal = interactive.Terminal(own)
            try:
                terminal.until(interactive.PROMPT)
                terminal.type("acl setuser x >secret-word\r")
                terminal.until("OK")
                terminal.until(interactive.PROMPT)
                terminal.type("blpop own:nothing 0\r")
                deadline = time.monotonic() + SECONDS_MAX
                while "blocked_clients:1" not in theirs.cli("INFO", "clients"):
                    assert time.monotonic() < deadline, "BLPOP does not wait"
                    time.sleep(0.02)
                terminal.type("\x03")
                terminal.until("interrupted")
                terminal.until("not connected> ")
                terminal.type("incr own:after\r")
                terminal.until(r"\(integer\) 1")
                terminal.until(interactive.PROMPT)
            finally:
                terminal.close()
            with open(history) as file:
                lines = file.read()
            own.matches("blpop own:nothing 0", lines)
            own.equal("secret-word" in lines, False, "a password is in the history")
            own.equal(os.stat(history).st_mode & 0o077, 0, "others can read the history")

        own.check("onggi cli at a terminal: Ctrl-C ends a wait, and the history has no passwords", at_the_prompt)
    theirs.failed += own.failed
