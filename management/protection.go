package management

import (
	"context"
	"net/http"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/grants"
	"moorage/internal/web"
	"moorage/management/client"
)

// Protections has the methods of catalog.Protections.
type Protections interface {
	Load(ctx context.Context, kind access.Kind, ident moorage.Identifier) (catalog.Protection, error)
	Set(ctx context.Context, kind access.Kind, ident moorage.Identifier, protected bool) (catalog.Protection, error)
}

// protectionOperations returns the operations on protection.
func (s *server) protectionOperations() []operation {
	return []operation{
		{"loadProtection", http.MethodGet, "/protection", s.loadProtection},
		{"putProtection", http.MethodPut, "/protection", s.putProtection},
	}
}

// protectableOf returns the object named in the query parameters.
func protectableOf(r *http.Request) (grants.Object, error) {
	object, err := objectOfQuery(r)
	ref := refOf(object)
	if err == nil && (ref.Kind == access.Server || ref.Kind == access.Function) {
		err = moorage.Errorf(moorage.KindBadRequest,
			"Only a warehouse, a namespace, a table or a view can be protected: name one")
	}
	return ref, err
}

func (s *server) loadProtection(w http.ResponseWriter, r *http.Request) error {
	on, err := protectableOf(r)
	if err != nil {
		return err
	}
	found, err := s.config.Protections(web.CallerOf(r), nil).Load(r.Context(), on.Kind, on.Ident)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, protectionOf(found))
}

func (s *server) putProtection(w http.ResponseWriter, r *http.Request) error {
	on, err := protectableOf(r)
	if err != nil {
		return err
	}
	body, err := s.ReadBody(w, r)
	if err != nil {
		return err
	}
	f, err := web.ParseFields(body, "protection")
	if err != nil {
		return err
	}
	f.Require("protected")
	protected := f.Boolean("protected")
	if f.Failure != nil {
		return f.Failure
	}
	key, err := catalogKey(r, on.Ident.Warehouse, body)
	if err != nil {
		return err
	}
	verbs := s.config.Protections(web.CallerOf(r), key)
	set, err := verbs.Set(context.WithoutCancel(r.Context()), on.Kind, on.Ident, protected)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, protectionOf(set))
}

func protectionOf(p catalog.Protection) client.Protection {
	made := client.Protection{Protected: p.Protected}
	if p.By != nil {
		made.By = &client.Object{Warehouse: p.By.Warehouse, Namespace: p.By.Namespace}
	}
	return made
}
