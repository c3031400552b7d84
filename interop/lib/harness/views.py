"""What PyIceberg wants to know of a view to be made."""

from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion


def version(queries: dict[str, str], **more) -> ViewVersion:
    """A version with a query for each dialect. More are further fields; names in the queries are those of the namespace ns."""
    representations = [
        ViewRepresentation(SQLViewRepresentation(type="sql", sql=query, dialect=dialect)) for dialect, query in queries.items()
    ]
    return ViewVersion(schema_id=0, representations=representations, **({"default_namespace": ("ns",)} | more))
