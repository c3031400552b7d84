package rest

import (
	"context"
	"net/http"

	"moorage/catalog"
	"moorage/internal/jsontext"
	"moorage/internal/web"
	"moorage/metadata"
)

// createView creates a view. Its properties may be missing: Java clients omit empty ones.
func (s *server) createView(r *http.Request, body []byte) (change, error) {
	ident, f, err := readNamed(r, body, "create view request")
	if err != nil {
		return nil, err
	}
	f.Require("schema")
	f.Require("view-version")
	request := catalog.CreateViewRequest{
		Schema:     f.Typed("schema", jsontext.Object).Bytes(),
		Version:    f.Typed("view-version", jsontext.Object).Bytes(),
		Location:   f.Text("location"),
		Properties: f.TextMap("properties"),
	}
	return s.answeringView(func(ctx context.Context, c catalog.Verbs) (*catalog.View, error) {
		return c.CreateView(ctx, ident, request)
	}), f.Failure
}

// loadView answers with the current version of a view.
func (s *server) loadView(w http.ResponseWriter, r *http.Request) error {
	ident, err := pathIdentifier(r, paramView)
	if err != nil {
		return err
	}
	through, err := referencedBy(r, ident.Warehouse)
	if err != nil {
		return err
	}
	view, err := s.catalogFor(r).LoadView(r.Context(), ident, through...)
	if err != nil {
		return err
	}
	return s.answerView(w, r, view)
}

// replaceView changes the query, the properties or the location of a view. The list of updates is
// required, though it may be empty or null. The list of requirements is optional. Source: REST
// specification, CommitViewRequest.
func (s *server) replaceView(r *http.Request, body []byte) (change, error) {
	ident, f, err := readCommit(r, body, paramView, "commit view request")
	if err != nil {
		return nil, err
	}
	if !f.Has("updates") {
		f.Fail("member %q is missing", "updates")
	}
	var request catalog.ReplaceViewRequest
	request.Requirements, request.Updates, err = decodeLists(f,
		metadata.DecodeViewRequirements, metadata.DecodeViewUpdates)
	return s.answeringView(func(ctx context.Context, c catalog.Verbs) (*catalog.View, error) {
		return c.ReplaceView(ctx, ident, request)
	}), err
}

func (s *server) dropView(r *http.Request, _ []byte) (change, error) {
	ident, err := pathIdentifier(r, paramView)
	return silently(func(ctx context.Context, c catalog.Verbs) error { return c.DropView(ctx, ident) }), err
}

func (s *server) registerView(r *http.Request, body []byte) (change, error) {
	ident, f, err := readNamed(r, body, "register view request")
	if err != nil {
		return nil, err
	}
	location := metadataLocationIn(f)
	return s.answeringView(func(ctx context.Context, c catalog.Verbs) (*catalog.View, error) {
		return c.RegisterView(ctx, ident, location)
	}), f.Failure
}

// answeringView returns a change that answers with one version of a view.
func (s *server) answeringView(apply func(ctx context.Context, c catalog.Verbs) (*catalog.View, error)) change {
	return func(ctx context.Context, c catalog.Verbs) (web.Handler, error) {
		view, err := apply(ctx, c)
		return func(w http.ResponseWriter, r *http.Request) error { return s.answerView(w, r, view) }, err
	}
}

// answerView answers with one version of a view. The response has the bytes of the document,
// surrounded by the location and the caller's configuration. There is no ETag, because the
// specification has none for views.
func (s *server) answerView(w http.ResponseWriter, r *http.Request, view *catalog.View) error {
	config, err := encodeConfig(view.Config)
	if err != nil {
		return err
	}
	w.Header()["Vary"] = web.HeaderVary
	return s.answerDocument(w, r, document{
		location: view.MetadataLocation, text: view.Document.Raw(), config: config, labels: view.Labels.Text,
		key: keyOfView(view)})
}
