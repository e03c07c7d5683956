"""Chromium without a window, told what to do over a pipe (its DevTools protocol); standard library only.

$CHROMIUM names another program than those on the path.
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The program, or None."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page, with its logged errors and its network requests."""

    def __init__(self, program, seconds=60):
        self.seconds = seconds
        self.folder = tempfile.mkdtemp(prefix="prony-browser-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def arrange():
            # Where the browser expects them: it reads from 3 and writes to 4.
            keep_in, keep_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(keep_in, 3)
            os.dup2(keep_out, 4)

        self.process = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             "--user-data-dir=" + self.folder, "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=arrange)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reader, self.writer = ours_in, ours_out
        os.set_blocking(self.reader, False)
        self.buffer, self.number, self.session = b"", 0, None
        self.errors, self.requests, self.events = [], [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.reader)
        os.close(self.writer)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self, deadline):
        """The next one from the browser, or None at the deadline."""
        while b"\0" not in self.buffer:
            try:
                part = os.read(self.reader, 1 << 20)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return None
                time.sleep(0.005)
                continue
            if not part:
                raise RuntimeError("the browser ended")
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def note(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(what["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.errors.append(str([part.get("value") for part in what["args"]]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.errors.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif method:
            self.events.append(method)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.writer, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + self.seconds
        while True:
            message = self.message(deadline)
            if message is None:
                raise TimeoutError(method)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def open(self, path, width=1280, height=900, dark=False, media="screen"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        deadline = time.monotonic() + self.seconds
        while "Page.loadEventFired" not in self.events:
            message = self.message(deadline)
            if message is None:
                raise TimeoutError(path)
            self.note(message)

    def run(self, script):
        """The value of an expression, or of a promise."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                         awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def press(self, key, code=None):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      text=key if len(key) == 1 else "")

    def picture(self, path, height=None, top=0):
        """What the window shows, or the page from `top` on, `height` pixels of it."""
        more = {}
        if height:
            width = self.run("innerWidth")
            more = {"clip": {"x": 0, "y": top, "width": width, "height": height, "scale": 1},
                    "captureBeyondViewport": True}
        shot = self.call("Page.captureScreenshot", format="png", **more)
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(shot["data"]))

    def paper(self):
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])
