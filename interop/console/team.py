#!/usr/bin/env python3
"""Walks the console of a server whose callers authenticate, with a headless Chromium.

    python3 interop/console/team.py [--server bin/moorage] [--widths 1280] [--screens .cache/screens]

As walk.py does, it opens the login page and the pages for an administrator, and looks for faults. Then it makes, rotates
and withdraws a key: only the answer to the form has the secret.
"""

import base64
import contextlib
import json
import re
import subprocess
import sys
import tempfile

from walk import arguments, walk

from harness.browser import Browser  # walk.py has set the path

PAGES = {
    "team-access": "/principals",
    "team-principal": "/principal?principal=key:etl",
    "team-key": "/principal/key?change=create&principal=key:etl&description=jobs&days=30",
    "team-grants": "/grants",
    "team-cluster": "/cluster",
}


def create_key(args, data, name, *flags):
    """Makes a key on a stopped store, and returns it."""
    command = [args.server, "key", "create", name, "--data", data, *flags]
    return re.search(r"mrg_\w+", subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout).group()


@contextlib.contextmanager
def listening(args, *words):
    """A server, as its address."""
    process = subprocess.Popen([args.server, "serve", "--listen", "127.0.0.1:0", *words], stdout=subprocess.PIPE, text=True)
    try:
        yield next(filter(None, (re.search(r"http://[0-9.:]+\d", line) for line in process.stdout))).group()
    finally:
        process.terminate()
        process.wait()


def look(browser, args, axe, name):
    """Takes a picture of the page. Returns what axe finds on it."""
    image = browser.send("Page.captureScreenshot", captureBeyondViewport=True)["data"]
    (args.screens / f"{name}.png").write_bytes(base64.b64decode(image))
    if not axe:
        return []
    browser.evaluate(axe)
    found = browser.evaluate("axe.run().then((r) => r.violations.map((v) => v.id))")
    return [f"{name}: axe {each}" for each in found]


def tasks(browser, uri, args, axe):
    """Makes, rotates and withdraws a key. Returns what axe finds on the pages of these changes."""
    browser.open(f"{uri}/console/principals")
    browser.evaluate("document.querySelector('input[name=principal]').value = 'walker'")
    browser.click("form[action$='/principal/key'] button")
    browser.click("button.primary")
    secret = browser.evaluate("document.querySelector('main pre code').innerText")
    assert secret.startswith("mrg_"), "the page does not show the key"
    assert secret not in browser.evaluate("location.href"), "the address has the key"
    faults = look(browser, args, axe, "team-secret")
    browser.evaluate("window.isFormer = true")
    browser.send("Page.reload")
    browser.wait_next("a reload")
    again = browser.evaluate("document.documentElement.outerHTML")
    assert secret not in again and "was shown once" in again, "a reload shows the key again"
    browser.complaints()  # the status of that page is one
    browser.click("main p a.button")
    assert secret not in browser.evaluate("document.documentElement.outerHTML"), "the next page has the key"
    browser.click("a[href*='change=rotate']")
    browser.click("button.primary")
    assert browser.evaluate("document.querySelector('main pre code').innerText") != secret, "the secret is not another one"
    browser.click("main p a.button")
    browser.click("a[href*='change=withdraw']")
    faults += look(browser, args, axe, "team-withdraw")
    browser.click("button.primary")
    assert "has no key" in browser.evaluate("document.querySelector('main').innerText"), "the key is not withdrawn"
    assert not browser.complaints(), "the tasks of a team have errors"
    return faults


def main():
    args, axe = arguments(__doc__)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        data = folder + "/data"
        admin = create_key(args, data, "root", "--admin")
        create_key(args, data, "etl", "--description", "nightly jobs")
        browser = Browser(args.chromium, folder + "/profile")
        # No provider answers at this address: the login page names it, and nothing asks it.
        issuer = "corp=http://127.0.0.1:9/lake,audience=moorage,console-client-id=console"
        try:
            with listening(args, "--keys", "--data", data, "--issuer", issuer) as uri:
                faults = walk(browser, uri, args, axe, {"team-login": "/login?back=/console/principals"})
                browser.evaluate(f"document.querySelector('input[name=credential]').value = {json.dumps(admin)}")
                browser.click("form[action$='/login'] button")
                assert browser.evaluate("location.pathname") == "/console/principals", "the sign-in does not lead back"
                faults += walk(browser, uri, args, axe, PAGES)
                faults += tasks(browser, uri, args, axe)
        finally:
            browser.close()
    for fault in faults:
        print(fault)
    print(f"{len(PAGES) + 1} pages of a team, {len(faults)} faults, screenshots in {args.screens}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
