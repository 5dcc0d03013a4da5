"""The page and the metrics from another address: with a login and over TLS, or not at all.

Usage: page_access.py DIRECTORY PROGRAM PORT HTTP_PORT. DIRECTORY has what the stage made; see authority.py. Another
address of this machine stands for another host. Without one, only what loopback shows is checked.
"""

import base64
import hashlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

from authority import Authority
from expect import equal, within

SECONDS_MAX = 60
PASSWORD = "correct-horse"
TOKEN, NEW_TOKEN = "mF_9.B5f-4.1JqM-7d1c", "a-new-token-of-the-same-user"
PATHS = ("/", "/metrics", "/healthz", "/readyz", "/api/info", "/api/live", "/api/clients", "/nothing")


class Page:
    """A server, and reports of checks."""

    def __init__(self, directory, program, port, http_port):
        self.directory, self.program, self.port, self.http_port = Path(directory), program, port, http_port
        self.failed = 0
        self.audit, self.tokens = self.directory / "page-audit.log", self.directory / "page-tokens"
        self.other = own_address()

    def words(self, *more):
        """The command line of a server."""
        return [
            self.program, "serve", "--port", self.port, "--bind", "127.0.0.1", "--dir", self.directory / "page-data",
            "--http-port", self.http_port, *map(str, more),
        ]

    def certificates(self):
        """The options that name them, and a CA for those of clients."""
        server = self.directory / "server"
        return ["--tls-cert-file", f"{server}.pem", "--tls-key-file", f"{server}.key", "--tls-auth-clients", "optional",
                "--tls-ca-cert-file", self.directory / "ca.pem", "--tls-auth-clients-user", "CN"]

    def start(self):
        """Starts the server, and waits until it answers."""
        addresses = " ".join(["127.0.0.1", *([self.other] if self.other else [])])
        self.write_tokens(f"# of the page\n\ngrafana {TOKEN}\n")
        self.log = open(self.directory / "page.log", "w+")
        self.process = subprocess.Popen(
            self.words("--http-bind", addresses, "--http-tls", "yes", *self.certificates(), "--requirepass", PASSWORD,
                       "--audit-log-file", self.audit, "--http-token-file", self.tokens),
            stdout=self.log, stderr=subprocess.STDOUT, text=True,
        )
        self.eventually(lambda: "PONG" in self.cli("PING"), "the server does not answer")

    def write_tokens(self, text, mode=0o600):
        """Replaces the file of tokens."""
        self.tokens.write_text(text)
        self.tokens.chmod(mode)

    def said(self):
        """The log so far."""
        return (self.directory / "page.log").read_text()

    def cli(self, *words):
        """What the server answers to the default user."""
        command = [self.program, "cli", "-p", self.port, *words]
        login = {**os.environ, "REDISCLI_AUTH": PASSWORD}
        done = subprocess.run(command, capture_output=True, text=True, env=login)
        return (done.stdout + done.stderr).strip()

    def eventually(self, condition, problem):
        """Waits for a condition; the polls only shorten the wait."""
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(problem)
            time.sleep(0.02)

    def get(self, path, host=None, user=None, password=PASSWORD, token=None, certificate=None):
        """Status, head and text of an answer over TLS, as this user, with this token or certificate, or as none."""
        context = ssl.create_default_context(cafile=self.directory / "ca.pem")
        context.check_hostname = False
        if certificate:
            context.load_cert_chain(*certificate)
        host = host or self.other or "127.0.0.1"
        connection = http.client.HTTPSConnection(host, self.http_port, timeout=SECONDS_MAX, context=context)
        heads = {}
        if user is not None:
            heads["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        if token is not None:
            heads["Authorization"] = f"Bearer {token}"
        connection.request("GET", path, headers=heads)
        answer = connection.getresponse()
        text = "" if path == "/api/live" and answer.status == 200 else answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text

    def check(self, name, body):
        """Runs `body`; what it raises is the failure."""
        try:
            body(self)
            print(f"ok - page: {name}", flush=True)
        except Exception as problem:
            self.failed += 1
            print(f"not ok - page: {name}: {type(problem).__name__}: {problem}", flush=True)


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing: only the route is looked up.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def refused_starts(p):
    """Another address without a login, or without TLS, ends the start with a sentence."""
    for more, said in (
        ([], "http-bind has 10.0.0.1, which other hosts may reach, and there is no login: set requirepass"),
        (["--requirepass", PASSWORD], "passwords would be readable on the way: set http-tls yes"),
        (["--requirepass", PASSWORD, "--http-tls", "yes"], "tls-cert-file is not set"),
        (["--http-tls", "yes", *p.certificates(), "--http-token-file", "/nowhere"],
         "http-token-file /nowhere: No such file or directory"),
    ):
        address = "127.0.0.1" if "--http-tls" in more else "10.0.0.1"
        words = p.words("--http-bind", address, *more)
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_MAX)
        equal(done.returncode != 0, True)
        within(said, done.stdout + done.stderr)


def nothing_without_login(p):
    """No path answers a client of another address without the password of a user."""
    equal(p.cli("ACL", "SETUSER", "open", "on", "nopass", "+@all", "~*"), "OK")
    for path in PATHS:
        for user, password in (None, ""), ("open", "x"), ("nobody", "x"):
            status, heads, text = p.get(path, user=user, password=password)
            equal((path, status), (path, 401))
            within('Basic realm="onggi"', heads["www-authenticate"])
            equal("redis_" in text or "onggi_version" in text, False)
    equal(p.cli("ACL", "DELUSER", "open"), "1")


def users(p):
    """A user with INFO sees the metrics, one with PING whether the server works, and others nothing."""
    equal(p.cli("ACL", "SETUSER", "scraper", "on", f">{PASSWORD}", "resetkeys", "+info"), "OK")
    equal(p.cli("ACL", "SETUSER", "probe", "on", f">{PASSWORD}", "+ping"), "OK")
    status, _, text = p.get("/metrics", user="scraper")
    equal(status, 200)
    within("redis_up 1", text)
    equal(p.get("/api/clients", user="scraper")[0], 403)
    equal([p.get(path, user="probe")[0] for path in ("/healthz", "/metrics")], [200, 403])
    equal([p.get(path, user="default")[0] for path in ("/", "/api/clients", "/api/live")], [200] * 3)
    equal(p.cli("ACL", "SETUSER", "scraper", "off"), "OK")
    equal(p.get("/metrics", user="scraper")[0], 401)


def tokens(p):
    """A token of the file logs its user in, while that is enabled."""
    equal(p.get("/metrics", token=TOKEN)[0], 401)
    equal(p.cli("ACL", "SETUSER", "grafana", "on", "resetpass", "+info"), "OK")
    status, _, text = p.get("/metrics", token=TOKEN)
    equal(status, 200)
    within("redis_up 1", text)
    equal(p.get("/api/clients", token=TOKEN)[0], 403)
    # A browser asks for a name and a password.
    equal(p.get("/metrics", user=TOKEN, password="")[0], 200)
    for wrong in ("", TOKEN[:-1], TOKEN + "c", "grafana", "x" * 10_000):
        equal((wrong, p.get("/metrics", token=wrong)[0]), (wrong, 401))
    for words in (("reset", "on"), ("off",)):
        equal(p.cli("ACL", "SETUSER", "grafana", *words), "OK")
        equal(p.get("/metrics", token=TOKEN)[0], 403 if "on" in words else 401)
    equal(p.cli("ACL", "SETUSER", "grafana", "on", "+info"), "OK")
    p.eventually(lambda: '"by":"token"' in p.audit.read_text(), "the audit log has no token")
    within("(token)", p.cli("ACL", "LOG"))
    equal(TOKEN in p.audit.read_text() + p.said() + p.cli("ACL", "LOG"), False)


def new_tokens(p):
    """CONFIG SET, SIGHUP and a look from time to time read the file again, and a bad one changes nothing."""
    status = lambda token: p.get("/metrics", token=token)[0]
    again = lambda: p.cli("CONFIG", "SET", "http-token-file", p.tokens)
    hashed = hashlib.sha256(NEW_TOKEN.encode()).hexdigest()
    p.write_tokens(f"grafana #{hashed}\n")
    equal([status(TOKEN), status(NEW_TOKEN)], [200, 401])
    equal(again(), "OK")
    equal([status(TOKEN), status(NEW_TOKEN)], [401, 200])
    p.write_tokens("grafana short\n")
    within("line 1: the token has 5 characters, and has to have 16 to 512", again())
    p.tokens.unlink()
    within("No such file", again())
    p.process.send_signal(signal.SIGHUP)
    p.eventually(lambda: "No such file or directory; the tokens in force stay" in p.said(), "the log does not say why")
    equal(status(NEW_TOKEN), 200)
    p.write_tokens(f"grafana {TOKEN}\n", mode=0o644)
    p.process.send_signal(signal.SIGHUP)
    p.eventually(lambda: status(TOKEN) == 200, "SIGHUP does not read the tokens")
    p.eventually(lambda: f"can read http-token-file {p.tokens}: chmod o= {p.tokens}" in p.said(), "no warning")
    equal(p.cli("CONFIG", "SET", "tls-auto-reload-interval", "1"), "OK")
    p.write_tokens("# nobody\n")
    p.eventually(lambda: status(TOKEN) == 401, "the file is not looked at")
    within("has no token, so none logs in", p.said())
    equal(p.cli("CONFIG", "SET", "tls-auto-reload-interval", "0"), "OK")


def certificates(p):
    """The user that a certificate names is logged in, if no other login is given."""
    authority = Authority(p.directory, "ca", is_new=False)
    mine, other = (authority.issue(f"page-{name}", name) for name in ("cert-user", "nobody"))
    equal(p.get("/metrics", certificate=mine)[0], 401)
    within("tls-cert", p.cli("ACL", "LOG"))
    equal(p.cli("ACL", "SETUSER", "cert-user", "on", "resetpass", "+info"), "OK")
    within("redis_up 1", p.get("/metrics", certificate=mine)[2])
    equal([p.get(path, certificate=mine)[0] for path in ("/", "/api/clients")], [200, 403])
    equal(p.get("/metrics", certificate=mine, user="cert-user", password="x")[0], 401)
    equal(p.get("/metrics", certificate=other)[0], 401)
    equal(p.get("/metrics", certificate=other, user="default")[0], 200)
    equal(p.cli("CONFIG", "SET", "tls-auth-clients-user", "off"), "OK")
    equal(p.get("/metrics", certificate=mine)[0], 401)
    p.eventually(lambda: '"certificate":"cert-user"' in p.audit.read_text(), "the audit log has no certificate")


def logins_are_noted(p):
    """Refused logins are in ACL LOG and the audit log with the client's address, and delay its next ones."""
    p.cli("ACL", "LOG", "RESET")
    began = time.monotonic()
    for _ in range(8):
        equal(p.get("/metrics", user="default", password="wrong")[0], 401)
    took = time.monotonic() - began
    # At least 200 ms each. A right one waits as the last wrong one, and ends it.
    equal(took >= 1.6, True)
    within("auth", p.cli("ACL", "LOG"))
    within(f"addr={p.other}:", p.cli("ACL", "LOG"))
    equal(p.get("/metrics", user="default")[0], 200)

    def lines(result):
        found = [json.loads(line) for line in p.audit.read_text().splitlines()]
        return [line for line in found if line["event"] == "login" and line["result"] == result
                and line["client"].startswith(f"{p.other}:")]

    p.eventually(lambda: len(lines("refused")) >= 8 and lines("ok"), "the audit log has no lines")
    equal({line["user"] for line in lines("refused")} >= {"default", "nobody"}, True)


def own_host(p):
    """Loopback needs no login for the metrics, over TLS as well."""
    equal(p.get("/metrics", host="127.0.0.1")[0], 200)
    equal(p.get("/healthz", host="127.0.0.1")[0], 200)
    equal(p.get("/api/clients", host="127.0.0.1")[0], 401)
    equal(p.get("/api/clients", host="127.0.0.1", user="default")[0], 200)
    with socket.create_connection(("127.0.0.1", p.http_port), timeout=SECONDS_MAX) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        equal(plain.makefile("rb").read().startswith(b"HTTP"), False)


def renewal(p):
    """A renewed certificate is shown after SIGHUP."""
    def shown():
        pem = ssl.get_server_certificate(("127.0.0.1", int(p.http_port)))
        return ssl.PEM_cert_to_DER_cert(pem)

    before = shown()
    Authority(p.directory, "ca", is_new=False).issue("renewed")
    for kind in "pem", "key":
        os.replace(p.directory / f"renewed.{kind}", p.directory / f"server.{kind}")
    p.process.send_signal(signal.SIGHUP)
    p.eventually(lambda: shown() != before, "the certificate stays the old one")
    equal(p.get("/metrics", host="127.0.0.1")[0], 200)


def end(p):
    """The server ends with connections that stay open."""
    with socket.create_connection(("127.0.0.1", int(p.http_port))):
        p.process.send_signal(signal.SIGTERM)
        equal(p.process.wait(SECONDS_MAX), 0)


def main():
    page = Page(*sys.argv[1:])
    page.check("other addresses need a login and TLS", refused_starts)
    page.start()
    try:
        checks(page)
    finally:
        page.process.kill()
    return 1 if page.failed else 0


def checks(page):
    """What the running server shows."""
    if page.other:
        page.check("no answer without a login", nothing_without_login)
        page.check("users see what they may", users)
        page.check("tokens", tokens)
        page.check("new tokens", new_tokens)
        page.check("certificates that name users", certificates)
        page.check("logins are noted and delayed", logins_are_noted)
    page.check("this host", own_host)
    page.check("a renewed certificate", renewal)
    page.check("the end", end)


if __name__ == "__main__":
    raise SystemExit(main())
