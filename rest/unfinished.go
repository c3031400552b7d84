package rest

import (
	"context"
	"net/http"

	"moorage/catalog"
)

// unfinished is what the catalog lets operators see and do.
type unfinished interface {
	UnfinishedTransactions(ctx context.Context, page catalog.Page) ([]catalog.UnfinishedTransaction, string, error)
	BlockedPurges(ctx context.Context, page catalog.Page) ([]catalog.BlockedPurge, string, error)
	Retry(ctx context.Context, id string) (catalog.Retried, error)
	Abort(ctx context.Context, id string) (catalog.Aborted, error)
}

// TransactionsPage is a page of the log of transactions.
type TransactionsPage struct {
	Transactions  []catalog.UnfinishedTransaction `json:"transactions"`
	NextPageToken *string                         `json:"next-page-token"`
}

// PurgesPage is a page of the purges that were given up.
type PurgesPage struct {
	Purges        []catalog.BlockedPurge `json:"purges"`
	NextPageToken *string                `json:"next-page-token"`
}

// listTransactions answers the transactions of which something is left to do, those under way among them.
func (s *server) listTransactions(w http.ResponseWriter, r *http.Request) error {
	pages, err := managementPager(r, "transactions")
	if err != nil {
		return err
	}
	transactions, next, err := s.catalog.UnfinishedTransactions(r.Context(), pages.page)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, TransactionsPage{transactions, pages.seal(next)})
}

// listBlockedPurges answers the purges that were given up, and the tasks that cannot be read.
func (s *server) listBlockedPurges(w http.ResponseWriter, r *http.Request) error {
	pages, err := managementPager(r, "blocked purges")
	if err != nil {
		return err
	}
	purges, next, err := s.catalog.BlockedPurges(r.Context(), pages.page)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, PurgesPage{purges, pages.seal(next)})
}

func managementPager(r *http.Request, list string) (pager, error) {
	q, err := queryOf(r)
	if err != nil {
		return pager{}, err
	}
	return pagerOf(q, "management", list)
}

// retryUnfinished has a transaction or a purge that was given up tried again.
func (s *server) retryUnfinished(w http.ResponseWriter, r *http.Request) error {
	id, err := pathParam(r, "id")
	if err != nil {
		return err
	}
	retried, err := s.catalog.Retry(r.Context(), id)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, retried)
}

// abortUnfinished ends a transaction, or removes a task that cannot be read.
func (s *server) abortUnfinished(w http.ResponseWriter, r *http.Request) error {
	id, err := pathParam(r, "id")
	if err != nil {
		return err
	}
	aborted, err := s.catalog.Abort(r.Context(), id)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, aborted)
}
