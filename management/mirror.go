package management

import (
	"context"
	"net/http"
	"strings"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/internal/web"
	"moorage/management/client"
)

// Mirrors has the methods of catalog.Mirrors.
type Mirrors interface {
	Load(ctx context.Context, kind access.Kind, ident moorage.Identifier) (source string, err error)
	Put(ctx context.Context, kind access.Kind, ident moorage.Identifier, source, location string) error
	Register(ctx context.Context, kind access.Kind, ident moorage.Identifier, location string,
		requires catalog.Requires) error
	End(ctx context.Context, kind access.Kind, ident moorage.Identifier, location string) error
	Check(ctx context.Context, kind access.Kind, ident moorage.Identifier, request catalog.CheckRequest) (
		catalog.Checked, error)
	Files(ctx context.Context, warehouse, folder, after string) (
		files []catalog.MetadataFile, next string, err error)
}

// mirrorOperations returns the operations of imports.
func (s *server) mirrorOperations() []operation {
	return []operation{
		{"loadMirror", http.MethodGet, "/mirror", s.loadMirror},
		{"putMirror", http.MethodPut, "/mirror", s.changeMirror(s.putMirror)},
		{"endMirror", http.MethodPost, "/mirror/end", s.changeMirror(endMirror)},
		{"checkRegister", http.MethodPost, "/mirror/check", s.checkRegister},
		{"listMetadataFiles", http.MethodGet, "/metadata-files", s.listMetadataFiles},
	}
}

// mirrorOf returns the table or view named in the query parameters.
func mirrorOf(r *http.Request) (access.Kind, moorage.Identifier, error) {
	object, err := objectOfQuery(r)
	ref := refOf(object)
	if err == nil && ref.Kind != access.Table && ref.Kind != access.View {
		err = moorage.Errorf(moorage.KindBadRequest, "Only a table or a view can be a mirror: name one")
	}
	return ref.Kind, ref.Ident, err
}

func (s *server) loadMirror(w http.ResponseWriter, r *http.Request) error {
	kind, ident, err := mirrorOf(r)
	if err != nil {
		return err
	}
	source, err := s.config.Mirrors(web.CallerOf(r), nil).Load(r.Context(), kind, ident)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.Mirror{Source: source})
}

// mirrorChange is a requested change of a mirror.
type mirrorChange struct {
	kind             access.Kind
	ident            moorage.Identifier
	source, location string
	writable         bool // an ordinary table or view
}

func (s *server) putMirror(ctx context.Context, verbs Mirrors, asked *mirrorChange) error {
	switch {
	case asked.writable && asked.source != "":
		return moorage.Errorf(moorage.KindBadRequest, "What is writable is no mirror, and has no source")
	case asked.writable:
		return verbs.Register(ctx, asked.kind, asked.ident, asked.location, s.config.Policies.NoDeletions(asked.ident))
	case asked.source == "":
		return moorage.Errorf(moorage.KindBadRequest, "A mirror has a source")
	}
	return verbs.Put(ctx, asked.kind, asked.ident, asked.source, asked.location)
}

func endMirror(ctx context.Context, verbs Mirrors, asked *mirrorChange) error {
	asked.source = ""
	return verbs.End(ctx, asked.kind, asked.ident, asked.location)
}

// sourceBytesMax is the maximum length of the name of a source, which is part of a record.
const sourceBytesMax = 1024

// changeMirror returns the handler of a change of a mirror. The answer is the mirror.
func (s *server) changeMirror(change func(context.Context, Mirrors, *mirrorChange) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var asked mirrorChange
		var err error
		if asked.kind, asked.ident, err = mirrorOf(r); err != nil {
			return err
		}
		body, err := s.ReadBody(w, r)
		if err != nil {
			return err
		}
		f, err := web.ParseFields(body, "mirror")
		if err != nil {
			return err
		}
		f.Require("metadata-location")
		asked.source, asked.location = f.Text("source"), f.Text("metadata-location")
		asked.writable = f.Boolean("writable")
		if f.Failure != nil {
			return f.Failure
		}
		if len(asked.source) > sourceBytesMax {
			return moorage.Errorf(moorage.KindBadRequest, "The source has %d bytes, at most %d are allowed",
				len(asked.source), sourceBytesMax)
		}
		key, err := catalogKey(r, asked.ident.Warehouse, body)
		if err != nil {
			return err
		}
		verbs := s.config.Mirrors(web.CallerOf(r), key)
		if err := change(context.WithoutCancel(r.Context()), verbs, &asked); err != nil {
			return err
		}
		return s.AnswerJSON(w, r, client.Mirror{Source: asked.source})
	}
}

func (s *server) checkRegister(w http.ResponseWriter, r *http.Request) error {
	kind, ident, err := mirrorOf(r)
	if err != nil {
		return err
	}
	body, err := s.ReadBody(w, r)
	if err != nil {
		return err
	}
	f, err := web.ParseFields(body, "check")
	if err != nil {
		return err
	}
	f.Require("metadata-location")
	request := catalog.CheckRequest{
		MetadataLocation: f.Text("metadata-location"), NewNamespace: f.Boolean("new-namespace"),
	}
	if f.Failure != nil {
		return f.Failure
	}
	checked, err := s.config.Mirrors(web.CallerOf(r), nil).Check(r.Context(), kind, ident, request)
	if err != nil {
		return err
	}
	answer := client.RegisterChecked{Fitness: string(checked.Fitness), Why: checked.Why, Mirror: checked.Mirror}
	if checked.Document != nil {
		facts, err := client.FactsOf(checked.Document.Raw())
		if err != nil {
			return err
		}
		answer.Facts = &facts
	}
	return s.AnswerJSON(w, r, answer)
}

func (s *server) listMetadataFiles(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	warehouse, _, err := q.Text("warehouse")
	if err != nil {
		return err
	}
	folder, _, err := q.Text("location")
	if err != nil {
		return err
	}
	if warehouse == "" || folder == "" {
		return moorage.Errorf(moorage.KindBadRequest, "Name a warehouse and a location")
	}
	find := func(ctx context.Context, page moorage.Page) ([]client.MetadataFile, string, error) {
		files, next, err := s.config.Mirrors(web.CallerOf(r), nil).Files(ctx, warehouse, folder, page.After)
		return each(files, func(file catalog.MetadataFile) client.MetadataFile {
			return client.MetadataFile{Location: file.Location, Bytes: file.Bytes, Modified: file.Modified.UTC()}
		}), next, err
	}
	name := strings.Join([]string{"metadata-files", warehouse, folder}, "\x00")
	return list(s, name, pageSizes, find, func(found []client.MetadataFile, next *string) any {
		return client.MetadataFilesPage{Files: found, NextPage: client.NextPage{NextPageToken: next}}
	})(w, r)
}
