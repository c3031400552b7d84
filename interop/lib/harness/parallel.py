"""Writers that work at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

WRITERS = 4


def in_parallel(work: Callable[[int], None]) -> None:
    """Runs work(writer) for all writers at once; raises what the first to fail raised."""
    with ThreadPoolExecutor(WRITERS) as pool:
        for outcome in [pool.submit(work, writer) for writer in range(WRITERS)]:
            outcome.result()
