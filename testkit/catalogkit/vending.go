package catalogkit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit"
)

// VenderFiles is a storage that issues fake credentials and signatures.
type VenderFiles struct {
	storage.Store
	*Venders
}

// List implements storage.Lister.
func (v VenderFiles) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	return v.Store.(storage.Lister).List(ctx, folder, after, limit)
}

// Venders records the requests for credentials and signatures.
type Venders struct {
	Clock *testkit.Clock

	// Mu guards the fields below; a leaf.
	Mu      sync.Mutex
	Scopes  []storage.Scope
	Signed  []storage.SignRequest
	Fail    error // the error of Vend and Sign
	Probes  error // the error of both probes
	Arrived chan struct{}
	Release chan struct{} // if set, Vend waits for it
}

// Vend implements storage.Vender.
func (v *Venders) Vend(_ context.Context, scope storage.Scope) (storage.Credential, error) {
	v.Mu.Lock()
	v.Scopes = append(v.Scopes, scope)
	number, fail, release := len(v.Scopes), v.Fail, v.Release
	v.Mu.Unlock()
	if release != nil {
		v.Arrived <- struct{}{}
		<-release
	}
	lives := scope.Duration
	if lives == 0 {
		lives = time.Hour
	}
	return storage.Credential{
		Config:  map[string]string{"s3.session-token": fmt.Sprint("token ", number)},
		Expires: v.Clock.Now().Add(lives),
	}, fail
}

// ProbeVending returns the error in Probes.
func (v *Venders) ProbeVending(context.Context) error { return v.Probes }

// ProbeSigning returns the error in Probes.
func (v *Venders) ProbeSigning(context.Context) error { return v.Probes }

// Sign implements storage.Signer.
func (v *Venders) Sign(_ context.Context, request storage.SignRequest) (storage.Signature, error) {
	v.Mu.Lock()
	defer v.Mu.Unlock()
	v.Signed = append(v.Signed, request)
	return storage.Signature{Headers: map[string][]string{"Authorization": {"AWS4"}}}, v.Fail
}

// BothWays holds all kinds of access that a warehouse can offer.
var BothWays = vending.Delegations()

// NewVendingFixture returns a fixture with a warehouse "lake" that offers delegations, and a table.
func NewVendingFixture(t *testing.T, offers ...vending.Delegation) (*Fixture, *Venders, *catalog.Table) {
	t.Helper()
	v := new(Venders)
	f := New(t, func(config *catalog.Config) {
		WrapStorage(config, func(inner storage.Store) storage.Store { return VenderFiles{inner, v} })
	})
	v.Clock = f.Clock
	spec := warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: offers}
	_, err := f.Warehouses().Create(f.Ctx, spec)
	if err == nil {
		_, err = f.CreateNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	table, err := f.CreateTable(f.Ctx, LakeIdent(), catalog.CreateTableRequest{Schema: []byte(Schema)})
	if err != nil {
		t.Fatal(err)
	}
	return f, v, table
}

// Given returns the access that a caller gets to the table of NewVendingFixture.
func (f *Fixture) Given(caller string, asked ...vending.Delegation) vending.Delegated {
	f.T.Helper()
	c := f.As(moorage.Caller{Name: caller})
	table, err := c.LoadTable(f.Ctx, LakeIdent())
	if err != nil {
		f.T.Fatal(err)
	}
	given, err := c.Delegate(f.Ctx, table, asked)
	if err != nil {
		f.T.Fatal(err)
	}
	return given
}

// SwitchAccessOn writes the records of access control. Each grantee gets a privilege on the
// warehouse.
func (f *Fixture) SwitchAccessOn(warehouse string, privileges map[string]string) {
	f.T.Helper()
	records, err := f.Store.Get(f.Ctx, registry.WarehouseKey(warehouse))
	if err != nil {
		f.T.Fatal(err)
	}
	value, err := registry.Decode[registry.Warehouse](records[0])
	if err != nil {
		f.T.Fatal(err)
	}
	grants := registry.Grants{Kind: "warehouse", Ident: moorage.Identifier{Warehouse: warehouse}}
	for _, grantee := range slices.Sorted(maps.Keys(privileges)) {
		granted := registry.Grant{Grantee: grantee, Privileges: strings.Split(privileges[grantee], ",")}
		grants.Grants = append(grants.Grants, granted)
	}
	var writes []registry.Write
	for _, record := range []struct {
		key   registry.Key
		value registry.Value
	}{
		{registry.EpochKey(), registry.Epoch{Number: 2}}, {registry.RecentKey(), registry.Recent{}},
		{registry.AccessStoreKey(), registry.AccessStore{ID: value.ID}}, {registry.GrantsKey(value.ID), grants},
	} {
		encoded, err := registry.Encode(record.value)
		if err != nil {
			f.T.Fatal(err)
		}
		writes = append(writes, registry.Put(record.key, registry.StateNone, encoded))
	}
	if _, err := f.Store.Apply(f.Ctx, registry.Batch{Writes: writes}); err != nil {
		f.T.Fatal(err)
	}
}

// The table-uuids of forged files.
const ForgedUUID, OtherForgedUUID = "9c12d441-03fe-4693-9a96-a0705ddf69c2", "9c12d441-03fe-4693-9a96-a0705ddf69c3"

// LimitedLife is the lifetime of credentials of LimitedFiles.
const LimitedLife = 2 * time.Hour

// RestingTable is the location of a table that is gone. Credentials for it may have been issued.
const RestingTable = "s3://bucket/lake/ns/here"

// NewRestingFixture returns a fixture with a table at RestingTable, in a warehouse whose
// credentials live for LimitedLife.
func NewRestingFixture(t *testing.T) (*Fixture, *catalog.Table) {
	t.Helper()
	v := new(Venders)
	f := New(t, func(config *catalog.Config) {
		WrapStorage(config, func(inner storage.Store) storage.Store { return LimitedFiles{VenderFiles{inner, v}} })
	})
	v.Clock = f.Clock
	spec := warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: BothWays}
	_, err := f.Warehouses().Create(f.Ctx, spec)
	testkit.Must(t, err)
	_, err = f.CreateNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}, nil)
	testkit.Must(t, err)
	request := catalog.CreateTableRequest{Schema: []byte(Schema), Location: RestingTable}
	table, err := f.CreateTable(f.Ctx, LakeIdent(), request)
	testkit.Must(t, err)
	return f, table
}

// AnotherAt makes or stages another table at a location.
func (f *Fixture) AnotherAt(location string, stage bool) error {
	other := LakeIdent()
	other.Name = "other"
	request := catalog.CreateTableRequest{Schema: []byte(Schema), Location: location, Stage: stage}
	_, err := f.CreateTable(f.Ctx, other, request)
	return err
}

// LimitedFiles is a VenderFiles whose credentials are valid for at most two hours.
type LimitedFiles struct{ VenderFiles }

// CredentialLife returns LimitedLife.
func (LimitedFiles) CredentialLife() time.Duration { return LimitedLife }
