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
	list := f.objects("table-changes", "table change")
	if f.failure != nil {
		return nil, f.failure
	}
	if len(list) > catalog.TransactionChangesMax { // before their contents are read
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid transaction: %d table changes, at most %d are allowed", len(list), catalog.TransactionChangesMax)
	}
	changes := make([]catalog.TableChange, len(list))
	for i, inner := range list {
		ident := inner.identifier("identifier", warehouse)
		if inner.failure != nil {
			return nil, inner.failure
		}
		request, err := decodeCommit(inner, ident)
		if err != nil {
			return nil, err
		}
		changes[i] = catalog.TableChange{Ident: ident, CommitRequest: request}
	}
	return changes, nil
}
