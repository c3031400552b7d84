package rest

import (
	"cmp"
	"context"
	"net/http"

	"moorage"
	"moorage/catalog"
	"moorage/internal/web"
)

// commitTransaction changes several tables atomically.
func (s *server) commitTransaction(r *http.Request, body []byte) (change, error) {
	warehouse, err := pathWarehouse(r)
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "transaction request")
	if err != nil {
		return nil, err
	}
	changes, err := decodeChanges(f, warehouse)
	choice, wrong := rebaseChoice(r)
	for i := range changes {
		changes[i].Rebase = choice
	}
	return silently(func(ctx context.Context, c catalog.Verbs) error {
		return c.CommitTransaction(ctx, warehouse, changes)
	}), cmp.Or(err, wrong)
}

// changesUsual is enough for the changes of most transactions.
const changesUsual = 16

// decodeChanges reads the changes of a transaction: commits with the identifiers of their tables.
func decodeChanges(f *web.Fields, warehouse string) ([]catalog.TableChange, error) {
	f.Require("table-changes")
	changes := make([]catalog.TableChange, 0, changesUsual)
	var refused error
	length := f.Objects("table-changes", "table change", catalog.TransactionChangesMax, func(inner *web.Fields) {
		if refused != nil {
			return
		}
		var change catalog.TableChange
		if change, refused = decodeChange(inner, warehouse); refused == nil {
			changes = append(changes, change)
		}
	})
	switch {
	case f.Failure != nil:
		return nil, f.Failure
	case length > catalog.TransactionChangesMax:
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Invalid transaction: %d table changes, at most %d are allowed", length, catalog.TransactionChangesMax)
	case refused != nil:
		return nil, refused
	}
	return changes, nil
}

// decodeChange reads one change of a transaction.
func decodeChange(f *web.Fields, warehouse string) (change catalog.TableChange, err error) {
	change.Ident = identifierIn(f, "identifier", warehouse)
	if f.Failure != nil {
		return change, f.Failure
	}
	if change.CommitRequest, err = decodeCommit(f); err != nil {
		// Add to the message which of the tables is meant.
		message := moorage.MessageOf(err) + " (table " + change.Ident.String() + ")"
		err = &moorage.Error{Kind: moorage.KindOf(err), Message: message, Err: err}
	}
	return change, err
}
