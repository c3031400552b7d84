"""Names that clients have to escape, in a path of HTTP or in SQL."""

_FOR_ALL = ["with space", "ünïcode", "with.dot", "100%", "a+b", "a/b"]

NAMES = [*_FOR_ALL, "UPPER", "'quoted\""]

# The same for a client that makes no names with capitals.
SMALL_NAMES = [*_FOR_ALL, "it's", 'quo"ted']


def quoted(name: str) -> str:
    """A name between the quotes of standard SQL."""
    return '"' + name.replace('"', '""') + '"'
