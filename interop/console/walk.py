#!/usr/bin/env python3
"""Walks every page of the console of `moorage demo` with a headless Chromium, and takes screenshots.

    python3 interop/console/walk.py [--server bin/moorage] [--widths 1280] [--screens .cache/screens]

Every page must open without an error in its console, without a report of the content security policy, without
horizontal scrolling, and without a violation that axe-core finds (interop/setup.sh axe), in both themes. Then the script
does what people do: it drops a table and brings it back, rolls a table back, makes a tag, and finds a name by keyboard.
"""

import argparse
import base64
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
AXE = ROOT / ".cache/interop/axe/node_modules/axe-core/axe.min.js"
OF = "warehouse=default&namespace=harbour"
PAGES = {
    "overview": "",
    "warehouses": "/warehouses",
    "warehouse": "/warehouse?warehouse=default",
    "browse": f"/browse?{OF}",
    "table": f"/table?{OF}&table=voyages",
    "health": f"/table?{OF}&table=voyages&deep=yes",
    "rows": f"/table/rows?{OF}&table=voyages",
    "history": f"/table/history?{OF}&table=ships",
    "diff": f"/table/diff?{OF}&table=ships&from=now~3&to=now",
    "rollback": f"/table/rollback?{OF}&table=ships&to=now~3",
    "snapshots": f"/table/snapshots?{OF}&table=voyages",
    "maintenance": f"/table/maintenance?{OF}&table=ships",
    "table-access": f"/grants?{OF}&table=ships",
    "metadata": f"/table/metadata?{OF}&table=ships",
    "view": f"/view?{OF}&view=busiest",
    "dropped": f"/dropped?{OF}",
    "changes": "/changes",
    "search": "/search?q=s",
    "operations": "/operations",
    "access": "/principals",
    "api": "/api",
    "missing": f"/table?{OF}&table=nothing",
}


class Browser:
    """A headless Chromium with one page, driven through pipes: file 3 takes commands, and file 4 gives answers."""

    def __init__(self, program, profile):
        commands_in, self.commands = os.pipe()
        self.answers, answers_out = os.pipe()

        def arrange():
            os.dup2(commands_in, 3)
            os.dup2(answers_out, 4)

        for inherited in (commands_in, answers_out):
            os.set_inheritable(inherited, True)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=arrange, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands_in)
        os.close(answers_out)
        self.ids, self.rest, self.events = itertools.count(1), b"", []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(domain + ".enable")

    def receive(self):
        while b"\0" not in self.rest:
            part = os.read(self.answers, 1 << 20)
            if not part:
                sys.exit("walk.py: the browser ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **params):
        number = next(self.ids)
        message = {"id": number, "method": method, "params": params}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != number:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return answer["result"]

    def wait(self, method):
        while True:
            for i, event in enumerate(self.events):
                if event.get("method") == method:
                    del self.events[: i + 1]
                    return
            self.events.append(self.receive())

    def evaluate(self, expression):
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def open(self, address):
        """Opens an address. Returns what went wrong on the page."""
        self.events.clear()
        self.send("Page.navigate", url=address)
        self.wait_loaded()
        return self.complaints()

    def wait_loaded(self):
        for _ in range(300):
            if self.evaluate("document.readyState") == "complete" and self.evaluate("location.href") != "about:blank":
                return
            time.sleep(0.05)
        raise RuntimeError("the page does not load")

    def complaints(self):
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("text", "exception"))
            if event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            if event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                entry = params["entry"]
                if not (entry["source"] == "network" and "404" in entry["text"]):
                    found.append(entry["text"])
        self.events.clear()
        return found

    def click(self, selector):
        """Clicks on what a selector finds, and waits for the page that it leads to."""
        self.evaluate("window.isFormer = true")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        self.wait_next(f"a click on {selector}")

    def wait_next(self, what):
        """Waits until another page took the place of the one with window.isFormer."""
        for _ in range(300):
            try:
                if self.evaluate("document.readyState === 'complete' && !window.isFormer"):
                    return
            except RuntimeError:
                pass  # the former page is being replaced
            time.sleep(0.05)
        raise RuntimeError(f"{what} leads nowhere")

    def press(self, key, text=""):
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text or (key if len(key) == 1 else ""))
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def close(self):
        self.process.terminate()
        self.process.wait()


def walk(browser, uri, args, axe):
    """Opens every page in both themes at each width. Returns the faults."""
    faults = []
    for width, theme in itertools.product(args.widths, ("light", "dark")):
        browser.send("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        for name, path in PAGES.items():
            at = f"{name} at {width} px, {theme}"
            faults += [f"{at}: {fault}" for fault in browser.open(f"{uri}/console{path}")]
            if browser.evaluate("document.documentElement.scrollWidth > innerWidth"):
                faults.append(f"{at}: it scrolls sideways")
            if axe:
                browser.evaluate(axe)
                found = browser.evaluate("axe.run().then((r) => r.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`))")
                faults += [f"{at}: axe {each}" for each in found]
            image = browser.send("Page.captureScreenshot", captureBeyondViewport=name == "table")["data"]
            (args.screens / f"{name}-{theme}-{width}.png").write_bytes(base64.b64decode(image))
    return faults


def tasks(browser, uri):
    """Does what people do. Raises an error if one of the tasks cannot be done."""
    drop = urllib.request.Request(f"{uri}/v1/default/namespaces/harbour/tables/ports", method="DELETE")
    urllib.request.urlopen(drop).close()
    browser.open(f"{uri}/console/changes")
    assert "ports" in browser.evaluate("document.querySelector('main').innerText"), "the feed has no drop"
    browser.click("main tbody tr a")  # the newest change: the drop
    assert "anonymous" in browser.evaluate("document.querySelector('main').innerText"), "the caller of the drop is missing"
    browser.click("a[href*='change=undrop']")
    browser.click("button.primary")
    assert "Done." in browser.evaluate("document.querySelector('[role=status]').innerText")
    browser.open(f"{uri}/console/table?{OF}&table=ports")
    assert browser.evaluate("document.querySelector('h1').innerText") == "ports", "the table is not back"

    browser.open(f"{uri}/console/table/history?{OF}&table=ships")
    browser.click("tbody tr:nth-child(2) a[href*='rollback']")
    browser.click("button.primary")
    assert "move main" in browser.evaluate("document.querySelector('tbody tr').innerText"), "the rollback is not in the history"

    browser.open(f"{uri}/console")
    for key in "/":
        browser.press(key)
    for letter in "ships":
        browser.press(letter)
    for _ in range(100):
        if browser.evaluate("document.querySelector('dialog #found li')?.innerText.includes('ships') ?? false"):
            break
        time.sleep(0.05)
    browser.evaluate("window.isFormer = true")
    browser.press("Enter", "\r")
    browser.wait_next("Enter")
    assert browser.evaluate("document.querySelector('h1').innerText") == "ships", "the keyboard does not find the table"
    browser.open(f"{uri}/console/table/snapshots?{OF}&table=ships")
    browser.click("tbody tr:last-child a")
    browser.evaluate("document.querySelector('input[name=ref]').value = 'walked'")
    browser.click("form[action$='/table/ref'] button")
    browser.click("button.primary")
    assert "walked" in browser.evaluate("document.querySelector('main').innerText"), "the tag is missing"
    assert not browser.complaints(), "the tasks have errors"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default=str(ROOT / "bin/moorage"))
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--widths", type=int, nargs="+", default=[1280])
    parser.add_argument("--screens", type=pathlib.Path, default=ROOT / ".cache/screens")
    parser.add_argument("--without-axe", action="store_true", help="do not look for violations with axe-core")
    args = parser.parse_args()
    args.screens.mkdir(parents=True, exist_ok=True)
    axe = "" if args.without_axe else AXE.read_text()
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([args.server, "demo", "--data", folder + "/demo", "--listen", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, text=True)
        browser = None
        try:
            uri = re.search(r"http://[0-9.:]+\d", server.stdout.readline()).group()
            browser = Browser(args.chromium, folder + "/profile")
            faults = walk(browser, uri, args, axe)
            tasks(browser, uri)
        finally:
            if browser:
                browser.close()
            server.terminate()
            server.wait()
    for fault in faults:
        print(fault)
    print(f"{len(PAGES)} pages, {len(faults)} faults, screenshots in {args.screens}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
