"""redis-cli with `--tls`, as Debian ships it. Usage: redis_cli.py DIRECTORY PORT PASSWORD."""

import os
import subprocess
import sys

KEYS = 10_000


def main():
    directory, port, password = sys.argv[1:]

    def cli(*words, text=None, shows=True):
        """What redis-cli prints, and its exit status."""
        identity = ["--cert", f"{directory}/client.pem", "--key", f"{directory}/client.key"] if shows else []
        done = subprocess.run(
            ["redis-cli", "-h", "localhost", "-p", port, "--tls", "--cacert", f"{directory}/ca.pem", *identity, *words],
            input=text, capture_output=True, text=True, timeout=120, env={**os.environ, "REDISCLI_AUTH": password},
        )
        return done.stdout + done.stderr, done.returncode

    failed = 0

    def check(name, got, part):
        nonlocal failed
        failed += part not in got
        print(f"ok - redis-cli: {name}" if part in got else f"not ok - redis-cli: {name}: it printed {got[-300:]!r}",
              flush=True)

    check("one command", cli("PING")[0], "PONG")
    check("no certificate", cli("PING", shows=False)[0].lower(), "error")
    inserted = "".join(f"SET key:{number} {number:0100}\n" for number in range(KEYS))
    check("--pipe", cli("--pipe", text=inserted)[0], f"errors: 0, replies: {KEYS}")
    check("--scan", str(len(cli("--scan", "--pattern", "key:*")[0].split())), str(KEYS))
    check("--bigkeys", cli("--bigkeys")[0], f"Sampled {KEYS} keys")
    check("INFO tls", cli("INFO", "tls")[0], "tls_server_cert_expires_in_seconds:25")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
