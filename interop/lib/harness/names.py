"""Names that clients must escape in an HTTP path or in SQL."""

_FOR_ALL = ["with space", "ünïcode", "with.dot", "100%", "a+b", "a/b"]

NAMES = [*_FOR_ALL, "UPPER", "'quoted\""]

# The same for a client that cannot create names with capitals.
SMALL_NAMES = [*_FOR_ALL, "it's", 'quo"ted']


def quoted(name: str) -> str:
    """A name in the quotes of standard SQL."""
    return '"' + name.replace('"', '""') + '"'
