package management

import (
	"context"
	"net/http"

	"moorage/internal/web"
	"moorage/management/client"
)

// Bounds of pages. Older clients get all purges at once unless they ask for pages.
var (
	pageSizes    = web.PageSizes{Default: 100, Max: 1000, Always: true}
	pageSizesOld = web.PageSizes{Default: 100, Max: 1000}
)

func transactionsPage(found []client.Transaction, next *string) any {
	return client.TransactionsPage{Transactions: found, NextPageToken: next}
}

func tasksPage(found []client.Task, next *string) any {
	return client.TasksPage{Tasks: found, NextPageToken: next}
}

func waitingPage(found []client.WaitingPurge, next *string) any {
	return client.WaitingPurgesPage{Purges: found, NextPageToken: next}
}

func purgesPage(found []client.Task, next *string) any {
	return client.PurgesPage{Purges: found, NextPageToken: next}
}

// list returns the handler of a list. It answers with the requested page of the results of find.
// name and sizes belong to the list.
func list[T any](s *server, name string, sizes web.PageSizes,
	find func(context.Context, client.Page) ([]T, string, error), answer func([]T, *string) any) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		pages, err := web.PagerOf(r, sizes, "management", name)
		if err != nil {
			return err
		}
		found, next, err := find(r.Context(), client.Page{After: pages.After, Limit: pages.Limit})
		if err != nil {
			return err
		}
		return s.AnswerJSON(w, r, answer(found, pages.Seal(next)))
	}
}

// byID returns the handler of a change of the transaction or task whose id is in the path.
func byID[T any](s *server, do func(ctx context.Context, id string) (T, error)) web.Handler {
	return s.change(func(r *http.Request, _ []byte) (any, error) {
		id, err := web.PathParam(r, "id")
		if err != nil {
			return nil, err
		}
		return do(r.Context(), id)
	})
}
