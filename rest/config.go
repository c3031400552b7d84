package rest

import (
	"cmp"
	"net/http"
	"slices"

	"moorage"
	"moorage/catalog/warehouses"
	"moorage/internal/web"
)

// configAnswer is the configuration of a client. Both maps are always present, because several
// clients do not start without them.
type configAnswer struct {
	Defaults  map[string]string `json:"defaults"`
	Overrides map[string]string `json:"overrides"`
	Endpoints []string          `json:"endpoints"`
	// KeyLifetime is an ISO 8601 duration. Clients that receive it send an Idempotency-Key with
	// every change.
	KeyLifetime string `json:"idempotency-key-lifetime,omitempty"`
}

// tokenExchange is the Java setting that allows clients to renew a token by an exchange.
const tokenExchange = "token-exchange-enabled"

// getConfig answers with the configuration of a warehouse, which a client requests before anything
// else. A client that names no warehouse gets no prefix for its paths. The warehouse's properties
// are defaults. The answer lists only operations of the route table, because clients call every
// operation that it lists.
func (s *server) getConfig(w http.ResponseWriter, r *http.Request) error {
	name, _, err := web.QueryOf(r).Text("warehouse")
	if err != nil {
		return err
	}
	warehouse, err := s.warehouseOf(r, name)
	if err != nil {
		return err
	}
	defaults := orEmpty(warehouse.Properties)
	if source := web.CallerOf(r).Source; source != "" && source != moorage.SourceToken {
		// Only a token of this store can be exchanged for a new one, but a Java client would try to
		// exchange any token.
		defaults[tokenExchange] = "false"
	}
	answer := configAnswer{
		Defaults:  defaults,
		Overrides: map[string]string{"namespace-separator": namespaceSeparator},
		Endpoints: s.endpoints,
	}
	for _, op := range s.operations() {
		if op.offer != "" && slices.Contains(warehouse.Delegation, op.offer) {
			answer.Endpoints = append(slices.Clip(answer.Endpoints), op.method+" "+op.path)
		}
	}
	if s.config.IdempotencyLifetime > 0 {
		answer.KeyLifetime = isoDuration(s.config.IdempotencyLifetime)
	}
	if name != "" {
		answer.Overrides["prefix"] = escapePrefix(name)
	}
	return s.AnswerJSON(w, r, answer)
}

// warehouseOf returns the warehouse called name, with its properties. Clients use the properties as
// defaults: their own settings take precedence. If name is empty, it returns
// moorage.DefaultWarehouse, if that exists.
func (s *server) warehouseOf(r *http.Request, name string) (warehouses.Warehouse, error) {
	warehouse, err := s.catalogFor(r).LoadWarehouse(r.Context(), cmp.Or(name, moorage.DefaultWarehouse))
	if name == "" && moorage.KindOf(err) == moorage.KindNoSuchWarehouse {
		return warehouse, nil
	}
	return warehouse, err
}
