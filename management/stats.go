package management

import (
	"net/http"
	"time"

	"moorage"
	"moorage/internal/web"
	"moorage/management/client"
)

// statsAgeDefault is the maximum age of counts if a request does not set one.
const statsAgeDefault = 5 * time.Minute

// loadStats answers with counts of the contents of a warehouse.
func (s *server) loadStats(w http.ResponseWriter, r *http.Request) error {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return err
	}
	maxAge := statsAgeDefault
	text, given, err := web.QueryOf(r).Text("max-age")
	if err != nil {
		return err
	}
	if given {
		if maxAge, err = time.ParseDuration(text); err != nil || maxAge < 0 {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid max-age: %q, want a duration such as 5m or 0s",
				moorage.Cut(text, 50))
		}
	}
	found, err := s.browse(r).Stats(r.Context(), name, maxAge)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.Stats{
		Tables: found.Tables, Views: found.Views, Namespaces: found.Namespaces, Dropped: found.Dropped,
		Rows: found.Rows, Bytes: found.Bytes, Files: found.Files, Unknown: found.Unknown, AsOf: found.AsOf.UTC(),
		Complete: found.Complete,
	})
}
