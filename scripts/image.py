#!/usr/bin/env python3
"""Makes the image of the Dockerfile without Docker, as an archive that docker, podman and skopeo load.

    scripts/image.py [--arch amd64|arm64] [--output FILE]

It runs scripts/rootfs.sh, as the first stage of the Dockerfile does, and carries out the last stage. The archive
is an OCI image layout in a tar file, with the list that `docker load` of older versions needs. The same commit
makes the same bytes, with the same version of Go and of the certificates. Prints the file, its sizes and its digest.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BUILT = "/out/"  # where the first stage of the Dockerfile runs scripts/rootfs.sh

SECOND = 1_000_000_000  # in nanoseconds, as the configuration of an image has times


class ImageError(Exception):
    """The Dockerfile has something that this script does not carry out."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", choices=["amd64", "arm64"], default="amd64")
    parser.add_argument("--output", type=Path, help="default: bin/moorage-VERSION-linux-ARCH.tar")
    wanted = parser.parse_args()
    version = release()
    output = wanted.output or REPOSITORY / "bin" / f"moorage-{version}-linux-{wanted.arch}.tar"
    output.parent.mkdir(parents=True, exist_ok=True)
    made = int(git("log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory(prefix="moorage-image-") as folder:
        environment = {**os.environ, "GOOS": "linux", "GOARCH": wanted.arch}
        subprocess.run([REPOSITORY / "scripts" / "rootfs.sh", folder], env=environment, check=True)
        copies, config = last_stage((REPOSITORY / "Dockerfile").read_text())
        layer = layer_of(copies, Path(folder), made)
    config["Labels"] |= {
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": git("rev-parse", "HEAD"),
    }
    digest = write_archive(output, layer, config, wanted.arch, f"moorage:{version}", made)
    megabytes = [f"{size / 1e6:.1f} MB" for size in (output.stat().st_size, len(layer))]
    print(f"{output}: {megabytes[0]}, unpacked {megabytes[1]}, {digest}")
    return 0


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.strip()


def release() -> str:
    """The version in the source."""
    found = re.search(r'^const release = "(.+)"$', (REPOSITORY / "cmd/moorage/main.go").read_text(), re.MULTILINE)
    return found[1]


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """The instructions with their words, without comments."""
    lines = [line for line in dockerfile.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple((line.split(maxsplit=1) + [""])[:2]) for line in joined.splitlines()]


def last_stage(dockerfile: str) -> tuple[list[dict], dict]:
    """What the last stage copies, and the configuration that it gives the image."""
    stages = []
    for name, words in instructions(dockerfile):
        if name == "FROM":
            stages.append((words, []))
        elif stages:
            stages[-1][1].append((name, words))
    base, stage = stages[-1]
    if base != "scratch":
        raise ImageError(f"the last stage begins with {base}, and only an empty image can be had without Docker")
    copies, config = [], {"Labels": {}, "Env": ["PATH=/usr/bin"]}
    for name, words in stage:
        match name:
            case "COPY":
                copies.append(copy_of(words))
            case "LABEL":
                config["Labels"] |= dict(pair.split("=", 1) for pair in shlex.split(words))
            case "ENV":
                config["Env"] += shlex.split(words)
            case "USER":
                config["User"] = words
            case "WORKDIR":
                config["WorkingDir"] = words
            case "VOLUME":
                config["Volumes"] = {path: {} for path in json.loads(words)}
            case "EXPOSE":
                config["ExposedPorts"] = {f"{port}/tcp": {} for port in words.split()}
            case "STOPSIGNAL":
                config["StopSignal"] = words
            case "HEALTHCHECK":
                config["Healthcheck"] = healthcheck_of(words)
            case "ENTRYPOINT":
                config["Entrypoint"] = json.loads(words)
            case "CMD":
                config["Cmd"] = json.loads(words)
            case _:
                raise ImageError(f"{name} {words}: scripts/image.py does not know this instruction")
    return copies, config


def copy_of(words: str) -> dict:
    found = re.fullmatch(rf"--from=build --chown=(\d+):(\d+) {BUILT}(\w+)/ (/\S*)", words)
    if not found:
        raise ImageError(f"COPY {words}: only folders of the stage build are copied, each for one owner")
    return {"uid": int(found[1]), "gid": int(found[2]), "source": found[3], "target": found[4].strip("/")}


def healthcheck_of(words: str) -> dict:
    options, _, command = words.partition(" CMD ")
    check = {"Test": ["CMD", *json.loads(command)]}
    for option in options.split():
        name, seconds = re.fullmatch(r"--(\w+)-?(?:period)?=(\d+)s", option).groups()
        check[{"interval": "Interval", "timeout": "Timeout", "start": "StartPeriod"}[name]] = int(seconds) * SECOND
    return check


def layer_of(copies: list[dict], folder: Path, made: int) -> bytes:
    """The layer, as a tar archive that is not compressed."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for copy in copies:
            source = folder / copy["source"]
            for path in [source, *sorted(source.rglob("*"))]:
                name = "/".join(filter(None, [copy["target"], path.relative_to(source).as_posix()])).removesuffix("/.")
                if name == ".":
                    continue  # the root itself
                entry = archive.gettarinfo(path, name)
                entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = copy["uid"], copy["gid"], "", "", made
                if entry.isreg():
                    with path.open("rb") as content:
                        archive.addfile(entry, content)
                else:
                    archive.addfile(entry)
    return out.getvalue()


def write_archive(output: Path, layer: bytes, config: dict, arch: str, tag: str, made: int) -> str:
    """Writes the archive. Returns the digest of the image."""
    compressed = gzip.compress(layer, mtime=0)
    created = datetime.fromtimestamp(made, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    blobs = {}

    def blob(content: bytes, media_type: str) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    image = {
        "created": created,
        "architecture": arch,
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": created, "created_by": "scripts/image.py"}],
    }
    of_layer = blob(compressed, "application/vnd.oci.image.layer.v1.tar+gzip")
    of_config = blob(encoded(image), "application/vnd.oci.image.config.v1+json")
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": of_config, "layers": [of_layer]}
    of_manifest = blob(encoded(manifest), kind)
    of_manifest["annotations"] = {
        "io.containerd.image.name": f"docker.io/library/{tag}",
        "org.opencontainers.image.ref.name": tag.partition(":")[2],
    }
    of_manifest["platform"] = {"architecture": arch, "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [of_manifest]}
    path = {name: "blobs/" + of["digest"].replace(":", "/") for name, of in (("config", of_config), ("layer", of_layer))}
    listed = [{"Config": path["config"], "RepoTags": [tag], "Layers": [path["layer"]]}]
    files = {
        "oci-layout": encoded({"imageLayoutVersion": "1.0.0"}),
        "index.json": encoded(index),
        "manifest.json": encoded(listed),
        **blobs,
    }
    with tarfile.open(output, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), made, 0o644
            archive.addfile(entry, io.BytesIO(content))
    return of_manifest["digest"]


def encoded(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ImageError as error:
        print(f"scripts/image.py: {error}", file=sys.stderr)
        sys.exit(1)
