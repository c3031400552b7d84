package catalog

import (
	"context"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
)

// Files has the verbs that give a caller access to the files of a table. They are safe for
// concurrent use.
type Files interface {
	// Delegate gives a client access to the files of table. It uses the first of the warehouse's
	// delegations that the client requested. The client gets no delegation if it requested none, if
	// it may not read the table, or if no credential is possible for the table.
	//
	// Errors: KindUnavailable if the storage issues no credentials now, KindTooManyRequests if too
	// many were requested. The table stays unchanged.
	Delegate(ctx context.Context, table *Table, asked []vending.Delegation) (vending.Delegated, error)
	// LoadCredentials returns new credentials for the files of a table, for a client that had
	// credentials before. staged is the value of Delegated.Staged that the client got with them.
	// through has the same meaning as in LoadTable; see vending.Named.
	//
	// Errors: the errors of vending.LoadCredentials. Source: REST specification, loadCredentials.
	LoadCredentials(ctx context.Context, ident moorage.Identifier, staged string, through ...moorage.Identifier) (
		vending.Delegated, error)
	// Sign signs a request that a client will send to the storage of a table. staged and through
	// have the same meaning as in LoadCredentials.
	//
	// Errors: the errors of vending.Sign. Source: REST specification, signRequest.
	Sign(ctx context.Context, ident moorage.Identifier, staged string, request vending.SignRequest,
		through ...moorage.Identifier) (vending.Signature, error)
}

// Delegate implements Files.
func (c *Catalog) Delegate(ctx context.Context, table *Table, asked []vending.Delegation) (vending.Delegated, error) {
	const op = "catalog.Delegate"
	if len(asked) == 0 {
		return vending.Delegated{}, nil
	}
	reach := table.staged
	if !table.pointer.IsZero() {
		found := table.found
		if found == nil { // the table may have just been created
			var err error
			if found, err = c.directory.Find(ctx, directory.Table(), table.Identifier); err != nil {
				return vending.Delegated{}, moorage.Annotate(op, table.Identifier.String(), err)
			}
		}
		if len(found.Delegation) > 0 && found.Pointer.ID == table.pointer {
			reach = vending.ReachOf(found, table.Identifier)
		}
	}
	if reach == nil {
		return vending.Delegated{}, nil
	}
	by := directory.Asker{Caller: c.caller, Verb: gate.LoadTable, Through: table.through}
	given, err := c.vending.Delegate(ctx, by, reach, table.Document.Location(), asked)
	return given, moorage.Annotate(op, table.Identifier.String(), err)
}

// LoadCredentials implements Files.
func (c *Catalog) LoadCredentials(ctx context.Context, ident moorage.Identifier, staged string,
	through ...moorage.Identifier) (vending.Delegated, error) {
	given, err := c.vending.LoadCredentials(ctx, vending.Named{
		Caller: c.caller, Table: ident, Staged: staged, Through: through,
	})
	return given, moorage.Annotate("catalog.LoadCredentials", ident.String(), err)
}

// Sign implements Files.
func (c *Catalog) Sign(ctx context.Context, ident moorage.Identifier, staged string, request vending.SignRequest,
	through ...moorage.Identifier) (vending.Signature, error) {
	signature, err := c.vending.Sign(ctx, vending.Named{
		Caller: c.caller, Table: ident, Staged: staged, Through: through,
	}, request)
	return signature, moorage.Annotate("catalog.Sign", ident.String(), err)
}

// reachStaged sets the reach of a staged table. isChosen means that the client chose its location.
func (c *Catalog) reachStaged(ctx context.Context, table *Table, version *commit.Version, isChosen bool) error {
	path, err := c.directory.Path(ctx, table.Identifier.Warehouse, table.Identifier.Namespace)
	if err != nil {
		return err
	}
	location := version.Document.Location()
	if !isChosen {
		table.staged, err = c.vending.ReachStaged(path, table.Identifier, location)
		return err
	}
	folder := folderOf(path, table.Identifier.Namespace)
	table.staged, err = c.vending.ReachDrawn(ctx, path, table.Identifier, location, folder)
	return err
}
