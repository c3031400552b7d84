package catalogkit

import (
	cryptorand "crypto/rand"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

// The API keys of these tests: their ids and their holders.
const (
	EtlName = "key:etl"
	OldKey  = "old"
	NewKey  = "new"
)

// KeyedCaller returns a caller with an API key.
func KeyedCaller(id string) moorage.Caller {
	return moorage.Caller{Name: EtlName, KeyID: id, KeyGeneration: 1}
}

// Secured is a catalog with access control, over a store that others may use too if it is shared.
type Secured struct {
	*Instance
	T     testing.TB
	Store registry.Store
}

// The administrator of the server, and two users.
const (
	AdminName = "key:admin"
	AnnName   = "corp:ann"
	BobName   = "corp:bob"
)

// NewSecured returns a catalog over store with access control. AdminName may grant privileges.
func NewSecured(t testing.TB, store registry.Store, alone bool, change ...func(*catalog.Config)) *Secured {
	t.Helper()
	s := Secure(t, store, alone, change...)
	if err := s.Admin().Enable(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Secure returns another catalog over store.
func Secure(t testing.TB, store registry.Store, alone bool, change ...func(*catalog.Config)) *Secured {
	t.Helper()
	files := memorystorage.New()
	config := catalog.Config{
		Deps:        registrytest.LedgerDeps(ledger.Config{Store: store, Now: testkit.NewClock().Now}),
		Locks:       locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	}
	g := gate.New(gate.Config{Store: store, Alone: alone, Now: config.Now})
	config.Guard = g
	if alone {
		config.Store = g.Watch(store)
	}
	for _, set := range change {
		set(&config)
	}
	n, err := NewInstance(config)
	if err != nil {
		t.Fatal(err)
	}
	return &Secured{n, t, store}
}

// Admin returns the access operations of the administrator.
func (s *Secured) Admin() *grants.Grants { return s.Access(AdminName) }

// Access returns the access operations of the caller with this name.
func (s *Secured) Access(name string) *grants.Grants {
	return s.As(moorage.Caller{Name: name}).Grants()
}

// Grant grants privileges, as the administrator.
func (s *Secured) Grant(object grants.Object, grantee string, privileges access.Privileges) {
	s.T.Helper()
	s.Change(grants.Change{Object: object, Grantee: grantee, Privileges: privileges})
}

// Revoke revokes privileges, as the administrator.
func (s *Secured) Revoke(object grants.Object, grantee string, privileges access.Privileges) {
	s.T.Helper()
	s.Change(grants.Change{Revoke: true, Object: object, Grantee: grantee, Privileges: privileges})
}

// Change changes grants, as the administrator.
func (s *Secured) Change(changes ...grants.Change) {
	s.T.Helper()
	if _, err := s.Admin().ChangeGrants(s.T.Context(), changes); err != nil {
		s.T.Fatal(err)
	}
}

// OnWarehouse returns the warehouse "w", for a grant.
func OnWarehouse() grants.Object {
	return grants.Object{Kind: access.Warehouse, Ident: moorage.Identifier{Warehouse: Warehouse}}
}

// OnNamespace returns a namespace of the warehouse "w", for a grant.
func OnNamespace(levels ...string) grants.Object {
	return grants.Object{Kind: access.Namespace, Ident: moorage.Identifier{Warehouse: Warehouse, Namespace: levels}}
}

// OnTable returns a table of the namespace "ns", for a grant.
func OnTable(name string) grants.Object {
	return grants.Object{Kind: access.Table, Ident: testkit.Ident(name)}
}

// Populate makes the warehouse, the namespaces ns and other, and the tables t and u in ns. AnnName
// owns all of them.
func (s *Secured) Populate() {
	s.T.Helper()
	ctx := s.T.Context()
	spec := warehouses.Spec{Name: Warehouse, Location: "file:///wh"}
	if _, err := s.Named(AdminName).Warehouses().Create(ctx, spec); err != nil {
		s.T.Fatal(err)
	}
	s.Grant(OnWarehouse(), AnnName, access.Create)
	for _, name := range []string{"ns", "other"} {
		if _, err := s.Named(AnnName).CreateNamespace(ctx, Warehouse, moorage.Namespace{name}, nil); err != nil {
			s.T.Fatal(err)
		}
	}
	for _, name := range []string{"t", "u"} {
		request := catalog.CreateTableRequest{Schema: []byte(Schema)}
		if _, err := s.Named(AnnName).CreateTable(ctx, testkit.Ident(name), request); err != nil {
			s.T.Fatal(err)
		}
	}
}

// WantSame fails the test unless got has the kind and the text of want.
func WantSame(t *testing.T, what string, got, want error) {
	t.Helper()
	if moorage.KindOf(got) != moorage.KindOf(want) || moorage.MessageOf(got) != moorage.MessageOf(want) {
		t.Errorf("%s: %v, want what is missing: %v", what, got, want)
	}
}

// EachPolicyStore runs test over each kind of store. alone is true if requests need not read the
// epoch.
func EachPolicyStore(t *testing.T, stores *storetest.Stores,
	test func(t *testing.T, store registry.Store, alone bool)) {
	t.Parallel()
	for name, open := range stores.Kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, testkit.NewBits(1)), name != "postgres")
		})
	}
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		test(t, memoryregistry.New(cryptorand.Reader), false)
	})
}
