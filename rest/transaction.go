package rest

import (
	"context"
	"net/http"

	"moorage"
	"moorage/catalog"
)

// commitTransaction changes several tables, all or none.
func (s *server) commitTransaction(r *http.Request, body []byte) (change, error) {
	warehouse, err := pathWarehouse(r)
	if err != nil {
		return change{}, err
	}
	f, err := parseFields(body, "transaction request")
	if err != nil {
		return change{}, err
	}
	changes, err := decodeChanges(f, warehouse)
	return silently(func(ctx context.Context) error { return s.catalog.CommitTransaction(ctx, warehouse, changes) }), err
}

// decodeChanges reads the changes of a transaction: commits of which each says which table it is of.
func decodeChanges(f *fields, warehouse string) ([]catalog.TableChange, error) {
	f.require("table-changes")
	list, length := f.objects("table-changes", "table change", catalog.TransactionChangesMax)
	switch {
	case f.failure != nil:
		return nil, f.failure
	case length > len(list):
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid transaction: %d table changes, at most %d are allowed", length, catalog.TransactionChangesMax)
	}
	changes := make([]catalog.TableChange, len(list))
	for i, inner := range list {
		ident := inner.identifier("identifier", warehouse)
		if inner.failure != nil {
			return nil, inner.failure
		}
		request, err := decodeCommit(inner)
		if err != nil {
			return nil, ofTable(ident, err)
		}
		changes[i] = catalog.TableChange{Ident: ident, CommitRequest: request}
	}
	return changes, nil
}

// ofTable adds to the text of err, which the client sees, which table of a transaction it is about.
func ofTable(ident moorage.Identifier, err error) error {
	return &moorage.Error{Kind: moorage.KindOf(err), Message: moorage.MessageOf(err) + " (table " + ident.String() + ")", Err: err}
}
