"""A headless Chromium with one page, which tests use as a person would."""

import contextlib
import itertools
import json
import os
import subprocess
import tempfile

from harness.compare import eventually


# Key codes.
TAB, ENTER = 9, 13
# More elements than any page in the tests has.
TABS_MAX = 200


class Browser:
    """A headless Chromium with one page, controlled through pipes: commands on file descriptor 3, answers on 4."""

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
                raise RuntimeError("the browser ended")
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
        """Opens a URL. Returns the errors on the page."""
        self.events.clear()
        self.send("Page.navigate", url=address)
        self.wait_loaded()
        return self.complaints()

    def wait_loaded(self):
        def is_loaded():
            return self.evaluate("document.readyState") == "complete" and self.evaluate("location.href") != "about:blank"

        if not eventually(is_loaded):
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
        """Clicks the element that matches a selector, and waits for the next page."""
        self.evaluate("window.isFormer = true")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        self.wait_next(f"a click on {selector}")

    def wait_next(self, what):
        """Waits until another page has replaced the one with window.isFormer."""
        def is_there():
            try:
                return self.evaluate("document.readyState === 'complete' && !window.isFormer")
            except RuntimeError:
                return False  # the former page is being replaced

        if not eventually(is_there):
            raise RuntimeError(f"{what} leads nowhere")

    def press(self, key, text="", code=0):
        """Presses a key. Keys that do not produce text have a key code."""
        written = text or (key if len(key) == 1 else "")
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=written, windowsVirtualKeyCode=code)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, words):
        for letter in words:
            self.press(letter)

    def enter(self):
        """Presses Enter, and waits for the next page."""
        self.evaluate("window.isFormer = true")
        self.press("Enter", "\r", ENTER)
        self.wait_next("Enter")

    def tab_to(self, words):
        """Presses Tab until the element with this text or label has the focus. The focus must be visible."""
        for _ in range(TABS_MAX):
            self.press("Tab", code=TAB)
            if self.evaluate("(document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText).trim()") == words:
                assert self.evaluate("getComputedStyle(document.activeElement).outlineStyle !== 'none'"), f"the focus on {words} is not seen"
                return
        raise RuntimeError(f"Tab does not lead to {words}")

    def close(self):
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def person(uri: str, program: str = "chromium"):
    """Yields a Person whose browser shows the first page of a server's console."""
    # Browser processes still write there for a moment after its end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            made = Person(browser)
            browser.open(f"{uri}/console")
            yield made
        finally:
            browser.close()


# The element of a kind that a person would use: it is visible, and it or its label has the given text.
FIND = """
(selector, words, row) => {
  const plain = (label) => [...label.childNodes].filter((e) => e.nodeType === Node.TEXT_NODE).map((e) => e.data).join("");
  const said = (e) => {
    const words = e.getAttribute("aria-label") ?? (e.labels?.length ? plain(e.labels[0]) : e.innerText);
    return words.trim().replace(/\\s+/g, " ");
  };
  const fits = (e) => e.checkVisibility() && !e.disabled && said(e) === words;
  const inRow = (e) => !row || e.closest("tr, li")?.innerText.includes(row);
  const found = [...document.querySelectorAll(selector)].filter((e) => fits(e) && inRow(e));
  if (!found.length) throw new Error(`nothing says ${words} on ${location.href}: ${document.body.innerText}`);
  return found[0];
}
"""


class Person:
    """Uses the console's pages only through visible text on links, buttons and fields, never through a URL."""

    def __init__(self, browser: Browser):
        self.browser = browser

    def _on(self, selector: str, words: str, do: str, row: str = "") -> None:
        self.browser.evaluate(f"{{ const it = ({FIND})({json.dumps(selector)}, {json.dumps(words)}, {json.dumps(row)}); {do} }}")

    def _go(self, selector: str, words: str, row: str) -> None:
        self.browser.evaluate("window.isFormer = true")
        self._on(selector, words, "it.click()", row)
        self.browser.wait_next(f"{words!r}")
        complaints = self.browser.complaints()
        assert not complaints, f"after {words!r}: {complaints}"

    def turn_to(self, section: str) -> None:
        """Follows a link at the top of the page."""
        self._go("header a", section, "")

    def follow(self, words: str, row: str = "") -> None:
        """Follows the first link with this text in the content. row is the rest of its table row or list item."""
        self._go("main a", words, row)

    def press(self, words: str, row: str = "") -> None:
        """Presses the button with this text, which leads to another page."""
        self._go("main button", words, row)

    def fill(self, label: str, text: str) -> None:
        """Types into a field, or chooses an option in it."""
        self._on("main input, main select", label, f"it.value = {json.dumps(text)}")

    def open_up(self, words: str) -> None:
        """Expands the collapsed section with this title."""
        self._on("main summary", words, "it.parentElement.open = true")

    def sees(self) -> str:
        """The text of the page's content."""
        return self.browser.evaluate("document.querySelector('main').innerText")

    def heading(self) -> str:
        return self.browser.evaluate("document.querySelector('h1').innerText")

    def panel(self, title: str) -> str:
        """The text of the section with this heading."""
        find = f"[...document.querySelectorAll('section')].find((each) => each.querySelector('h2')?.innerText === {json.dumps(title)})"
        return self.browser.evaluate(f"{find}?.innerText ?? ''")

    def rows(self, label: str) -> list[list[str]]:
        """The rows of the table with this label, as lists of cells."""
        find = f"[...document.querySelectorAll('.scroll')].find((each) => each.getAttribute('aria-label') === {json.dumps(label)})"
        cells = "(row) => [...row.cells].map((cell) => cell.innerText)"
        return self.browser.evaluate(f"[...{find}.querySelectorAll('tbody tr')].map({cells})")
