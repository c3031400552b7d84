"""A network with only loopback, as on an unconnected machine."""

import os
import subprocess
import sys

SECONDS_MAX = 120

# In a new network loopback is down. The call is SIOCSIFFLAGS with IFF_UP and IFF_RUNNING.
LOOPBACK = """
import fcntl, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 0x41))
"""


def call(module: str, function: str) -> None:
    """Calls a function in a separate process in such a network. Linux must allow the user to create one."""
    program = f"{LOOPBACK}\nimport {module}\n{module}.{function}()"
    subprocess.run(
        ["unshare", "--map-root-user", "--net", sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        timeout=SECONDS_MAX,
    )
