package catalog

import (
	"context"
	"fmt"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/rows"
	"moorage/metadata"
)

// RowsRequest is a request for the first rows of a table.
type RowsRequest struct {
	rows.Request

	// Ref is the branch or tag to read. The default is main.
	Ref string
	// Snapshot is the ID of the snapshot to read. If it is nil, Ref counts.
	Snapshot *int64
}

// FirstRows is an answer with rows.
type FirstRows = rows.Result

// Rows returns the first rows of a table. It reads the files with the server's own access to the
// storage, so the caller needs access.Read on the table. Only files within the table's claims are
// read.
//
// Errors: the errors of LoadTable and of rows.Reader.Read; KindNotFound if there is no such
// branch, tag or snapshot.
func (c *Catalog) Rows(ctx context.Context, ident moorage.Identifier, asked RowsRequest) (FirstRows, error) {
	const op = "catalog.Rows"
	loaded, err := c.presentVersion(ctx, gate.ReadRows, directory.Table(), ident)
	if err != nil {
		return FirstRows{}, moorage.Annotate(op, ident.String(), err)
	}
	document := loaded.Document.(*metadata.Document)
	scan, found := document.Scan(asked.Ref)
	what := fmt.Sprintf("branch or tag %.200q", asked.Ref)
	if asked.Snapshot != nil {
		scan, found = document.ScanSnapshot(*asked.Snapshot)
		what = fmt.Sprintf("snapshot %d", *asked.Snapshot)
	}
	if !found {
		return FirstRows{}, moorage.Annotate(op, ident.String(), moorage.Errorf(moorage.KindNotFound,
			"The table has no %s, or its schema was removed", what))
	}
	mapping, _ := document.Property("schema.name-mapping.default")
	read, err := c.rows.Read(ctx, rows.Table{
		Scan: scan, NameMapping: mapping, Files: loaded.Storage,
		Within: func(file string) bool { return documents.WithinClaims(loaded.Found.Pointer.Claims, file) },
	}, asked.Request)
	return read, moorage.Annotate(op, ident.String(), err)
}
