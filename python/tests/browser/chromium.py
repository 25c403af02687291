"""Headless Chromium through its debugging pipe: nothing is installed but the browser itself."""

import base64
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROGRAM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)

# Everything that a browser does on its own is off: what it asks for, the page asked for.
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-quic", "--no-first-run", "--no-default-browser-check",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-default-apps", "--disable-domain-reliability", "--disable-client-side-phishing-detection",
    "--metrics-recording-only", "--no-pings", "--hide-scrollbars", "--mute-audio", "--disable-dev-shm-usage",
    "--disable-gpu", "--enable-unsafe-swiftshader", "--remote-debugging-pipe",
]

# Chromium reads commands from file 3 and writes answers to file 4.
LAUNCH = """
import os, sys
read, write = int(sys.argv[1]), int(sys.argv[2])
read, write = os.dup(read), os.dup(write)
while min(read, write) < 5:
    read, write = os.dup(read), os.dup(write)
os.dup2(read, 3), os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser with an empty profile; its pages each have a size."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="latentgp-browser-"))
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        command = [PROGRAM, *FLAGS, f"--user-data-dir={self.folder / 'profile'}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(to_read), str(to_write), *command],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_read), os.close(to_write)
        self._number, self._answers, self._pages = 0, {}, {}
        self._lock = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        rest = b""
        while True:
            part = os.read(self._from, 1 << 20)
            if not part:
                return
            *messages, rest = (rest + part).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]].put(message)
                elif message.get("sessionId") in self._pages:
                    self._pages[message["sessionId"]].heard(message["method"], message["params"])

    def call(self, method, session=None, timeout=60, **params):
        with self._lock:
            self._number += 1
            number = self._number
            self._answers[number] = queue.Queue()
            message = {"id": number, "method": method, "params": params}
            if session:
                message["sessionId"] = session
            os.write(self._to, json.dumps(message).encode() + b"\0")
        try:
            answer = self._answers[number].get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"{method} took more than {timeout} s") from None
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def page(self, width=1280, height=800, dark=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, target, session, (width, height), dark)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Page:
    """One page, with everything that it asked for and complained about."""

    def __init__(self, browser, target, session, size, dark):
        self.browser, self.target, self.session, self.size = browser, target, session, size
        self.requests, self.complaints = [], []
        browser._pages[session] = self
        self.downloads = browser.folder / f"downloads-{session}"
        self.downloads.mkdir()
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        phone = size[0] < 600
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=phone)
        if phone:
            self.call("Emulation.setTouchEmulationEnabled", enabled=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def heard(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([a.get("value", a.get("description")) for a in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            text = params["entry"]["text"]
            # Without a graphics card the browser says so itself.
            if "GPU stall due to ReadPixels" not in text and "GL Driver Message" not in text:
                self.complaints.append(text)

    def open(self, address, timeout=60):
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready", timeout)

    def eval(self, code):
        found = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", code))
        return found["result"].get("value")

    def wait(self, code, timeout=20):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.eval(f"!!({code})"):
                return
            time.sleep(0.05)
        raise TimeoutError(f"after {timeout} s there is no {code}; the page says {self.eval('document.body?.innerText')[:400]!r}; {self.complaints}")

    def box(self, selector):
        """Where an element is, brought into view."""
        code = f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'nearest'}});
            const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})()"""
        return self.eval(code)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click_at(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", buttons=1, clickCount=1)

    def tap_at(self, x, y):
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def click(self, selector):
        x, y, w, h = self.box(selector)
        if self.size[0] < 600:
            # A tap soon after a movement is taken for a part of it.
            self.eval(f"document.querySelector({json.dumps(selector)}).click()")
        else:
            self.click_at(x + w / 2, y + h / 2)

    def drag(self, points, shift=False):
        """Along points, the button held."""
        keys = {"modifiers": 8} if shift else {}
        (x, y), *rest = points
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1, **keys)
        for x, y in rest:
            self.mouse("mouseMoved", x, y, button="left", buttons=1, **keys)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1, **keys)

    def key(self, name, code=None, text=None, **more):
        virtual = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}
        text = text if text is not None else name if len(name) == 1 else "\r" if name == "Enter" else ""
        known = {"windowsVirtualKeyCode": virtual[name]} if name in virtual else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, text=text, code=code or name, **known, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=code or name, **known, **more)

    def type(self, selector, text):
        self.eval(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def choose(self, label, value):
        """Sets a list by its label."""
        code = f"""(() => {{ const l = [...document.querySelectorAll('label.field')].find((l) => l.textContent.startsWith({json.dumps(label)}));
            const s = l.querySelector('select'); s.value = {json.dumps(str(value))}; s.dispatchEvent(new Event('change', {{bubbles: true}})); return s.value; }})()"""
        assert self.eval(code) == str(value)

    def press(self, text):
        """Clicks the button of that text."""
        code = f"""(() => {{ const b = [...document.querySelectorAll('button')].find((b) => b.textContent.trim() === {json.dumps(text)});
            b.setAttribute('data-wanted', '1'); return true; }})()"""
        self.eval(code)
        self.click("[data-wanted]")
        self.eval("document.querySelector('[data-wanted]')?.removeAttribute('data-wanted')")

    def drop(self, name, text):
        """Drops a file of that text onto the page."""
        self.eval(f"""(() => {{ const data = new DataTransfer();
            data.items.add(new File([{json.dumps(text)}], {json.dumps(name)}, {{type: 'text/csv'}}));
            for (const kind of ['dragover', 'drop']) document.querySelector('.plot').dispatchEvent(new DragEvent(kind, {{dataTransfer: data, bubbles: true, cancelable: true}})); }})()""")

    def downloaded(self, name, timeout=20):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            path = self.downloads / name
            if path.exists() and path.stat().st_size:
                return path.read_bytes()
            time.sleep(0.05)
        raise TimeoutError(f"{name} was not downloaded, only {[p.name for p in self.downloads.iterdir()]}")

    def shot(self, path, full=False):
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(base64.b64decode(found["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
