#!/usr/bin/env python3
"""Checks the chart with Helm: `helm lint`, and what each file of deploy/helm/values makes of it.

    interop/box/chart.py [--update]

`helm template` must print deploy/helm/golden/NAME.yaml for deploy/helm/values/NAME.yaml; --update rewrites these
files. A test of cmd/moorage loads the settings in them. Values that would make a server without protection, or one
that does not start, must be refused. interop/setup.sh helm installs Helm.

Exit status: 0 all of it held, 1 something did not.
"""

import difflib
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
HELM = REPOSITORY / ".cache" / "interop" / "helm" / "bin" / "helm"
CHART = REPOSITORY / "deploy" / "helm" / "moorage"
VALUES = REPOSITORY / "deploy" / "helm" / "values"
GOLDEN = REPOSITORY / "deploy" / "helm" / "golden"
KUBERNETES = "1.32.0"

# Values that the chart refuses, and a part of what it says.
REFUSED = {
    "settings.keys=true": "keys would be sent in the clear",
    "tls.existingSecret=t,store.kind=postgres": "existingSecret",
    "tls.existingSecret=t,store.kind=sqlite": "kind",
    "tls.existingSecret=t,settings.listen=127.0.0.1:1": "listen",
    "tls.existingSecret=t,settings.data=/tmp": "data",
    "tls.existingSecret=t,ingress.enabled=true": "ingress.host is missing",
    "tls.existingSecret=t,metrics.serviceMonitor.enabled=true": "needs metrics.enabled",
}


def helm(*words: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([HELM, *words], capture_output=True, text=True)


def template(*words: str | Path) -> subprocess.CompletedProcess:
    return helm("template", "catalog", CHART, "--namespace", "data", "--kube-version", KUBERNETES, *words)


def faults(update: bool):
    """Yields what does not hold."""
    names = [file.name for file in sorted(VALUES.glob("*.yaml"))]
    for name in names:
        checked = helm("lint", "--strict", "--kube-version", KUBERNETES, "--values", VALUES / name, CHART)
        if checked.returncode != 0:
            yield f"{name}: {checked.stdout}{checked.stderr}"
        made, golden = template("--values", VALUES / name), GOLDEN / name
        if made.returncode != 0:
            yield f"{name}: {made.stderr}"
            continue
        if update:
            golden.write_text(made.stdout)
        want = golden.read_text() if golden.exists() else ""
        if made.stdout != want:
            lines = difflib.unified_diff(want.splitlines(), made.stdout.splitlines(), str(golden), "helm template", lineterm="")
            yield "\n".join(lines)
    if sorted(file.name for file in GOLDEN.iterdir()) != names:
        yield f"{GOLDEN} has other files than {VALUES}"
    for values, reason in REFUSED.items():
        made = template("--set", values)
        if made.returncode == 0 or reason not in made.stderr:
            yield f"--set {values}: exit status {made.returncode}, {made.stderr}"


def main() -> int:
    found = list(faults("--update" in sys.argv[1:]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
