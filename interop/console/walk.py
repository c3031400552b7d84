#!/usr/bin/env python3
"""Walks every page of the console of `moorage demo` with a headless Chromium, and takes screenshots.

    python3 interop/console/walk.py [--server bin/moorage] [--widths 1280] [--scripts on] [--screens .cache/screens]
                                    [--images docs/images]

Every page must open without an error in its console, without a report of the content security policy, without
horizontal scrolling, and without a violation that axe-core finds (interop/setup.sh axe), in both themes, with scripts and
with --scripts on off also without them. Then the script does what people do: it drops a table and brings it back, and rolls
a table back. By keyboard alone it finds a table and makes a tag.
"""

import argparse
import base64
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "interop/lib"))

from harness.browser import Browser  # noqa: E402
from harness.compare import eventually  # noqa: E402

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
    "preview": f"/table/maintenance?{OF}&table=ships&preview=snapshots",
    "pause": f"/maintenance/change?{OF}&table=ships&change=pause",
    "snapshot": f"/table/snapshots?{OF}&table=voyages&snapshot=main",
    "files": f"/table/snapshots?{OF}&table=voyages&snapshot=main&files=yes&manifest=0",
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
# The pages whose screenshots are in the README and the guide.
IMAGES = ["table", "history", "maintenance"]


def walk(browser, uri, args, axe, pages=PAGES):
    """Opens every page in both themes at each width. Returns the faults."""
    faults = []
    for scripts, width, theme in itertools.product(args.scripts, args.widths, ("light", "dark")):
        browser.send("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        for name, path in pages.items():
            at = f"{name} at {width} px, {theme}, scripts {scripts}"
            browser.send("Emulation.setScriptExecutionDisabled", value=scripts == "off")
            faults += [f"{at}: {fault}" for fault in browser.open(f"{uri}/console{path}")]
            # The page was made without scripts if they are off. From here on, the walk uses them.
            browser.send("Emulation.setScriptExecutionDisabled", value=False)
            if browser.evaluate("document.documentElement.scrollWidth > innerWidth"):
                faults.append(f"{at}: it scrolls sideways")
            if axe:
                browser.evaluate(axe)
                found = browser.evaluate("axe.run().then((r) => r.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`))")
                faults += [f"{at}: axe {each}" for each in found]
            image = browser.send("Page.captureScreenshot", captureBeyondViewport=name == "table")["data"]
            without = "" if scripts == "on" else "-without-script"
            (args.screens / f"{name}-{theme}-{width}{without}.png").write_bytes(base64.b64decode(image))
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
    assert "rollback" in browser.evaluate("document.querySelector('tbody tr').innerText"), "the rollback is not in the history"

    by_keyboard(browser, uri)
    assert not browser.complaints(), "the tasks have errors"


def by_keyboard(browser, uri):
    """Finds a table and makes a tag, with keys alone."""
    browser.open(f"{uri}/console")
    browser.press("/")
    browser.type("ships")
    eventually(lambda: browser.evaluate("document.querySelector('dialog #found li')?.innerText.includes('ships') ?? false"))
    browser.enter()
    assert browser.evaluate("document.querySelector('h1').innerText") == "ships", "the keyboard does not find the table"
    browser.tab_to("Snapshots")
    browser.enter()
    newest = browser.evaluate("document.querySelector('.graph tbody a').innerText")
    browser.tab_to(newest)
    browser.enter()
    browser.tab_to("Name of the ref")
    browser.type("walked")
    browser.enter()
    browser.tab_to("Make tag walked")
    browser.enter()
    assert "tag walked" in browser.evaluate("document.querySelector('.graph').innerText"), "the tag is missing"


def arguments(description):
    """What the command line of a walk says, with the program of axe-core as the second result."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default=str(ROOT / "bin/moorage"))
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--widths", type=int, nargs="+", default=[1280])
    parser.add_argument("--scripts", choices=["on", "off"], nargs="+", default=["on"], help="walk with scripts, without, or both")
    parser.add_argument("--screens", type=pathlib.Path, default=ROOT / ".cache/screens")
    parser.add_argument("--images", type=pathlib.Path, help="the folder for the images of the documents, which are 1280 px wide")
    parser.add_argument("--without-axe", action="store_true", help="do not look for violations with axe-core")
    args = parser.parse_args()
    args.screens.mkdir(parents=True, exist_ok=True)
    return args, "" if args.without_axe else AXE.read_text()


def main():
    args, axe = arguments(__doc__)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = subprocess.Popen([args.server, "demo", "--data", folder + "/demo", "--listen", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, text=True)
        browser = None
        try:
            uri = re.search(r"http://[0-9.:]+\d", server.stdout.readline()).group()
            browser = Browser(args.chromium, folder + "/profile")
            faults = walk(browser, uri, args, axe)
            tasks(browser, uri)
            if args.images:
                for name in IMAGES:
                    shutil.copyfile(args.screens / f"{name}-light-1280.png", args.images / f"console-{name}.png")
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
