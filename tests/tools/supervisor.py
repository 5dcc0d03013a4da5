"""What a supervisor and an operator see: the states of a server for systemd, and a port that is in use."""

import socket

from directory import Client, ErrorReply, SECONDS_MAX


def systemd_is_notified(tools):
    path = tools.scratch / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(path))
        notified.settimeout(SECONDS_MAX)
        for option in ("auto", "systemd"):
            with tools.serve("supervised", "--supervised", option, environment={"NOTIFY_SOCKET": str(path)}) as server:
                until(notified, "READY=1")
                server.process.terminate()
                until(notified, "STOPPING=1")
                server.process.wait(timeout=SECONDS_MAX)
        with tools.serve("supervised", "--supervised", "no", environment={"NOTIFY_SOCKET": str(path)}) as server:
            server.shut_down()
        notified.settimeout(0)
        try:
            raise AssertionError(f"supervised no, and it says {notified.recv(4096)}")
        except BlockingIOError:
            pass


def until(notified, wanted):
    """Reads messages until one has this line."""
    while wanted not in notified.recv(4096).decode().splitlines():
        pass


def port_in_use_is_named(tools):
    with tools.serve("port-in-use") as server, Client(server.port) as client, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        try:
            raise AssertionError(client.call("CONFIG", "SET", "port", port))
        except ErrorReply as reply:
            if f"127.0.0.1:{port}" not in str(reply) or "Address already in use" not in str(reply):
                raise AssertionError(str(reply)) from reply
        if client.call("CONFIG", "GET", "port") != ["port", str(server.port)]:
            raise AssertionError("the port has changed all the same")


def run(tools):
    tools.check("systemd is notified of the start and of the end", lambda: systemd_is_notified(tools))
    tools.check("CONFIG SET of a port in use names the address and the reason", lambda: port_in_use_is_named(tools))
