package catalogkit

import (
	"context"
	"sync"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
)

// Servers holds the object stores of a test, by endpoint. All of them can have files with the same
// names.
type Servers struct {
	mu     sync.Mutex
	files  map[string]*memorystorage.Store
	Probes error // the result of each probe
}

// NewServers returns servers without files.
func NewServers() *Servers { return &Servers{files: make(map[string]*memorystorage.Store)} }

// At returns the files of a server.
func (s *Servers) At(endpoint string) *memorystorage.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[endpoint] == nil {
		s.files[endpoint] = memorystorage.New()
	}
	return s.files[endpoint]
}

// Open returns the files of the server in the option "endpoint".
func (s *Servers) Open(place storage.Place) (storage.Store, error) {
	store, err := s.At(place.Options["endpoint"]).Within(place.Roots)
	return RemoteFiles{store, place.Options, s}, err
}

// RemoteFiles holds the files of one server, for which a Stat is not cheap.
type RemoteFiles struct {
	storage.Store
	options map[string]string
	servers *Servers
}

// Probe returns the error in Servers.Probes.
func (r RemoteFiles) Probe(context.Context) error { return r.servers.Probes }

// ClientConfig returns the options of the server.
func (r RemoteFiles) ClientConfig() map[string]string { return r.options }

// NewRemoteFixture returns a fixture with another warehouse, "lake", on the server called "one".
func NewRemoteFixture(t *testing.T) (*Fixture, *Servers) {
	t.Helper()
	servers := NewServers()
	f := New(t, func(c *catalog.Config) { c.OpenStorage = servers.Open })
	f.Files = servers.At("one")
	f.CreateLake(map[string]string{"endpoint": "one"})
	return f, servers
}

// CreateLake makes the warehouse "lake", with these options of its storage, and the namespace "ns".
func (f *Fixture) CreateLake(options map[string]string) {
	f.T.Helper()
	spec := warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Storage: options}
	_, err := f.Warehouses().Create(f.Ctx, spec)
	if err == nil {
		_, err = f.CreateNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}, nil)
	}
	if err != nil {
		f.T.Fatal(err)
	}
}

// LakeIdent returns the identifier of the table "t" of the warehouse "lake".
func LakeIdent() moorage.Identifier {
	return moorage.Identifier{Warehouse: "lake", Namespace: moorage.Namespace{"ns"}, Name: "t"}
}
