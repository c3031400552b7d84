package catalog

import (
	"context"

	"moorage"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/rows"
	"moorage/metadata"
)

// RowsRequest is a request for the first rows of a table.
type RowsRequest struct {
	rows.Request

	// Of is the branch, tag or snapshot id that is read. Empty: main.
	Of string
}

// FirstRows is an answer with rows.
type FirstRows = rows.Result

// Rows returns the first rows of a table. It reads the files with the server's own access to the
// storage, so the caller needs access.Read on the table. Only files within the table's claims are
// read.
//
// Errors: the errors of LoadTable and of rows.Reader.Read; KindNotFound if there is no branch, tag
// or snapshot of that name.
func (c *Catalog) Rows(ctx context.Context, ident moorage.Identifier, asked RowsRequest) (FirstRows, error) {
	const op = "catalog.Rows"
	loaded, err := c.presentVersion(ctx, gate.ReadRows, ident)
	if err != nil {
		return FirstRows{}, moorage.Annotate(op, ident.String(), err)
	}
	document := loaded.Document.(*metadata.Document)
	scan, found := document.Scan(asked.Of)
	if !found {
		return FirstRows{}, moorage.Annotate(op, ident.String(), moorage.Errorf(moorage.KindNotFound,
			"The table has no branch, tag or snapshot %.200q, or its schema was removed", asked.Of))
	}
	mapping, _ := document.Property("schema.name-mapping.default")
	read, err := c.rows.Read(ctx, rows.Table{
		Scan: scan, NameMapping: mapping, Files: loaded.Storage,
		Within: func(file string) bool { return documents.WithinClaims(loaded.Found.Pointer.Claims, file) },
	}, asked.Request)
	return read, moorage.Annotate(op, ident.String(), err)
}
