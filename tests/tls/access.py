"""Which clients may connect: certificates of clients, the server's own, versions, and what speaks without TLS."""

import socket
import ssl

import redis
from authority import Authority
from expect import equal
from harness import SECONDS_MAX, refused


def mutual(h):
    """A certificate of the CA is needed; one of another CA will not do."""
    other = Authority(h.directory, "other")
    other.issue("stranger")
    equal(h.client().ping(), True)
    refused(h.client(shows=None))
    refused(h.client(shows="stranger"))
    url = (
        f"rediss://:{h.password}@localhost:{h.tls_port}/3?ssl_ca_certs={h.path('ca.pem')}"
        f"&ssl_certfile={h.path('client.pem')}&ssl_keyfile={h.path('client.key')}"
    )
    client = redis.from_url(url)
    equal(client.set("by url", "x"), True)
    equal(h.client(db=3).get("by url"), b"x")


def optional(h):
    """Whether clients need a certificate can change while the server runs."""
    admin = h.admin()
    for setting, without_is_served in ("optional", True), ("no", True), ("yes", False):
        equal(admin.config_set("tls-auth-clients", setting), True)
        equal(h.client().ping(), True)
        if without_is_served:
            equal(h.client(shows=None).ping(), True)
        else:
            refused(h.client(shows=None))


def password(h):
    """A certificate does not replace the password."""
    client = h.client()
    client.connection_pool.connection_kwargs["password"] = None
    try:
        client.get("k")
    except redis.AuthenticationError:
        return
    raise AssertionError("a client without the password was served")


def server_is_checked(h):
    """The client refuses a server of a CA that it does not trust, and one of another name."""
    refused(h.client(trusts="other"), "CERTIFICATE_VERIFY_FAILED")
    authority = Authority(h.directory, "ca", is_new=False)
    authority.issue("elsewhere", common_name="elsewhere", names="subjectAltName=DNS:elsewhere")
    show(h, "elsewhere")
    for host in "localhost", "127.0.0.1":
        refused(h.client(host=host), "CERTIFICATE_VERIFY_FAILED")
    show(h, "server")
    for host in "localhost", "127.0.0.1":
        equal(h.client(host=host).ping(), True)


def show(h, name):
    """Has the server show another certificate."""
    pair = ["tls-cert-file", h.path(f"{name}.pem"), "tls-key-file", h.path(f"{name}.key")]
    equal(h.admin().execute_command("CONFIG", "SET", *pair) in (b"OK", True), True)


def versions(h):
    """TLS 1.2 and 1.3 are served."""
    for version, name in (ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3"):
        context = h.context()
        context.minimum_version = context.maximum_version = version
        with h.connect(context) as connection:
            equal(connection.version(), name)


def sessions(h):
    """A session is resumed; after a reload it is not, and the client is still served."""
    context = h.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with h.connect(context) as connection:
        session = connection.session
    with h.connect(context, session) as connection:
        equal(connection.session_reused, True)
    equal(h.admin().config_set("tls-ca-cert-file", h.path("ca.pem")), True)
    with h.connect(context, session) as connection:
        equal(connection.session_reused, False)


def plain(h):
    """A client without TLS is closed, and so is one that ends in its handshake; others are served."""
    for bytes_sent in (b"*1\r\n$4\r\nPING\r\n", b"\x16\x03\x01", b""):
        with socket.create_connection(("127.0.0.1", h.tls_port), timeout=SECONDS_MAX) as connection:
            connection.sendall(bytes_sent)
            connection.shutdown(socket.SHUT_WR)
            try:
                answer = connection.recv(4096)
            except ConnectionResetError:
                answer = b""
            equal(answer.startswith(b"+"), False)
    equal(h.client().ping(), True)


def run(h):
    for name, body in (
        ("clients need a certificate of the CA", mutual),
        ("tls-auth-clients changes while the server runs", optional),
        ("a certificate does not replace the password", password),
        ("the client checks the server's CA and name", server_is_checked),
        ("TLS 1.2 and 1.3", versions),
        ("sessions are resumed until a reload", sessions),
        ("a client without TLS is closed", plain),
    ):
        h.check(f"access: {name}", body)
