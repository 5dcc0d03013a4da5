"""What a supervisor and an operator see: the states of a server for systemd, and a port that is in use."""

import socket
import threading
import time

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


def alive_within(notified, seconds):
    """When systemd was told that the server lives, in the time to come: seconds from now."""
    begun, times = time.monotonic(), []
    while (left := begun + seconds - time.monotonic()) > 0:
        notified.settimeout(left)
        try:
            if "WATCHDOG=1" in notified.recv(4096).decode().splitlines():
                times.append(time.monotonic() - begun)
        except TimeoutError:
            break
    return times


def killed(client, *words):
    """Runs a script that another client ends."""
    try:
        raise AssertionError(f"it ends with {client.call(*words)}")
    except ErrorReply:
        pass


def the_watchdog_is_fed(tools):
    """While the only worker turns, and while a script keeps it; not while a command does."""
    path = tools.scratch / "watchdog.sock"
    environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "400000"}
    options = ["--supervised", "systemd", "--workers", "1", "--enable-debug-command", "local",
               "--busy-reply-threshold", "100"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(path))
        notified.settimeout(SECONDS_MAX)
        with tools.serve("watched", *options, environment=environment) as server:
            with Client(server.port) as client, Client(server.port) as other:
                until(notified, "WATCHDOG=1")
                script = threading.Thread(target=killed, args=(client, "EVAL", "while true do end", "0"))
                script.start()
                fed = alive_within(notified, 4)
                other.call("SCRIPT", "KILL")
                script.join(SECONDS_MAX)
                if not [at for at in fed if at > 3]:
                    raise AssertionError(f"a script runs, and the server seems dead: {fed[-3:]}")
                sleep = threading.Thread(target=other.call, args=("DEBUG", "SLEEP", "5"))
                sleep.start()
                fed = alive_within(notified, 4.5)
                if not fed or [at for at in fed if at > 3.5]:
                    raise AssertionError(f"a worker stands still, and the server seems alive: {fed[-3:]}")
                sleep.join(SECONDS_MAX)
                notified.settimeout(SECONDS_MAX)
                until(notified, "WATCHDOG=1")


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
    tools.check("the watchdog of systemd is fed while workers turn or a script runs",
                lambda: the_watchdog_is_fed(tools))
    tools.check("CONFIG SET of a port in use names the address and the reason", lambda: port_in_use_is_named(tools))
