package management

import (
	"context"
	"crypto/sha256"
	"math"
	"net/http"
	"strings"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/grants"
	"moorage/internal/web"
	"moorage/management/client"
	"moorage/registry"
)

// Labels has the methods of catalog.Labels.
type Labels interface {
	Load(ctx context.Context, kind access.Kind, ident moorage.Identifier) (registry.Labels, registry.ID, error)
	Put(ctx context.Context, kind access.Kind, ident moorage.Identifier, labels registry.Labels,
		match func(present registry.ID) bool) (registry.ID, error)
}

// labelOperations returns the operations on labels.
func (s *server) labelOperations() []operation {
	return []operation{
		{"loadLabels", http.MethodGet, "/labels", s.loadLabels},
		{"putLabels", http.MethodPut, "/labels", s.putLabels},
		{"deleteLabels", http.MethodDelete, "/labels", s.deleteLabels},
	}
}

// labelledOf returns the table or view named in the query parameters.
func labelledOf(r *http.Request) (grants.Object, error) {
	object, err := objectOfQuery(r)
	ref := refOf(object)
	if err == nil && ref.Kind != access.Table && ref.Kind != access.View {
		err = moorage.Errorf(moorage.KindBadRequest, "Only a table or a view has labels: name one")
	}
	return ref, err
}

func (s *server) loadLabels(w http.ResponseWriter, r *http.Request) error {
	on, err := labelledOf(r)
	if err != nil {
		return err
	}
	found, version, err := s.config.Labels(web.CallerOf(r), nil).Load(r.Context(), on.Kind, on.Ident)
	if err != nil {
		return err
	}
	w.Header()["ETag"] = []string{tagOf(version)}
	return s.AnswerJSON(w, r, labelsOf(found))
}

func labelsOf(labels registry.Labels) client.Labels {
	return client.Labels{ObjectLabels: orEmpty(labels.Object), Fields: each(labels.Fields,
		func(field registry.FieldLabels) client.FieldLabels {
			return client.FieldLabels{FieldID: field.Field, Labels: field.Labels}
		})}
}

// tagOf returns a version as the value of an ETag.
func tagOf(version registry.ID) string { return `"` + version.String() + `"` }

// putLabels replaces labels, and answers with the request's own body.
func (s *server) putLabels(w http.ResponseWriter, r *http.Request) error {
	body, err := s.ReadBody(w, r)
	if err != nil {
		return err
	}
	asked, labels, err := labelsIn(body)
	if err != nil {
		return err
	}
	version, err := s.replaceLabels(r, body, labels)
	if err != nil {
		return err
	}
	w.Header()["ETag"] = []string{tagOf(version)}
	return s.AnswerJSON(w, r, asked)
}

func (s *server) deleteLabels(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.replaceLabels(r, nil, registry.Labels{}); err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.Done{})
}

// replaceLabels replaces the labels of the object named in a request. The catalog keeps the outcome
// for the Idempotency-Key, so every node answers a repeated request like the first one.
func (s *server) replaceLabels(r *http.Request, body []byte, labels registry.Labels) (registry.ID, error) {
	on, err := labelledOf(r)
	if err != nil {
		return registry.ID{}, err
	}
	key, err := catalogKey(r, on.Ident.Warehouse, body)
	if err != nil {
		return registry.ID{}, err
	}
	if r.Header.Get("If-None-Match") != "" {
		return registry.ID{}, moorage.Errorf(moorage.KindBadRequest,
			"If-None-Match is not known here: send the ETag of the labels in If-Match")
	}
	match := func(present registry.ID) bool { return matches(r, tagOf(present), !present.IsZero()) }
	put := s.config.Labels(web.CallerOf(r), key)
	return put.Put(context.WithoutCancel(r.Context()), on.Kind, on.Ident, labels, match)
}

// catalogKey returns the Idempotency-Key of a request, for a change that the catalog makes only
// once for each key. It returns nil if the request has no key.
func catalogKey(r *http.Request, warehouse string, body []byte) (*catalog.Key, error) {
	id, err := web.IdempotencyKey(r)
	if err != nil || id == "" {
		return nil, err
	}
	bound := append([]byte(strings.Join(r.Header.Values("If-Match"), ",")+"\x00"), body...)
	return &catalog.Key{
		ID: id, Warehouse: warehouse, Method: r.Method, Path: web.EscapedPath(r.URL) + "?" + r.URL.RawQuery,
		Body: sha256.Sum256(bound),
	}, nil
}

// labelsIn parses labels. It returns them in the form of the request and in the form of the
// catalog.
func labelsIn(body []byte) (asked client.Labels, labels registry.Labels, err error) {
	f, err := web.ParseFields(body, "labels")
	if err != nil {
		return asked, labels, err
	}
	asked = client.Labels{ObjectLabels: orEmpty(f.TextMap("object-labels")), Fields: []client.FieldLabels{}}
	length := f.Objects("fields", "field", catalog.LabelFieldsMax, func(inner *web.Fields) {
		for _, name := range []string{"field-id", "labels"} {
			inner.Require(name)
		}
		id := inner.Integer("field-id")
		if id < math.MinInt32 || id > math.MaxInt32 {
			inner.Fail("member %q is not the id of a field", "field-id")
		}
		asked.Fields = append(asked.Fields, client.FieldLabels{FieldID: int(id), Labels: inner.TextMap("labels")})
		f.Keep(inner.Failure)
	})
	switch {
	case f.Failure != nil:
		return asked, labels, f.Failure
	case length > catalog.LabelFieldsMax:
		return asked, labels, moorage.Errorf(moorage.KindTooLarge, "%d fields have labels, at most %d may", length,
			catalog.LabelFieldsMax)
	}
	labels.Object = asked.ObjectLabels
	for _, field := range asked.Fields {
		labels.Fields = append(labels.Fields, registry.FieldLabels{Field: field.FieldID, Labels: field.Labels})
	}
	return asked, labels, nil
}
