"""The paths of the repository, its cache, and the files that interop/setup.sh put there."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
CACHE = REPOSITORY / ".cache" / "interop"
JARS = CACHE / "jars"


def jars(suite: str) -> list[Path]:
    """The jars that interop/setup.sh downloaded for a suite, sorted by name."""
    found = sorted((JARS / suite).glob("*.jar"))
    if not found:
        raise FileNotFoundError(f"no jars in {JARS / suite}: run interop/setup.sh {suite}")
    return found


def packages(part: str) -> Path:
    """The folder with the Python packages of a part of interop/setup.sh that has a virtual environment of its own."""
    found = sorted((CACHE / part).glob("lib/python*/site-packages"))
    if not found:
        raise FileNotFoundError(f"no {CACHE / part}: run interop/setup.sh {part}")
    return found[-1]


def rust() -> Path:
    """The program in rust/, built by interop/setup.sh."""
    found = CACHE / "rust" / "debug" / "moorage-rust-client"
    if not found.is_file():
        raise FileNotFoundError(f"no {found}: run interop/setup.sh rust")
    return found


def trino() -> Path:
    """The folder with the libraries of Trino's server and its plugins."""
    found = CACHE / "trino"
    if not found.is_dir():
        raise FileNotFoundError(f"no {found}: run interop/setup.sh trino")
    return found


def keycloak() -> Path:
    """The folder of the unpacked Keycloak."""
    found = CACHE / "keycloak"
    if not found.is_dir():
        raise FileNotFoundError(f"no {found}: run interop/setup.sh keycloak")
    return found
