"""`onggi cli` and `onggi bench` with TLS. Usage: own_tools.py DIRECTORY PROGRAM TLS_PORT PORT PASSWORD."""

import os
import subprocess
import sys

from authority import Authority

LINES = 2000
LONG = 3 << 20


def main():
    directory, program, tls_port, port, password = sys.argv[1:]
    Authority(directory, "other")
    trust = ["--cacert", f"{directory}/ca.pem"]
    identity = ["--cert", f"{directory}/client.pem", "--key", f"{directory}/client.key"]
    secret = {"REDISCLI_AUTH": password, "ONGGI_BENCH_PASSWORD": password}
    failed = 0

    def tool(*words, text=None):
        """What a tool prints, and its exit status."""
        done = subprocess.run(
            [program, *map(str, words)], input=text, capture_output=True, text=True, timeout=120,
            env={**os.environ, **secret},
        )
        return done.stdout + done.stderr, done.returncode

    def check(name, done, *parts, code=0):
        nonlocal failed
        printed, status = done
        problem = None
        if status != code:
            problem = f"exit status {status}"
        elif any(part not in printed for part in parts):
            problem = "the output"
        failed += problem is not None
        report = f"not ok - {name}: {problem}: it printed {printed[-300:]!r}" if problem else f"ok - {name}"
        print(report, flush=True)

    cli = ["cli", "-h", "localhost", "-p", tls_port]
    check("cli: one command", tool(*cli, "--tls", *trust, *identity, "PING"), "PONG")
    url = f"rediss://:{password}@127.0.0.1:{tls_port}/3"
    check("cli: rediss://", tool("cli", "-u", url, *trust, *identity, "CLIENT", "INFO"), " db=3 ")
    lines = "".join(f"SET key:{number} {number}\n" for number in range(LINES))
    done = tool(*cli, "--tls", *trust, *identity, text=lines + "DBSIZE\n")
    check("cli: lines of standard input", done, f"OK\n{LINES}\n")
    long = "x" * LONG
    check("cli: a value of many records", tool(*cli, "--tls", *trust, *identity, "-x", "ECHO", text=long), long)
    check("cli: --insecure", tool(*cli, "--tls", "--insecure", *identity, "PING"), "PONG")
    check("cli: --sni names another server", tool(*cli, "--tls", *trust, *identity, "--sni", "elsewhere", "PING"),
          "not valid for name", code=2)
    check("cli: another CA", tool(*cli, "--tls", "--cacert", f"{directory}/other.pem", *identity, "PING"),
          "invalid peer certificate: UnknownIssuer", code=2)
    check("cli: no certificate", tool(*cli, "--tls", *trust, "PING"), "needs a certificate of this client", code=2)
    check("cli: the suites of TLS 1.3", tool(*cli, "--tls", *trust, *identity, "--tls-ciphersuites", "TLS_X", "PING"),
          "tls-ciphersuites", "TLS_AES_128_GCM_SHA256", code=2)
    check("cli: a file without certificate", tool(*cli, "--tls", "--cacert", f"{directory}/ca.key", "PING"),
          "--cacert", "ca.key has no certificate", code=2)
    check("cli: --cacert without --tls", tool(*cli, *trust, "PING"), "--cacert is for connections with TLS", code=2)
    check("cli: a unix socket", tool("cli", "-s", "/nowhere", "--tls", *trust, "PING"), "TLS is for TCP", code=2)

    bench = ["bench", "run", "--addr", f"localhost:{tls_port}", "--tls", *trust, *identity, "-s", 0.5]
    small = tool(*bench, "-t", "set,get", "-P", 16, "-c", 20, "--threads", 2, "-k", 2000)
    check("bench: 20 connections, pipeline 16", small, "get, pipeline 16, 64 B")
    # A pipeline of 3 MB is longer than what the library and the socket take at once, in both directions.
    large = tool(*bench, "-t", "set,get", "-P", 16, "-c", 3, "-k", 100, "--value-size", 200_000)
    check("bench: values of many records", large, "get, pipeline 16, 200000 B")
    paced = tool(*bench, "-t", "get", "--rate", 2000, "-c", 5, "-k", 2000)
    check("bench: a fixed rate", paced, "2000 ops/s")
    for name, done in ("small", small), ("large", large), ("paced", paced):
        check(f"bench: no errors ({name})", (str("errors" not in done[0]), done[1]), "True")
    load = ["bench", "load", "--addr", f"localhost:{tls_port}", "--tls", *trust]
    check("bench: load", tool(*load, *identity, "-k", 5000, "--shuffled"), "bytes per key")
    check("bench: no certificate", tool(*load, "-k", 10), "needs a certificate of this client", code=2)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
