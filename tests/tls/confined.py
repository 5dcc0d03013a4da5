"""The sandbox of a running server: renewed certificates, rotated logs, a backup, and what is out of reach.

Usage: confined.py DIRECTORY PROGRAM PORT TLS_PORT. DIRECTORY has what the stage made; see authority.py.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from authority import Authority, openssl
from expect import equal, within

SECONDS_MAX = 60


class Confined:
    """A server whose files are in separate directories, and reports of checks."""

    def __init__(self, directory, program, port, tls_port):
        self.certificates, self.program, self.port, self.tls_port = Path(directory), program, port, tls_port
        self.home = self.certificates / "confined"
        self.failed = 0
        for name in "data", "live", "archive", "logs", "etc", "outside", "allowed":
            (self.home / name).mkdir(parents=True)
        for kind in "pem", "key":
            for name in "archive", "outside", "allowed":
                shutil.copy(self.certificates / f"server.{kind}", self.home / name / f"server1.{kind}")
            (self.home / "live" / f"server.{kind}").symlink_to(f"../archive/server1.{kind}")
        (self.home / "etc" / "users.acl").write_text("user default on nopass ~* &* +@all\n")
        self.log = self.home / "logs" / "onggi.log"
        live = self.home / "live"
        (self.home / "etc" / "onggi.conf").write_text("\n".join([
            f"port {port}", f"tls-port {tls_port}", "tls-auth-clients no", "http-port 0", "loglevel verbose",
            f"dir {self.home}/data", f"unixsocket {self.home}/data/socket", f"logfile {self.log}",
            f"aclfile {self.home}/etc/users.acl", f"audit-log-file {self.home}/logs/audit.log",
            f"tls-cert-file {live}/server.pem", f"tls-key-file {live}/server.key",
            f"sandbox-allow-path {self.home}/allowed", "",
        ]))

    def start(self, *more):
        """Starts the server, and waits until it answers."""
        self.process = subprocess.Popen(
            [self.program, "serve", str(self.home / "etc" / "onggi.conf"), *more], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.eventually(lambda: "PONG" in self.cli("PING"), "the server does not answer")

    def end(self):
        """Ends it, and fails unless it ends well."""
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(SECONDS_MAX), 0)

    def cli(self, *words):
        """What the server answers."""
        done = subprocess.run([self.program, "cli", "-p", self.port, *words], capture_output=True, text=True)
        return (done.stdout + done.stderr).strip()

    def shown(self):
        """The serial number of the certificate that a new connection sees."""
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{self.tls_port}"], input="", capture_output=True, text=True,
        )
        return subprocess.run(
            ["openssl", "x509", "-noout", "-serial"], input=done.stdout, capture_output=True, text=True,
        ).stdout

    def eventually(self, condition, problem):
        """Waits for a condition; the polls only shorten the wait."""
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(f"{problem}; the log says: {self.log.read_text()[-2000:]}")
            time.sleep(0.02)

    def check(self, name, body):
        """Runs `body`; what it raises is the failure."""
        try:
            body(self)
            print(f"ok - sandbox: {name}", flush=True)
        except Exception as problem:
            self.failed += 1
            print(f"not ok - sandbox: {name}: {type(problem).__name__}: {problem}", flush=True)


def threads(c):
    """Every thread has the filter, and the log says which parts are in force."""
    tasks = list(Path(f"/proc/{c.process.pid}/task").iterdir())
    for task in tasks:
        status = (task / "status").read_text()
        within("Seccomp:\t2", status)
        within("NoNewPrivs:\t1", status)
    equal(len(tasks) > 3, True)
    within("sandbox:        no other programs (seccomp); only files of its directories (Landlock)", c.log.read_text())


def renewal(c):
    """certbot: new files in the archive, the links moved, then CONFIG SET, or SIGHUP."""
    authority = Authority(c.certificates, "ca", is_new=False)
    for number, signals in (2, False), (3, True):
        name = f"server{number}"
        before = c.shown()
        for file, kind in zip(authority.issue(name), ("pem", "key")):
            shutil.copy(file, c.home / "archive" / f"{name}.{kind}")
            link = c.home / "live" / f"server.{kind}"
            link.unlink()
            link.symlink_to(f"../archive/{name}.{kind}")
        if signals:
            c.process.send_signal(signal.SIGHUP)
        else:
            equal(c.cli("CONFIG", "SET", "tls-cert-file", f"{c.home}/live/server.pem"), "OK")
        c.eventually(lambda: c.shown() not in ("", before), "the certificate stays the old one")


def passphrase(c):
    """A key with a passphrase: without it, with a wrong one, and with the right one, which no log has."""
    before = c.shown()
    pair = Authority(c.certificates, "ca", is_new=False).issue("secret")
    certificate, key = (c.home / "allowed" / f"secret.{kind}" for kind in ("pem", "key"))
    shutil.copy(pair[0], certificate)
    openssl("pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", pair[1], "-out", key, "-passout", "pass:pass phrase")
    names = ["tls-cert-file", str(certificate), "tls-key-file", str(key)]
    within("has a passphrase: give it to tls-key-file-pass", c.cli("CONFIG", "SET", *names))
    within("passphrase of tls-key-file-pass: it is wrong", c.cli("CONFIG", "SET", *names, "tls-key-file-pass", "other"))
    equal(c.shown(), before)
    equal(c.cli("CONFIG", "SET", *names, "tls-key-file-pass", "pass phrase"), "OK")
    equal(c.shown() not in ("", before), True)
    c.cli("CONFIG", "SET", "slowlog-log-slower-than", "0")
    equal(c.cli("CONFIG", "SET", *names, "tls-key-file-pass", "pass phrase"), "OK")
    equal("pass phrase" in c.cli("SLOWLOG", "GET", "100") + c.log.read_text(), False)
    audit = (c.home / "logs" / "audit.log").read_text()
    equal("pass phrase" in audit, False)
    within('"tls-key-file-pass":"(redacted)"', audit)


def watched(c):
    """With tls-auto-reload-interval the server finds new files by itself, and names a bad one once."""
    equal(c.cli("CONFIG", "GET", "tls-auto-reload-interval"), "tls-auto-reload-interval\n0")
    pair = ["tls-cert-file", f"{c.home}/live/server.pem", "tls-key-file", f"{c.home}/live/server.key"]
    equal(c.cli("CONFIG", "SET", "tls-auto-reload-interval", "1", *pair), "OK")
    before = c.shown()
    for kind in "pem", "key":
        link = c.home / "live" / f"server.{kind}"
        link.unlink()
        link.symlink_to(f"../archive/server2.{kind}")
    c.eventually(lambda: c.shown() not in ("", before), "the certificate stays the old one")
    found = c.shown()
    file = c.home / "archive" / "server2.pem"
    text = file.read_text()
    file.write_text("nothing")
    said = "the files of TLS have changed: tls-cert-file: "
    c.eventually(lambda: said in c.log.read_text(), "nothing is said of a bad file")
    equal(c.shown(), found)
    # Another look or two.
    time.sleep(2.5)
    equal(c.log.read_text().count(said), 1)
    file.write_text(text)
    equal(c.cli("CONFIG", "SET", "tls-auto-reload-interval", "0"), "OK")


def outside(c):
    """A later path outside is refused, by the name of its directive; one that is allowed is read."""
    before = c.shown()
    for directive, kind in ("tls-cert-file", "pem"), ("tls-key-file", "key"), ("tls-ca-cert-file", "pem"):
        answer = c.cli("CONFIG", "SET", directive, f"{c.home}/outside/server1.{kind}")
        within(directive, answer)
        within(f"outside/server1.{kind}", answer)
        within("sandbox-allow-path", answer)
    answer = c.cli("CONFIG", "SET", "tls-ca-cert-dir", f"{c.home}/outside")
    within("tls-ca-cert-dir", answer)
    within("sandbox-allow-path", answer)
    equal(c.shown(), before)
    link = c.home / "live" / "server.pem"
    link.unlink()
    link.symlink_to(c.home / "outside" / "server1.pem")
    c.process.send_signal(signal.SIGHUP)
    said = "SIGHUP: tls-cert-file: cannot read"
    c.eventually(lambda: said in c.log.read_text(), "SIGHUP said nothing of the certificate")
    pair = ["tls-cert-file", f"{c.home}/allowed/server1.pem", "tls-key-file", f"{c.home}/allowed/server1.key"]
    equal(c.cli("CONFIG", "SET", *pair), "OK")


def fixed(c):
    """The paths of files that the server writes, and the sandbox itself, do not change while it runs."""
    for directive in "dir", "aclfile", "logfile", "audit-log-file", "dbfilename", "sandbox", "sandbox-allow-path":
        answer = c.cli("CONFIG", "SET", directive, "no" if directive == "sandbox" else f"{c.home}/outside/x")
        within(directive, answer)
        within("ERR", answer)


def rotation(c):
    """logrotate renames both logs: the next line begins a new file."""
    for log, command in (c.log, ["CLIENT", "NO-EVICT", "on"]), (c.home / "logs" / "audit.log", ["ACL", "SAVE"]):
        log.rename(f"{log}.1")
        c.process.send_signal(signal.SIGHUP)
        c.cli(*command)
        c.eventually(log.exists, f"there is no new {log.name}")


def written(c):
    """What the server writes: users, configuration, checkpoints, and the hold of a backup."""
    equal(c.cli("ACL", "SETUSER", "app", "on", "nopass", "~*", "+get"), "OK")
    equal(c.cli("ACL", "SAVE"), "OK")
    within("user app on", (c.home / "etc" / "users.acl").read_text())
    equal(c.cli("CONFIG", "SET", "maxmemory-samples", "7"), "OK")
    equal(c.cli("CONFIG", "REWRITE"), "OK")
    within("maxmemory-samples 7", (c.home / "etc" / "onggi.conf").read_text())
    equal(c.cli("SET", "k", "v"), "OK")
    equal(c.cli("SAVE"), "OK")
    backup = subprocess.run(
        [c.program, "backup", "--from", f"127.0.0.1:{c.port}", "--into", c.home / "outside" / "backup"],
        capture_output=True, text=True,
    )
    equal((backup.returncode, backup.stderr if backup.returncode else ""), (0, ""))
    equal(c.cli("CONFIG", "GET", "sandbox"), "sandbox\nyes")


def off(c):
    """With `sandbox no`, the same path is read, and no thread has a filter."""
    status = Path(f"/proc/{c.process.pid}/status").read_text()
    within("Seccomp:\t0", status)
    pair = ["tls-cert-file", f"{c.home}/outside/server1.pem", "tls-key-file", f"{c.home}/outside/server1.key"]
    equal(c.cli("CONFIG", "SET", *pair), "OK")
    within("sandbox:        off", c.log.read_text())


def missing(c):
    """A path of sandbox-allow-path that does not exist ends the start, with its name."""
    done = subprocess.run(
        [c.program, "serve", "--port", "0", "--unixsocket", c.home / "s", "--dir", c.home / "data", "--http-port", "0",
         "--sandbox-allow-path", f"{c.home}/allowed {c.home}/nowhere"],
        capture_output=True, text=True, timeout=SECONDS_MAX,
    )
    equal(done.returncode != 0, True)
    within(f"sandbox-allow-path {c.home}/nowhere: ", done.stdout + done.stderr)


def main():
    confined = Confined(*sys.argv[1:])
    confined.start()
    for name, body in (
        ("every thread has the filter", threads),
        ("certbot renews a certificate", renewal),
        ("new files are found", watched),
        ("a later path outside names its directive", outside),
        ("a key with a passphrase", passphrase),
        ("paths of written files do not change", fixed),
        ("logs are rotated", rotation),
        ("users, configuration and backups are written", written),
    ):
        confined.check(name, body)
    confined.check("the server ends", Confined.end)
    confined.check("a missing sandbox-allow-path", missing)
    for kind in "pem", "key":
        link = confined.home / "live" / f"server.{kind}"
        os.remove(link)
        link.symlink_to(f"../archive/server1.{kind}")
    confined.start("--sandbox", "no")
    confined.check("sandbox no", off)
    confined.check("the server ends without it", Confined.end)
    return 1 if confined.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
