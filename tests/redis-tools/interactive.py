"""A client at a terminal: hints from COMMAND DOCS while typing, completion by TAB, HELP, prompts."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

SECONDS_MAX = 30

# Sequences that move the cursor or change colours.
CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

# Keys typed before it appears are dropped, since the line editor changes the terminal's mode between two lines.
PROMPT = r"\d(\[\d+\])?> "


class Terminal:
    """A client on a pseudo-terminal."""

    def __init__(self, tools, argv=None):
        argv = argv or tools.argv()
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            # Without a size the line editor asks the terminal for one, and this one has no answers.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 250, 0, 0))
            os.environ.update(tools.environment)
            os.execvp(argv[0], argv)
        self.text = ""

    def type(self, text):
        """Sends keys."""
        os.write(self.end, text.encode())

    def until(self, pattern):
        """Reads until the pattern stands in what came since the last call; returns the match."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            found = re.search(pattern, self.text)
            if found:
                self.text = self.text[found.end():]
                return found
            if time.monotonic() > deadline or not select.select([self.end], [], [], deadline - time.monotonic())[0]:
                raise AssertionError(f"{pattern!r} did not appear in {self.text[-500:]!r}")
            self.text = CONTROL.sub("", self.text + os.read(self.end, 65536).decode("utf-8", "replace"))

    def close(self):
        """Ends the program."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.end)


def run(t):
    def at_terminal(body):
        def inside():
            terminal = Terminal(t)
            try:
                terminal.until(rf"{t.host}:{t.port}> ")
                body(terminal)
            finally:
                terminal.close()
        return inside

    def hints(terminal):
        # The options after IFEQ are newer than this redis-cli: they can only come from the server.
        terminal.type("set ")
        terminal.until(r"key value .*IFEQ comparison-value")
        terminal.type("mykey ")
        terminal.until(r"value .*\[NX")
        terminal.type("\x15getex ")
        terminal.until(r"key \[EX seconds\|PX milliseconds\|EXAT unix-time-seconds")
        terminal.type("\x15client kill ")
        terminal.until(r"\[ID client-id \[client-id")

    def newer_command(terminal):
        terminal.type("delifeq ")
        terminal.until(r"key value")

    def completion(terminal):
        terminal.type("getra\t")
        terminal.until(r"(?i)getrange")

    def help_of_a_command(terminal):
        terminal.type("help setrange\r")
        terminal.until(r"SETRANGE key offset value")
        terminal.until(r"summary: \w+")
        terminal.until(r"since: 2\.2\.0")
        terminal.until(r"group: string")
        terminal.until(PROMPT)
        terminal.type("help @bitmap\r")
        terminal.until(r"BITCOUNT")

    def transaction_prompt(terminal):
        terminal.type("multi\r")
        terminal.until(r"\(TX\)> ")
        terminal.type("incr in-tx\r")
        terminal.until("QUEUED")
        terminal.until(r"\(TX\)> ")
        terminal.type("exec\r")
        terminal.until(r"1\) \(integer\) 1")
        terminal.until(PROMPT)
        terminal.type("select 5\r")
        terminal.until(r"\[5\]> ")

    for name, body in (
        ("hints while typing come from the server", hints),
        ("hints for a command newer than the tool", newer_command),
        ("completion by TAB", completion),
        ("HELP of a command and of a group", help_of_a_command),
        ("prompt follows MULTI and SELECT", transaction_prompt),
    ):
        t.check(f"{t.name} at a terminal: {name}", at_terminal(body))
