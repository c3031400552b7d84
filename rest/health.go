package rest

import (
	"net/http"

	"moorage"
)

type healthAnswer struct {
	Status string `json:"status"`
}

// health answers that the process runs and nothing more: a supervisor restarts what fails it.
func (s *server) health(w http.ResponseWriter, r *http.Request) error {
	return s.answerJSON(w, r, healthAnswer{"ok"})
}

// ready answers whether the server can do its work now: a balancer passes over what fails it.
func (s *server) ready(w http.ResponseWriter, r *http.Request) error {
	if err := s.config.Ready(r.Context()); err != nil {
		return moorage.E("rest.ready", "", moorage.KindUnavailable, err)
	}
	return s.answerJSON(w, r, healthAnswer{"ready"})
}

// check lets the catalog examine itself and answers its catalog.Report. It reads every record and
// every metadata file.
func (s *server) check(w http.ResponseWriter, r *http.Request) error {
	report, err := s.catalog.Check(r.Context())
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, report)
}
