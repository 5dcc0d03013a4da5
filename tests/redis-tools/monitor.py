"""MONITOR: a second connection sees every command with time, database and address, and no passwords."""

import re

LINE = re.compile(r'^\d+\.\d{6} \[(\d+) (\S+)\] (.*)$')


def run(t):
    def watch():
        process = t.start("MONITOR")
        try:
            t.equal(process.stdout.readline().strip(), "OK")
            t.cli("SET", "watched", "a \"quoted\" \x01 value")
            t.cli("-n", "4", "GET", "watched")
            t.cli("AUTH", "secret-one")
            t.cli("AUTH", "default", "secret-two")
            t.cli("HELLO", "3", "AUTH", "default", "secret-three")
            t.cli("CONFIG", "SET", "requirepass", t.password)
            t.cli("ECHO", "the end")
            lines = []
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if '"the end"' in line:
                    break
        finally:
            process.kill()
            process.wait()
        seen = [LINE.match(line) for line in lines]
        t.equal(all(seen), True, lines)
        commands = [(match[1], match[3]) for match in seen]
        t.equal(("0", r'"SET" "watched" "a \"quoted\" \x01 value"') in commands, True, lines)
        t.equal(("4", '"GET" "watched"') in commands, True, lines)
        t.equal(all(re.match(r"^127\.0\.0\.1:\d+$", match[2]) for match in seen), True, lines)
        whole = "\n".join(lines)
        for secret in ("secret-one", "secret-two", "secret-three", t.password):
            t.equal(secret in whole, False, f"a password was shown: {whole}")

    def commands_in_transactions():
        process = t.start("MONITOR")
        try:
            process.stdout.readline()
            t.cli(stdin=b"MULTI\nINCR seen\nEXEC\nECHO done\n")
            names = []
            for line in process.stdout:
                names.append(LINE.match(line.rstrip("\n"))[3].split('"')[1].upper())
                if '"done"' in line:
                    break
        finally:
            process.kill()
            process.wait()
        t.equal(sorted(name for name in names if name in ("MULTI", "INCR", "EXEC")), ["EXEC", "INCR", "MULTI"])

    t.check("MONITOR shows commands, databases and addresses, and no passwords", watch)
    t.check("MONITOR shows the commands of a transaction once", commands_in_transactions)
