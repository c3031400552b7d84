package management

import (
	"context"
	"net/http"

	"moorage/catalog"
	"moorage/internal/web"
	"moorage/management/client"
)

// pageSizes are the bounds of pages.
var pageSizes = web.PageSizes{Default: 100, Max: 1000, Always: true}

// listTransactions answers the transactions with work left to do, also those under way.
func (s *server) listTransactions(w http.ResponseWriter, r *http.Request) error {
	found, next, err := list(r, "transactions", pageSizes, s.catalog.UnfinishedTransactions)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.TransactionsPage{Transactions: found, NextPageToken: next})
}

// listTasks answers the purges that were given up, and the tasks that cannot be read.
func (s *server) listTasks(w http.ResponseWriter, r *http.Request) error {
	found, next, err := list(r, "tasks", pageSizes, s.catalog.BlockedPurges)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.TasksPage{Tasks: found, NextPageToken: next})
}

// listBlockedPurges answers what listTasks does as older clients know it: all at once unless they
// page.
func (s *server) listBlockedPurges(w http.ResponseWriter, r *http.Request) error {
	sizes := pageSizes
	sizes.Always = false
	found, next, err := list(r, "blocked purges", sizes, s.catalog.BlockedPurges)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.PurgesPage{Purges: found, NextPageToken: next})
}

// list returns the page that r asks for of what find finds, and the token of the next one.
func list[T any](r *http.Request, name string, sizes web.PageSizes,
	find func(context.Context, catalog.Page) ([]T, string, error)) ([]T, *string, error) {
	q, err := web.QueryOf(r)
	if err != nil {
		return nil, nil, err
	}
	pages, err := web.PagerOf(q, sizes, "management", name)
	if err != nil {
		return nil, nil, err
	}
	found, next, err := find(r.Context(), catalog.Page{After: pages.After, Limit: pages.Limit})
	return found, pages.Seal(next), err
}

// retry has a transaction or a task that was given up tried again.
func (s *server) retry(r *http.Request, _ []byte) (any, error) {
	id, err := web.PathParam(r, "id")
	if err != nil {
		return nil, err
	}
	return s.catalog.Retry(r.Context(), id)
}

// abort ends a transaction, or removes a task that cannot be read.
func (s *server) abort(r *http.Request, _ []byte) (any, error) {
	id, err := web.PathParam(r, "id")
	if err != nil {
		return nil, err
	}
	return s.catalog.Abort(r.Context(), id)
}
