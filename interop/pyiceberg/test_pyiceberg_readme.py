"""The script of README.md, run as it stands there but for the server's address; keys of a bucket are in the environment."""

import re

import pytest
from harness import paths

pytestmark = pytest.mark.smoke

LINES_MAX = 10


def test_readme_script(catalog_server, capsys, monkeypatch):
    for name, value in catalog_server.files.variables.items():
        monkeypatch.setenv(name, value)
    text = (paths.REPOSITORY / "README.md").read_text()
    script = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    assert len(script.splitlines()) <= LINES_MAX
    script = script.replace("http://127.0.0.1:8181", catalog_server.uri)
    script = script.replace('warehouse="default"', f'warehouse="{catalog_server.warehouse}"')
    exec(compile(script, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert '[["Ada","Cleo"]]' in printed
    assert '[["Ada","Bea","Cleo"]]' in printed
