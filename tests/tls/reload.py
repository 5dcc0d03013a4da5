"""Certificates that change while clients send without pause: no request may fail."""

import os
import shutil
import signal
import ssl
import threading
import time

from authority import Authority
from expect import equal
from harness import SECONDS_MAX

RELOADS = 12
BATCH = 200
STAYING = 2
COMING = 2


class Load:
    """Threads that send until the end. Some keep their connection, and others make a new one for each batch."""

    def __init__(self, h):
        self.h = h
        self.is_over = threading.Event()
        self.problems = []
        self.counts = [0] * (STAYING + COMING)
        self.threads = [threading.Thread(target=self._send, args=(number,)) for number in range(STAYING + COMING)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def _send(self, number):
        name = f"count:{number}"
        client = self.h.client(max_connections=1)
        try:
            while not self.is_over.is_set():
                pipe = client.pipeline(transaction=False)
                for _ in range(BATCH):
                    pipe.incr(name)
                self.counts[number] += BATCH
                equal(pipe.execute()[-1], self.counts[number])
                if number >= STAYING:
                    client.close()
                    client = self.h.client(max_connections=1)
        except Exception as problem:
            self.problems.append(f"{name}: {type(problem).__name__}: {problem}")
        client.close()

    def moves(self):
        """Waits until each thread has had another batch answered."""
        before = list(self.counts)
        eventually(
            lambda: self.problems or all(now > then + BATCH for now, then in zip(self.counts, before)),
            "a client has no answer",
        )


def eventually(condition, problem):
    """Waits for a condition; the polls only shorten the wait."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(problem)
        time.sleep(0.005)


def shown(h):
    """The certificate that a new connection sees."""
    with h.connect(h.context()) as connection:
        return connection.getpeercert(binary_form=True)


def content(path):
    """The first certificate of a file."""
    with open(path, encoding="ascii") as file:
        return ssl.PEM_cert_to_DER_cert(file.read())


def install(h, name):
    """Puts a certificate and its key where the server reads them, each in one step."""
    for kind in "pem", "key":
        shutil.copy(h.path(f"{name}.{kind}"), h.path(f"next.{kind}"))
        os.replace(h.path(f"next.{kind}"), h.path(f"server.{kind}"))


def renewals(h):
    """CONFIG SET and SIGHUP, in turn, while clients send; a bad file in between changes nothing."""
    authority = Authority(h.directory, "ca2")
    admin = h.admin()
    # The new CA signs every second certificate. Clients and the server trust both.
    with open(h.path("both.pem"), "w", encoding="ascii") as both:
        for name in "ca", "ca2":
            with open(h.path(f"{name}.pem"), encoding="ascii") as one:
                both.write(one.read())
    os.replace(h.path("both.pem"), h.path("ca.pem"))
    equal(admin.config_set("tls-ca-cert-file", h.path("ca.pem")), True)
    authority.issue("second")
    shutil.copy(h.path("server.pem"), h.path("first.pem"))
    shutil.copy(h.path("server.key"), h.path("first.key"))
    with Load(h) as load:
        for number in range(RELOADS):
            name = ("second", "first")[number % 2]
            install(h, name)
            if number % 4 < 2:
                equal(admin.config_set("tls-cert-file", h.path("server.pem")), True)
                equal(shown(h), content(h.path(f"{name}.pem")))
            else:
                os.kill(h.pid, signal.SIGHUP)
                wanted = content(h.path(f"{name}.pem"))
                eventually(lambda: shown(h) == wanted, "SIGHUP did not change the certificate")
            load.moves()
            bad_file(h, admin)
            load.moves()
    equal(load.problems, [])
    for number, count in enumerate(load.counts):
        equal(int(admin.get(f"count:{number}")), count)
    print(f"# {sum(load.counts)} requests during {RELOADS} reloads", flush=True)


def bad_file(h, admin):
    """The half of a certificate is refused, and the one in force stays."""
    before = shown(h)
    with open(h.path("server.pem"), encoding="ascii") as whole, open(h.path("half.pem"), "w", encoding="ascii") as half:
        text = whole.read()
        half.write(text[: len(text) // 2])
    try:
        admin.config_set("tls-cert-file", h.path("half.pem"))
    except Exception as problem:
        equal("half.pem is not PEM" in str(problem), True)
    else:
        raise AssertionError("the half of a certificate was accepted")
    equal(shown(h), before)


def run(h):
    h.check("reload: no request fails while certificates change", renewals)
