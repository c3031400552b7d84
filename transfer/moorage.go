package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"moorage/management/client"
)

// Server is a warehouse of a Moorage server as a Target. It is safe for concurrent use.
type Server struct {
	*REST  // the same warehouse over the Iceberg protocol
	server *client.Client
	name   string // of the warehouse
	// SourceFrozen means that nothing uses the source any more: maintenance may delete its files.
	// It is set before the first use.
	SourceFrozen bool
}

// OpenServer returns the warehouse as a Target. rest reaches the same warehouse.
func OpenServer(server *client.Client, warehouse string, rest *REST) *Server {
	return &Server{REST: rest, server: server, name: warehouse}
}

// do sends a request, and repeats it: see Patience.
func (s *Server) do(ctx context.Context, asked client.Request, answer any) error {
	return s.access.Patience.ask(ctx, asked.Reads, func() error { return s.server.Do(ctx, asked, answer) })
}

// query names an object.
func (s *Server) query(o Object) url.Values {
	object := client.Object{Warehouse: s.name, Namespace: o.Namespace, Table: o.Name}
	if o.View {
		object.Table, object.View = "", o.Name
	}
	return object.Query()
}

// Check implements Target. A namespace that is missing will be made.
func (s *Server) Check(ctx context.Context, o Object) (checked client.RegisterChecked, err error) {
	there, err := s.check(ctx, o, false)
	if !isMissingNamespace(err) {
		return there, err
	}
	checked, err = s.check(ctx, o, true)
	if err != nil || checked.Fitness == string(StatusNew) {
		return checked, err
	}
	// A request of a killed run may have made the namespace, and the object in it, meanwhile.
	if there, err := s.check(ctx, o, false); !isMissingNamespace(err) {
		return there, err
	}
	return checked, nil
}

func (s *Server) check(ctx context.Context, o Object, isNew bool) (checked client.RegisterChecked, err error) {
	err = s.do(ctx, client.Request{
		Method: http.MethodPost, Path: client.Path("mirror", "check"), Query: s.query(o), Reads: true,
		Body: client.RegisterCheck{MetadataLocation: o.MetadataLocation, NewNamespace: isNew},
	}, &checked)
	return checked, err
}

func isMissingNamespace(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Type == typeNoNamespace
}

// typeNoNamespace is the type of the error for a namespace that does not exist.
const typeNoNamespace = "NoSuchNamespaceException"

// Register implements Target. An ordinary table is refused while maintenance could delete its
// files, unless SourceFrozen.
func (s *Server) Register(ctx context.Context, o Object, mirror string) error {
	if mirror == "" && s.SourceFrozen {
		return s.REST.Register(ctx, o, "")
	}
	return s.do(ctx, client.Request{
		Method: http.MethodPut, Path: client.Path("mirror"), Query: s.query(o),
		Body: client.MirrorRequest{Source: mirror, MetadataLocation: o.MetadataLocation, Writable: mirror == ""},
	}, nil)
}

// EndMirror implements Target.
func (s *Server) EndMirror(ctx context.Context, o Object) error {
	return s.do(ctx, client.Request{
		Method: http.MethodPost, Path: client.Path("mirror", "end"), Query: s.query(o),
		Body: client.MirrorEnd{MetadataLocation: o.MetadataLocation},
	}, nil)
}

// Files is a folder of tables that no catalog has, as a Source: the folders of a Hadoop catalog, or
// of a catalog that was lost. It is safe for concurrent use.
type Files struct {
	server   *client.Client
	name     string // of the warehouse whose storage reads the folder
	location string
	patience *Patience // with the server
}

// OpenFiles returns the tables below location, which the storage of a warehouse reads.
func OpenFiles(server *client.Client, warehouse, location string, patience *Patience) *Files {
	return &Files{server, warehouse, location, patience}
}

// Name implements Source.
func (f *Files) Name() string { return f.location }

// Namespaces implements Source.
func (f *Files) Namespaces(context.Context) ([]Namespace, error) { return nil, nil }

// List implements Source. The namespace of a table is the path to its folder. Of several metadata
// files of a table it has the one with the greatest version, and of these the latest.
func (f *Files) List(ctx context.Context, visit func(Object) error) error {
	newest := make(newestFiles)
	if err := f.read(ctx, f.location, newest); err != nil {
		return err
	}
	return newest.visit(f.location, visit)
}

// Load implements Source.
func (f *Files) Load(ctx context.Context, o Object) (Object, error) {
	newest := make(newestFiles)
	folder := folderOf(o.MetadataLocation)
	if folder == "" {
		return o, fmt.Errorf("%w: its metadata file is in no folder", ErrUnreadable)
	}
	if err := f.read(ctx, folder, newest); err != nil {
		return o, err
	}
	file, ok := newest[folder]
	if !ok {
		return o, ErrGone
	}
	o.MetadataLocation = file.Location
	return o, nil
}

func (f *Files) read(ctx context.Context, location string, newest newestFiles) error {
	asked := client.Request{
		Method: http.MethodGet, Path: client.Path("metadata-files"),
		Query: url.Values{"warehouse": {f.name}, "location": {location}},
	}
	return f.patience.ask(ctx, true, func() error {
		return client.Pages(ctx, f.server, asked, func(page client.MetadataFilesPage) bool {
			for _, file := range page.Files {
				newest.add(file)
			}
			return true
		})
	})
}
