package rest

import (
	"net/http"

	"moorage"
	"moorage/catalog"
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

// listNamespaces answers the direct children of the parameter parent, or the top levels.
func (s *server) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := pathWarehouse(r)
	if err != nil {
		return err
	}
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	joined, _, err := q.text("parent")
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
	pages, err := pagerOf(q, "namespaces", warehouse, joined)
	if err != nil {
		return err
	}
	children, next, err := s.catalog.ListNamespaces(r.Context(), warehouse, parent, pages.page)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, namespacesAnswer{append([]moorage.Namespace{}, children...), pages.seal(next)})
}

func (s *server) createNamespace(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := pathWarehouse(r)
	if err != nil {
		return err
	}
	f, err := s.readFields(w, r, "create namespace request")
	if err != nil {
		return err
	}
	ns, properties := f.namespace(), f.textMap("properties")
	if f.failure != nil {
		return f.failure
	}
	stored, err := s.catalog.CreateNamespace(r.Context(), warehouse, ns, properties)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, namespaceAnswer{ns, orEmpty(stored)})
}

func (s *server) loadNamespace(w http.ResponseWriter, r *http.Request) error {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return err
	}
	properties, err := s.catalog.LoadNamespace(r.Context(), warehouse, ns)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, namespaceAnswer{ns, orEmpty(properties)})
}

func (s *server) namespaceExists(w http.ResponseWriter, r *http.Request) error {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return err
	}
	if _, err := s.catalog.LoadNamespace(r.Context(), warehouse, ns); err != nil {
		return err
	}
	return answerNothing(w)
}

func (s *server) dropNamespace(w http.ResponseWriter, r *http.Request) error {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return err
	}
	if err := s.catalog.DropNamespace(r.Context(), warehouse, ns); err != nil {
		return err
	}
	return answerNothing(w)
}

func (s *server) updateProperties(w http.ResponseWriter, r *http.Request) error {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return err
	}
	f, err := s.readFields(w, r, "update properties request")
	if err != nil {
		return err
	}
	change := catalog.PropertiesChange{Removals: f.texts("removals"), Updates: f.textMap("updates")}
	if f.failure != nil {
		return f.failure
	}
	result, err := s.catalog.UpdateNamespaceProperties(r.Context(), warehouse, ns, change)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, propertiesAnswer{
		Updated: append([]string{}, result.Updated...),
		Removed: append([]string{}, result.Removed...),
		Missing: append([]string{}, result.Missing...),
	})
}

// orEmpty returns properties, or an empty map for nil: null would tell clients that the
// server has no properties.
func orEmpty(properties map[string]string) map[string]string {
	if properties == nil {
		return map[string]string{}
	}
	return properties
}
