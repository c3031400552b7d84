package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/storage"
)

// venderFiles is a storage that makes credentials and signs, as far as a test can tell.
type venderFiles struct {
	storage.Store
	*venders
}

func (v venderFiles) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	return v.Store.(storage.Lister).List(ctx, folder, after, limit)
}

// venders notes what a storage was asked for.
type venders struct {
	clock *clock

	// mu guards the fields below; a leaf.
	mu      sync.Mutex
	scopes  []storage.Scope
	signed  []storage.SignRequest
	fail    error // of Vend and Sign
	probes  error // of both probes
	arrived chan struct{}
	release chan struct{} // Vend waits for it, if it is set
}

func (v *venders) Vend(_ context.Context, scope storage.Scope) (storage.Credential, error) {
	v.mu.Lock()
	v.scopes = append(v.scopes, scope)
	number, fail, release := len(v.scopes), v.fail, v.release
	v.mu.Unlock()
	if release != nil {
		v.arrived <- struct{}{}
		<-release
	}
	lives := scope.Duration
	if lives == 0 {
		lives = time.Hour
	}
	return storage.Credential{
		Config:  map[string]string{"s3.session-token": fmt.Sprint("token ", number)},
		Expires: v.clock.Now().Add(lives),
	}, fail
}

func (v *venders) ProbeVending(context.Context) error { return v.probes }
func (v *venders) ProbeSigning(context.Context) error { return v.probes }

func (v *venders) Sign(_ context.Context, request storage.SignRequest) (storage.Signature, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signed = append(v.signed, request)
	return storage.Signature{Headers: map[string][]string{"Authorization": {"AWS4"}}}, v.fail
}

func (v *venders) asked() []storage.Scope {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.scopes)
}

var bothWays = vending.Delegations()

// newVendingFixture returns a fixture with a warehouse "lake" that offers delegations, and a table.
func newVendingFixture(t *testing.T, offers ...vending.Delegation) (*fixture, *venders, *catalog.Table) {
	t.Helper()
	v := new(venders)
	f := newFixture(t, func(config *catalog.Config) {
		wrapStorage(config, func(inner storage.Store) storage.Store { return venderFiles{inner, v} })
	})
	v.clock = f.clock
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: offers})
	if err == nil {
		_, err = f.CreateNamespace(f.ctx, "lake", moorage.Namespace{"ns"}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	table, err := f.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	if err != nil {
		t.Fatal(err)
	}
	return f, v, table
}

// given is what somebody is given for the table.
func (f *fixture) given(caller string, asked ...vending.Delegation) vending.Delegated {
	f.t.Helper()
	c := f.As(moorage.Caller{Name: caller})
	table, err := c.LoadTable(f.ctx, lakeIdent())
	if err != nil {
		f.t.Fatal(err)
	}
	given, err := c.Delegate(f.ctx, table, asked)
	if err != nil {
		f.t.Fatal(err)
	}
	return given
}

// TestDelegations asks each warehouse for each combination.
func TestDelegations(t *testing.T) {
	t.Parallel()
	const vended, signing = vending.VendedCredentials, vending.RemoteSigning
	for _, tt := range []struct {
		offers, asked []vending.Delegation
		want          vending.Delegation
	}{
		{nil, nil, ""}, {nil, bothWays, ""}, {bothWays, nil, ""},
		{bothWays, bothWays, vended},
		{[]vending.Delegation{signing, vended}, bothWays, signing}, // the warehouse's order
		{bothWays, []vending.Delegation{signing}, signing},
		{[]vending.Delegation{vended}, []vending.Delegation{signing}, ""},
		{[]vending.Delegation{signing}, bothWays, signing},
	} {
		t.Run(fmt.Sprint(tt.offers, tt.asked), func(t *testing.T) {
			t.Parallel()
			f, _, _ := newVendingFixture(t, tt.offers...)
			given := f.given("a", tt.asked...)
			if given.Delegation != tt.want || (len(given.Credential.Config) > 0) != (tt.want == vended) {
				t.Errorf("%+v, want %q", given, tt.want)
			}
		})
	}
}

// TestCredentialIsOfTheClaims compares what the storage is asked for with the table's claims: what
// a document says of itself does not count.
func TestCredentialIsOfTheClaims(t *testing.T) {
	t.Parallel()
	f, v, table := newVendingFixture(t, bothWays...)
	first := table.Document.Location()
	if !strings.HasPrefix(first, "s3://bucket/lake/ns/t-") {
		t.Errorf("the table is at %s, which another one may have had", first)
	}
	_, err := f.Commit(f.ctx, lakeIdent(), commitRequest(t, `[]`, `[{"action":"set-location","location":"s3://bucket/lake/moved"}]`))
	if err != nil {
		t.Fatal(err)
	}
	given := f.given("corp:ann", vending.VendedCredentials)
	scope := v.asked()[0]
	want := storage.Scope{Locations: []string{"s3://bucket/lake/moved", first}, Write: true, Session: "corp:ann"}
	if fmt.Sprint(scope) != fmt.Sprint(want) {
		t.Errorf("asked for %+v, want %+v", scope, want)
	}
	if given.Prefix != "s3://bucket/lake/moved/" || !given.Refresh {
		t.Errorf("given %+v", given)
	}
}

// TestCredentialIsKept gives a credential again for half its life, to its caller alone.
func TestCredentialIsKept(t *testing.T) {
	t.Parallel()
	f, v, _ := newVendingFixture(t, bothWays...)
	first := f.given("a", vending.VendedCredentials)
	f.clock.Advance(25 * time.Minute)
	if again := f.given("a", vending.VendedCredentials); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("after 25 minutes: %+v, want %+v", again, first)
	}
	if other := f.given("b", vending.VendedCredentials); other.Version == first.Version {
		t.Error("two callers have one credential")
	}
	f.clock.Advance(10 * time.Minute)
	later := f.given("a", vending.VendedCredentials)
	if later.Version == first.Version || len(v.asked()) != 3 {
		t.Errorf("after 35 minutes: %+v, the storage was asked %d times", later, len(v.asked()))
	}
	if left := later.Credential.Expires.Sub(f.clock.Now()); left != time.Hour {
		t.Errorf("the new one is good for %s", left)
	}
}

// TestCredentialIsMadeOnce lets many ask at the same time.
func TestCredentialIsMadeOnce(t *testing.T) {
	t.Parallel()
	f, v, _ := newVendingFixture(t, bothWays...)
	v.arrived, v.release = make(chan struct{}, 1), make(chan struct{})
	var group sync.WaitGroup
	versions := make([]string, 20)
	for i := range versions {
		group.Go(func() { versions[i] = f.given("a", vending.VendedCredentials).Version })
	}
	<-v.arrived
	close(v.release)
	group.Wait()
	if len(slices.Compact(versions)) != 1 || len(v.asked()) != 1 {
		t.Errorf("the storage was asked %d times", len(v.asked()))
	}
}

// TestTooManyCredentials asks for more than one warehouse makes in the time that a client waits.
func TestTooManyCredentials(t *testing.T) {
	t.Parallel()
	f, v, table := newVendingFixture(t, bothWays...)
	refused := 0
	ctx, cancel := context.WithCancel(f.ctx)
	var mu sync.Mutex // guards refused
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			_, err := f.As(moorage.Caller{Name: fmt.Sprint(i)}).Delegate(ctx, table, bothWays)
			if moorage.KindOf(err) == moorage.KindTooManyRequests {
				mu.Lock()
				defer mu.Unlock()
				if refused++; refused == 90 {
					cancel() // the others wait for their turn
				}
			}
		})
	}
	group.Wait()
	cancel()
	if refused < 90 || len(v.asked()) > 110 {
		t.Errorf("%d of 200 were refused, the storage was asked %d times", refused, len(v.asked()))
	}
}

// TestNoCredential asks storages that make none.
func TestNoCredential(t *testing.T) {
	t.Parallel()
	f, v, table := newVendingFixture(t, bothWays...)
	v.fail = fmt.Errorf("%w: no", storage.ErrUnscopable)
	if given := f.given("a", vending.VendedCredentials); given.Delegation != "" || given.Reason == "" {
		t.Errorf("what no policy can spell: %+v", given)
	}
	if given := f.given("a", bothWays...); given.Delegation != vending.RemoteSigning {
		t.Errorf("what no policy can spell, with signing: %+v", given)
	}
	if _, err := f.Catalog.LoadCredentials(f.ctx, lakeIdent(), ""); moorage.KindOf(err) != moorage.KindBadRequest {
		t.Errorf("LoadCredentials = %v, want KindBadRequest", err)
	}
	for _, fail := range []error{storage.ErrUnavailable, errors.New("denied")} {
		v.fail = fail
		if _, err := f.Catalog.Delegate(f.ctx, table, bothWays); moorage.KindOf(err) != moorage.KindUnavailable {
			t.Errorf("%v: %v, want KindUnavailable", fail, err)
		}
	}
	v.fail = nil
	if given := f.given("a", vending.VendedCredentials); given.Delegation != vending.VendedCredentials {
		t.Errorf("a failure was kept: %+v", given)
	}
}

func TestLoadCredentials(t *testing.T) {
	t.Parallel()
	f, v, _ := newVendingFixture(t, bothWays...)
	given, err := f.Catalog.LoadCredentials(f.ctx, lakeIdent(), "")
	if err != nil || given.Delegation != vending.VendedCredentials || !strings.HasSuffix(given.Prefix, "/") {
		t.Errorf("LoadCredentials = %+v, %v", given, err)
	}
	missing := lakeIdent()
	missing.Name = "missing"
	if _, err := f.Catalog.LoadCredentials(f.ctx, missing, ""); moorage.KindOf(err) != moorage.KindNoSuchTable {
		t.Errorf("of a missing table: %v", err)
	}
	f.create("plain")
	if _, err := f.Catalog.LoadCredentials(f.ctx, ident("plain"), ""); moorage.KindOf(err) != moorage.KindBadRequest {
		t.Errorf("in a warehouse without credentials: %v", err)
	}
	if len(v.asked()) != 1 {
		t.Errorf("the storage was asked %d times", len(v.asked()))
	}
}

// TestStagedCredential gives credentials for a table that is not stored yet, for a short while: at
// the server's own choice of a location, and at one that its client drew as Trino does.
func TestStagedCredential(t *testing.T) {
	t.Parallel()
	f, v, _ := newVendingFixture(t, bothWays...)
	staged := lakeIdent()
	staged.Name = "staged"
	const drawn, left = "0123456789abcdef0123456789abcdef", "ffffffffffffffffffffffffffffffff"
	f.write("s3://bucket/lake/ns/staged-" + left + "/data/x.parquet") // of a table that was dropped
	for _, tt := range []struct {
		location string
		want     vending.Delegation
	}{
		{"", vending.VendedCredentials},
		{"s3://bucket/lake/ns/staged-" + drawn, vending.VendedCredentials},
		{"s3a://bucket/lake/ns/staged-" + drawn + "/", vending.VendedCredentials},
		{"s3://bucket/lake/ns/staged-" + left, ""},
		{"s3://bucket/lake/ns/staged", ""},
		{"s3://bucket/lake/ns/" + drawn, ""},
		{"s3://bucket/lake/ns/staged-" + drawn[1:], ""},
		{"s3://bucket/lake/ns/below/staged-" + drawn, ""},
		{"s3://bucket/lake/other/staged-" + drawn, ""},
		{"s3://bucket/lake/mine", ""},
	} {
		table, err := f.CreateTable(f.ctx, staged,
			catalog.CreateTableRequest{Schema: []byte(testSchema), Stage: true, Location: tt.location})
		if err != nil {
			t.Fatal(err)
		}
		before := len(v.asked())
		given, err := f.Catalog.Delegate(f.ctx, table, bothWays)
		location, normaliseErr := storage.Normalise(table.Document.Location())
		must(t, normaliseErr)
		renewed := "" // what a client chose is for the one answer only
		if tt.location == "" {
			renewed = location
		}
		if err != nil || given.Delegation != tt.want || given.Staged != renewed || given.Refresh != (renewed != "") {
			t.Errorf("%q: %+v, %v, want %q", tt.location, given, err, tt.want)
		}
		for _, scope := range v.asked()[before:] {
			if scope.Duration != 15*time.Minute || !slices.Equal(scope.Locations, []string{location}) {
				t.Errorf("%q: asked for %+v", tt.location, scope)
			}
		}
		if tt.want == "" && len(v.asked()) != before {
			t.Errorf("%q: the storage was asked", tt.location)
		}
	}
}

func TestSign(t *testing.T) {
	t.Parallel()
	f, v, table := newVendingFixture(t, bothWays...)
	request := vending.SignRequest{Method: "GET", URI: "http://x", Locations: []string{"s3://bucket/lake/ns/others"}}
	signature, err := f.Catalog.Sign(f.ctx, lakeIdent(), "", request)
	if err != nil || len(signature.Headers) != 1 {
		t.Fatalf("Sign = %+v, %v", signature, err)
	}
	if got := v.signed[0]; !slices.Equal(got.Locations, []string{table.Document.Location()}) {
		t.Errorf("signed for %q", got.Locations)
	}
	f.create("plain")
	for _, tt := range []struct {
		fail error
		on   moorage.Identifier
		want moorage.Kind
	}{
		{storage.ErrNotSigned, lakeIdent(), moorage.KindForbidden},
		{storage.ErrNeedsWrite, lakeIdent(), moorage.KindForbidden},
		{storage.ErrMalformedRequest, lakeIdent(), moorage.KindBadRequest},
		{errors.New("no key"), lakeIdent(), moorage.KindUnavailable},
		{nil, ident("plain"), moorage.KindBadRequest},
		{nil, ident("missing"), moorage.KindNoSuchTable},
	} {
		v.fail = tt.fail
		if _, err := f.Catalog.Sign(f.ctx, tt.on, "", request); moorage.KindOf(err) != tt.want {
			t.Errorf("%v on %s: %v, want %s", tt.fail, tt.on, err, tt.want)
		}
	}
}

// TestWarehouseIsProbed makes warehouses over storages that do not enforce what they offer.
func TestWarehouseIsProbed(t *testing.T) {
	t.Parallel()
	f, v, _ := newVendingFixture(t, bothWays...)
	for _, tt := range []struct {
		name   string
		probes error
		offers []vending.Delegation
		want   moorage.Kind
	}{
		{"lax", storage.ErrUnenforced, bothWays[:1], moorage.KindBadRequest},
		{"lax-signer", storage.ErrUnenforced, bothWays[1:], moorage.KindBadRequest},
		{"away", storage.ErrUnavailable, bothWays, moorage.KindUnavailable},
		{"unknown", nil, []vending.Delegation{"static"}, moorage.KindBadRequest},
		{"twice", nil, []vending.Delegation{bothWays[0], bothWays[0]}, moorage.KindBadRequest},
	} {
		v.probes = tt.probes
		spec := warehouses.Spec{Name: tt.name, Location: "s3://bucket/" + tt.name, Delegation: tt.offers}
		if _, err := f.Warehouses().Create(f.ctx, spec); moorage.KindOf(err) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		if _, err := f.LoadWarehouse(f.ctx, tt.name); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
			t.Errorf("%s was made: %v", tt.name, err)
		}
		spec.Delegation = nil
		if _, err := f.Warehouses().Create(f.ctx, spec); err != nil {
			t.Errorf("%s without delegations: %v", tt.name, err)
		}
	}
}

// TestDelegationsByPrivilege: who may write is given credentials to write, who may read such to
// read, and who may only see the table none.
func TestDelegationsByPrivilege(t *testing.T) {
	t.Parallel()
	v := new(venders)
	f := newFixture(t, func(config *catalog.Config) {
		wrapStorage(config, func(inner storage.Store) storage.Store { return venderFiles{inner, v} })
		config.Guard = gate.New(gate.Config{Store: config.Store, Now: config.Now})
	})
	v.clock = f.clock
	if _, err := f.Warehouses().Create(f.ctx,
		warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: bothWays}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateNamespace(f.ctx, "lake", moorage.Namespace{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)}); err != nil {
		t.Fatal(err)
	}
	f.switchAccessOn("lake", map[string]string{"corp:w": "write", "corp:r": "read", "corp:d": "describe"})

	for _, tt := range []struct {
		caller       string
		gets, writes bool
	}{{"corp:w", true, true}, {"corp:r", true, false}, {"corp:d", false, false}} {
		before := len(v.asked())
		given := f.given(tt.caller, bothWays...)
		if (given.Delegation == vending.VendedCredentials) != tt.gets || tt.gets == (given.Reason != "") {
			t.Errorf("%s is given %+v", tt.caller, given)
		}
		if asked := v.asked()[before:]; (len(asked) == 1) != tt.gets || tt.gets && asked[0].Write != tt.writes {
			t.Errorf("for %s the storage was asked for %+v", tt.caller, asked)
		}
		c := f.As(moorage.Caller{Name: tt.caller})
		if _, err := c.LoadCredentials(f.ctx, lakeIdent(), ""); (err == nil) != tt.gets ||
			!tt.gets && moorage.KindOf(err) != moorage.KindForbidden {
			t.Errorf("LoadCredentials of %s: %v", tt.caller, err)
		}
		signedBefore := len(v.signed)
		_, err := c.Sign(f.ctx, lakeIdent(), "", vending.SignRequest{Method: "GET"})
		if tt.gets && (err != nil || v.signed[signedBefore].Write != tt.writes) ||
			!tt.gets && (moorage.KindOf(err) != moorage.KindForbidden || len(v.signed) != signedBefore) {
			t.Errorf("Sign of %s: %v", tt.caller, err)
		}
	}
	stranger := f.As(moorage.Caller{Name: "corp:stranger"})
	if _, err := stranger.LoadCredentials(f.ctx, lakeIdent(), ""); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		t.Errorf("LoadCredentials of a stranger: %v", err)
	}
	if _, err := stranger.Sign(f.ctx, lakeIdent(), "", vending.SignRequest{}); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		t.Errorf("Sign of a stranger: %v", err)
	}
}

// switchAccessOn writes the records of access: each grantee has a privilege on the warehouse.
func (f *fixture) switchAccessOn(warehouse string, privileges map[string]string) {
	f.t.Helper()
	records, err := f.store.Get(f.ctx, registry.WarehouseKey(warehouse))
	if err != nil {
		f.t.Fatal(err)
	}
	value, err := registry.Decode[registry.Warehouse](records[0])
	if err != nil {
		f.t.Fatal(err)
	}
	grants := registry.Grants{Kind: "warehouse", Ident: moorage.Identifier{Warehouse: warehouse}}
	for _, grantee := range slices.Sorted(maps.Keys(privileges)) {
		grants.Grants = append(grants.Grants, registry.Grant{Grantee: grantee, Privileges: strings.Split(privileges[grantee], ",")})
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
			f.t.Fatal(err)
		}
		writes = append(writes, registry.Put(record.key, registry.StateNone, encoded))
	}
	if _, err := f.store.Apply(f.ctx, registry.Batch{Writes: writes}); err != nil {
		f.t.Fatal(err)
	}
}
