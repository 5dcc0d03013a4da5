"""A headless Chromium over its debugging pipe: messages of JSON, each ended by a zero byte, without a driver."""

import base64
import json
import os
import select
import subprocess
import time

SECONDS_MAX = 60


class Browser:
    """One tab. `console` collects errors of scripts and failed requests."""

    def __init__(self, program, profile):
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()

        def pipes():
            # Chromium reads commands from descriptor 3 and writes to 4.
            os.dup2(to_browser, 63)
            os.dup2(from_browser, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(
            [
                program,
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--disable-background-networking", "--window-size=1280,1400", "--remote-debugging-pipe",
                f"--user-data-dir={profile}", "about:blank",
            ],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.events, self.console, self.session = b"", 0, [], [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=SECONDS_MAX)
        os.close(self.to)
        os.close(self.back)

    def call(self, method, **params):
        """The result of a command of the protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def run(self, script):
        """The value of an expression in the page, or of the promise that it is."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script, what):
        """Waits until an expression is true."""
        deadline = time.monotonic() + SECONDS_MAX
        while not self.run(script):
            assert time.monotonic() < deadline, f"{what} does not come true"
            time.sleep(0.05)

    def load(self, url):
        """Loads a page, and returns the milliseconds until it was loaded as the browser measured them."""
        self.call("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'", "the load")
        return self.run("performance.getEntriesByType('navigation')[0].loadEventStart")

    def picture(self, path):
        """Saves the whole page as a PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def _read(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.back], [], [], left)[0], "the browser does not answer"
            read = os.read(self.back, 1 << 16)
            assert read, "the browser has ended"
            self.buffer += read
        text, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.console.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.console.append(" ".join(str(value.get("value")) for value in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.console.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
