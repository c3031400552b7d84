package rest

import (
	"net/http"
)

// configAnswer tells a client how to talk to the server. Both maps are always there:
// several clients do not start without them.
type configAnswer struct {
	Defaults  map[string]string `json:"defaults"`
	Overrides map[string]string `json:"overrides"`
	Endpoints []string          `json:"endpoints"`
}

// getConfig answers what a client must know of a warehouse before anything else. A client
// that names none keeps to the paths without a prefix. Neither idempotency-key-lifetime nor
// an operation that is not in the route table is answered, because clients use what is.
func (s *server) getConfig(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	name, _, err := q.text("warehouse")
	if err != nil {
		return err
	}
	answer := configAnswer{
		Defaults:  map[string]string{},
		Overrides: map[string]string{"namespace-separator": namespaceSeparator},
		Endpoints: s.endpoints,
	}
	if name != "" {
		if _, err := s.catalog.LoadWarehouse(r.Context(), name); err != nil {
			return err
		}
		answer.Overrides["prefix"] = escapePrefix(name)
	}
	return s.answerJSON(w, r, answer)
}
