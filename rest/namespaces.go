package rest

import (
	"context"
	"net/http"

	"moorage"
	"moorage/catalog"
	"moorage/internal/web"
)

type namespaceAnswer struct {
	Namespace  moorage.Namespace `json:"namespace"`
	Properties map[string]string `json:"properties"`
}

type namespacesAnswer struct {
	Namespaces    []moorage.Namespace `json:"namespaces"`
	NextPageToken *string             `json:"next-page-token"`
}

type propertiesAnswer struct {
	Updated []string `json:"updated"`
	Removed []string `json:"removed"`
	Missing []string `json:"missing"`
}

// listNamespaces answers with the direct children of the namespace in the parameter parent, or with
// the top-level namespaces.
func (s *server) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := pathWarehouse(r)
	if err != nil {
		return err
	}
	joined, _, err := web.QueryOf(r).Text("parent")
	if err != nil {
		return err
	}
	var parent moorage.Namespace
	if joined != "" {
		parent = splitNamespace(joined)
		if err := parent.Validate(); err != nil {
			return err
		}
	}
	pages, err := web.PagerOf(r, pageSizes, "namespaces", warehouse, joined)
	if err != nil {
		return err
	}
	children, next, err := s.catalogFor(r).ListNamespaces(r.Context(), warehouse, parent, pageOf(pages))
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, namespacesAnswer{append([]moorage.Namespace{}, children...), pages.Seal(next)})
}

func (s *server) createNamespace(r *http.Request, body []byte) (change, error) {
	warehouse, err := pathWarehouse(r)
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "create namespace request")
	if err != nil {
		return nil, err
	}
	ns, properties := namespaceIn(f), f.TextMap("properties")
	return func(ctx context.Context, c catalog.Verbs) (web.Handler, error) {
		stored, err := c.CreateNamespace(ctx, warehouse, ns, properties)
		return func(w http.ResponseWriter, r *http.Request) error {
			return s.AnswerJSON(w, r, namespaceAnswer{ns, orEmpty(stored)})
		}, err
	}, f.Failure
}

// loadNamespace answers with the properties of a namespace, or with 204 to HEAD.
func (s *server) loadNamespace(w http.ResponseWriter, r *http.Request) error {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return err
	}
	properties, err := s.catalogFor(r).LoadNamespace(r.Context(), warehouse, ns)
	switch {
	case err != nil:
		return err
	case r.Method == http.MethodHead:
		return web.AnswerNothing(w)
	}
	return s.AnswerJSON(w, r, namespaceAnswer{ns, orEmpty(properties)})
}

func (s *server) dropNamespace(r *http.Request, _ []byte) (change, error) {
	warehouse, ns, err := pathNamespace(r)
	return silently(func(ctx context.Context, c catalog.Verbs) error {
		return c.DropNamespace(ctx, warehouse, ns)
	}), err
}

func (s *server) updateProperties(r *http.Request, body []byte) (change, error) {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "update properties request")
	if err != nil {
		return nil, err
	}
	asked := catalog.PropertiesChange{Removals: f.Texts("removals"), Updates: f.TextMap("updates")}
	return func(ctx context.Context, c catalog.Verbs) (web.Handler, error) {
		result, err := c.UpdateNamespaceProperties(ctx, warehouse, ns, asked)
		return func(w http.ResponseWriter, r *http.Request) error {
			return s.AnswerJSON(w, r, propertiesAnswer{
				Updated: append([]string{}, result.Updated...),
				Removed: append([]string{}, result.Removed...),
				Missing: append([]string{}, result.Missing...),
			})
		}, err
	}, f.Failure
}

// orEmpty returns properties, or an empty map for nil, because null would mean that the server does
// not support properties.
func orEmpty(properties map[string]string) map[string]string {
	if properties == nil {
		return map[string]string{}
	}
	return properties
}
