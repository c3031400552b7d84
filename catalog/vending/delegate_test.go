package vending_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

func askedOf(v *catalogkit.Venders) []storage.Scope {
	v.Mu.Lock()
	defer v.Mu.Unlock()
	return slices.Clone(v.Scopes)
}

// TestDelegations requests each combination of delegations from each warehouse.
func TestDelegations(t *testing.T) {
	t.Parallel()
	const vended, signing = vending.VendedCredentials, vending.RemoteSigning
	for _, tt := range []struct {
		offers, asked []vending.Delegation
		want          vending.Delegation
	}{
		{nil, nil, ""}, {nil, catalogkit.BothWays, ""}, {catalogkit.BothWays, nil, ""},
		{catalogkit.BothWays, catalogkit.BothWays, vended},
		{[]vending.Delegation{signing, vended}, catalogkit.BothWays, signing}, // in the warehouse's order
		{catalogkit.BothWays, []vending.Delegation{signing}, signing},
		{[]vending.Delegation{vended}, []vending.Delegation{signing}, ""},
		{[]vending.Delegation{signing}, catalogkit.BothWays, signing},
	} {
		t.Run(fmt.Sprint(tt.offers, tt.asked), func(t *testing.T) {
			t.Parallel()
			f, _, _ := catalogkit.NewVendingFixture(t, tt.offers...)
			given := f.Given("a", tt.asked...)
			if given.Delegation != tt.want || (len(given.Credential.Config) > 0) != (tt.want == vended) {
				t.Errorf("%+v, want %q", given, tt.want)
			}
		})
	}
}

// TestCredentialIsOfTheClaims compares the locations requested from the storage with the table's
// claims. Locations in the table's document do not count.
func TestCredentialIsOfTheClaims(t *testing.T) {
	t.Parallel()
	f, v, table := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	first := table.Document.Location()
	if !strings.HasPrefix(first, "s3://bucket/lake/ns/t-") {
		t.Errorf("the table is at %s, which another one may have had", first)
	}
	_, err := f.Commit(f.Ctx, catalogkit.LakeIdent(), catalogkit.CommitRequest(t, `[]`, `[{"action":"set-location","location":"s3://bucket/lake/moved"}]`))
	if err != nil {
		t.Fatal(err)
	}
	given := f.Given("corp:ann", vending.VendedCredentials)
	scope := askedOf(v)[0]
	want := storage.Scope{Locations: []string{"s3://bucket/lake/moved", first}, Write: true, Session: "corp:ann"}
	if fmt.Sprint(scope) != fmt.Sprint(want) {
		t.Errorf("asked for %+v, want %+v", scope, want)
	}
	if given.Prefix != "s3://bucket/lake/moved/" || !given.Refresh {
		t.Errorf("given %+v", given)
	}
}

// TestCredentialIsKept: a credential is returned again for half of its life, but only to the same
// caller.
func TestCredentialIsKept(t *testing.T) {
	t.Parallel()
	f, v, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	first := f.Given("a", vending.VendedCredentials)
	f.Clock.Advance(25 * time.Minute)
	if again := f.Given("a", vending.VendedCredentials); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("after 25 minutes: %+v, want %+v", again, first)
	}
	if other := f.Given("b", vending.VendedCredentials); other.Version == first.Version {
		t.Error("two callers have one credential")
	}
	f.Clock.Advance(10 * time.Minute)
	later := f.Given("a", vending.VendedCredentials)
	if later.Version == first.Version || len(askedOf(v)) != 3 {
		t.Errorf("after 35 minutes: %+v, the storage was asked %d times", later, len(askedOf(v)))
	}
	if left := later.Credential.Expires.Sub(f.Clock.Now()); left != time.Hour {
		t.Errorf("the new one is good for %s", left)
	}
}

// TestCredentialIsMadeOnce: many concurrent requests share one credential.
func TestCredentialIsMadeOnce(t *testing.T) {
	t.Parallel()
	f, v, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	v.Arrived, v.Release = make(chan struct{}, 1), make(chan struct{})
	var group sync.WaitGroup
	versions := make([]string, 20)
	for i := range versions {
		group.Go(func() { versions[i] = f.Given("a", vending.VendedCredentials).Version })
	}
	<-v.Arrived
	close(v.Release)
	group.Wait()
	if len(slices.Compact(versions)) != 1 || len(askedOf(v)) != 1 {
		t.Errorf("the storage was asked %d times", len(askedOf(v)))
	}
}

// TestTooManyCredentials requests more credentials than a warehouse issues in the time that a
// client waits.
func TestTooManyCredentials(t *testing.T) {
	t.Parallel()
	f, v, table := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	refused := 0
	ctx, cancel := context.WithCancel(f.Ctx)
	var mu sync.Mutex // guards refused
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			_, err := f.As(moorage.Caller{Name: fmt.Sprint(i)}).Delegate(ctx, table, catalogkit.BothWays)
			if moorage.KindOf(err) == moorage.KindTooManyRequests {
				mu.Lock()
				defer mu.Unlock()
				if refused++; refused == 90 {
					cancel() // the others wait because of the rate
				}
			}
		})
	}
	group.Wait()
	cancel()
	if refused < 90 || len(askedOf(v)) > 110 {
		t.Errorf("%d of 200 were refused, the storage was asked %d times", refused, len(askedOf(v)))
	}
}

// TestNoCredential requests credentials from storages that issue none.
func TestNoCredential(t *testing.T) {
	t.Parallel()
	f, v, table := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	v.Fail = fmt.Errorf("%w: no", storage.ErrUnscopable)
	if given := f.Given("a", vending.VendedCredentials); given.Delegation != "" || given.Reason == "" {
		t.Errorf("what no policy can spell: %+v", given)
	}
	if given := f.Given("a", catalogkit.BothWays...); given.Delegation != vending.RemoteSigning {
		t.Errorf("what no policy can spell, with signing: %+v", given)
	}
	if _, err := f.Catalog.LoadCredentials(f.Ctx, catalogkit.LakeIdent(), ""); moorage.KindOf(err) != moorage.KindBadRequest {
		t.Errorf("LoadCredentials = %v, want KindBadRequest", err)
	}
	for _, fail := range []error{storage.ErrUnavailable, errors.New("denied")} {
		v.Fail = fail
		if _, err := f.Catalog.Delegate(f.Ctx, table, catalogkit.BothWays); moorage.KindOf(err) != moorage.KindUnavailable {
			t.Errorf("%v: %v, want KindUnavailable", fail, err)
		}
	}
	v.Fail = nil
	if given := f.Given("a", vending.VendedCredentials); given.Delegation != vending.VendedCredentials {
		t.Errorf("a failure was kept: %+v", given)
	}
}

func TestLoadCredentials(t *testing.T) {
	t.Parallel()
	f, v, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	given, err := f.Catalog.LoadCredentials(f.Ctx, catalogkit.LakeIdent(), "")
	if err != nil || given.Delegation != vending.VendedCredentials || !strings.HasSuffix(given.Prefix, "/") {
		t.Errorf("LoadCredentials = %+v, %v", given, err)
	}
	missing := catalogkit.LakeIdent()
	missing.Name = "missing"
	if _, err := f.Catalog.LoadCredentials(f.Ctx, missing, ""); moorage.KindOf(err) != moorage.KindNoSuchTable {
		t.Errorf("of a missing table: %v", err)
	}
	f.Create("plain")
	if _, err := f.Catalog.LoadCredentials(f.Ctx, ident("plain"), ""); moorage.KindOf(err) != moorage.KindBadRequest {
		t.Errorf("in a warehouse without credentials: %v", err)
	}
	if len(askedOf(v)) != 1 {
		t.Errorf("the storage was asked %d times", len(askedOf(v)))
	}
}

// TestStagedCredential: a client of a staged table gets credentials for a short time. The location
// is chosen by the server, or drawn by the client as Trino does.
func TestStagedCredential(t *testing.T) {
	t.Parallel()
	f, v, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	staged := catalogkit.LakeIdent()
	staged.Name = "staged"
	const drawn, left = "0123456789abcdef0123456789abcdef", "ffffffffffffffffffffffffffffffff"
	f.Write("s3://bucket/lake/ns/staged-" + left + "/data/x.parquet") // of a table that was dropped
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
		table, err := f.CreateTable(f.Ctx, staged,
			catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true, Location: tt.location})
		if err != nil {
			t.Fatal(err)
		}
		before := len(askedOf(v))
		given, err := f.Catalog.Delegate(f.Ctx, table, catalogkit.BothWays)
		location, normaliseErr := storage.Normalise(table.Document.Location())
		must(t, normaliseErr)
		renewed := "" // at a location drawn by the client, credentials cannot be renewed
		if tt.location == "" {
			renewed = location
		}
		if err != nil || given.Delegation != tt.want || given.Staged != renewed || given.Refresh != (renewed != "") {
			t.Errorf("%q: %+v, %v, want %q", tt.location, given, err, tt.want)
		}
		for _, scope := range askedOf(v)[before:] {
			if scope.Duration != 15*time.Minute || !slices.Equal(scope.Locations, []string{location}) {
				t.Errorf("%q: asked for %+v", tt.location, scope)
			}
		}
		if tt.want == "" && len(askedOf(v)) != before {
			t.Errorf("%q: the storage was asked", tt.location)
		}
	}
}

func TestSign(t *testing.T) {
	t.Parallel()
	f, v, table := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	request := vending.SignRequest{Method: "GET", URI: "http://x", Locations: []string{"s3://bucket/lake/ns/others"}}
	signature, err := f.Catalog.Sign(f.Ctx, catalogkit.LakeIdent(), "", request)
	if err != nil || len(signature.Headers) != 1 {
		t.Fatalf("Sign = %+v, %v", signature, err)
	}
	if got := v.Signed[0]; !slices.Equal(got.Locations, []string{table.Document.Location()}) {
		t.Errorf("signed for %q", got.Locations)
	}
	f.Create("plain")
	for _, tt := range []struct {
		fail error
		on   moorage.Identifier
		want moorage.Kind
	}{
		{storage.ErrNotSigned, catalogkit.LakeIdent(), moorage.KindForbidden},
		{storage.ErrNeedsWrite, catalogkit.LakeIdent(), moorage.KindForbidden},
		{storage.ErrMalformedRequest, catalogkit.LakeIdent(), moorage.KindBadRequest},
		{errors.New("no key"), catalogkit.LakeIdent(), moorage.KindUnavailable},
		{nil, ident("plain"), moorage.KindBadRequest},
		{nil, ident("missing"), moorage.KindNoSuchTable},
	} {
		v.Fail = tt.fail
		if _, err := f.Catalog.Sign(f.Ctx, tt.on, "", request); moorage.KindOf(err) != tt.want {
			t.Errorf("%v on %s: %v, want %s", tt.fail, tt.on, err, tt.want)
		}
	}
}

// TestWarehouseIsProbed creates warehouses over storages that do not enforce their delegations.
func TestWarehouseIsProbed(t *testing.T) {
	t.Parallel()
	f, v, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	for _, tt := range []struct {
		name   string
		probes error
		offers []vending.Delegation
		want   moorage.Kind
	}{
		{"lax", storage.ErrUnenforced, catalogkit.BothWays[:1], moorage.KindBadRequest},
		{"lax-signer", storage.ErrUnenforced, catalogkit.BothWays[1:], moorage.KindBadRequest},
		{"away", storage.ErrUnavailable, catalogkit.BothWays, moorage.KindUnavailable},
		{"unknown", nil, []vending.Delegation{"static"}, moorage.KindBadRequest},
		{"twice", nil, []vending.Delegation{catalogkit.BothWays[0], catalogkit.BothWays[0]}, moorage.KindBadRequest},
	} {
		v.Probes = tt.probes
		spec := warehouses.Spec{Name: tt.name, Location: "s3://bucket/" + tt.name, Delegation: tt.offers}
		if _, err := f.Warehouses().Create(f.Ctx, spec); moorage.KindOf(err) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		if _, err := f.LoadWarehouse(f.Ctx, tt.name); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
			t.Errorf("%s was made: %v", tt.name, err)
		}
		spec.Delegation = nil
		if _, err := f.Warehouses().Create(f.Ctx, spec); err != nil {
			t.Errorf("%s without delegations: %v", tt.name, err)
		}
	}
}

// TestMirrorIsReadOnly: no caller gets write access to the files of a mirror until it has ended.
func TestMirrorIsReadOnly(t *testing.T) {
	t.Parallel()
	f, v, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	mayWrite := func(want bool) {
		t.Helper()
		f.Given("a", catalogkit.BothWays...)
		_, err := f.Catalog.LoadCredentials(f.Ctx, catalogkit.LakeIdent(), "")
		must(t, err)
		scopes := askedOf(v)
		if last := scopes[len(scopes)-1]; last.Write != want {
			t.Errorf("the storage was asked for %+v", last)
		}
		_, err = f.Catalog.Sign(f.Ctx, catalogkit.LakeIdent(), "", vending.SignRequest{Method: "PUT"})
		must(t, err)
		if last := v.Signed[len(v.Signed)-1]; last.Write != want {
			t.Errorf("a request was signed with %+v", last)
		}
	}
	mayWrite(true)
	left, err := f.UnregisterTable(f.Ctx, catalogkit.LakeIdent())
	must(t, err)
	mirrors := f.Mirrors()
	must(t, mirrors.Put(f.Ctx, access.Table, catalogkit.LakeIdent(), "https://old.example.com", left.MetadataLocation))
	mayWrite(false)
	must(t, mirrors.End(f.Ctx, access.Table, catalogkit.LakeIdent(), left.MetadataLocation))
	f.Clock.Advance(2 * time.Hour) // the credentials for reading have expired
	mayWrite(true)
}

// TestDelegationsByPrivilege: a caller with write access gets credentials for writing, one with
// read access gets credentials for reading, and one that only sees the table gets none.
func TestDelegationsByPrivilege(t *testing.T) {
	t.Parallel()
	v := new(catalogkit.Venders)
	f := catalogkit.New(t, func(config *catalog.Config) {
		catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store { return catalogkit.VenderFiles{Store: inner, Venders: v} })
		config.Guard = gate.New(gate.Config{Store: config.Store, Now: config.Now})
	})
	v.Clock = f.Clock
	if _, err := f.Warehouses().Create(f.Ctx,
		warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: catalogkit.BothWays}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}); err != nil {
		t.Fatal(err)
	}
	f.SwitchAccessOn("lake", map[string]string{"corp:w": "write", "corp:r": "read", "corp:d": "describe"})

	for _, tt := range []struct {
		caller       string
		gets, writes bool
	}{{"corp:w", true, true}, {"corp:r", true, false}, {"corp:d", false, false}} {
		before := len(askedOf(v))
		given := f.Given(tt.caller, catalogkit.BothWays...)
		if (given.Delegation == vending.VendedCredentials) != tt.gets || tt.gets == (given.Reason != "") {
			t.Errorf("%s is given %+v", tt.caller, given)
		}
		if asked := askedOf(v)[before:]; (len(asked) == 1) != tt.gets || tt.gets && asked[0].Write != tt.writes {
			t.Errorf("for %s the storage was asked for %+v", tt.caller, asked)
		}
		c := f.As(moorage.Caller{Name: tt.caller})
		if _, err := c.LoadCredentials(f.Ctx, catalogkit.LakeIdent(), ""); (err == nil) != tt.gets ||
			!tt.gets && moorage.KindOf(err) != moorage.KindForbidden {
			t.Errorf("LoadCredentials of %s: %v", tt.caller, err)
		}
		signedBefore := len(v.Signed)
		_, err := c.Sign(f.Ctx, catalogkit.LakeIdent(), "", vending.SignRequest{Method: "GET"})
		if tt.gets && (err != nil || v.Signed[signedBefore].Write != tt.writes) ||
			!tt.gets && (moorage.KindOf(err) != moorage.KindForbidden || len(v.Signed) != signedBefore) {
			t.Errorf("Sign of %s: %v", tt.caller, err)
		}
	}
	stranger := f.As(moorage.Caller{Name: "corp:stranger"})
	if _, err := stranger.LoadCredentials(f.Ctx, catalogkit.LakeIdent(), ""); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		t.Errorf("LoadCredentials of a stranger: %v", err)
	}
	if _, err := stranger.Sign(f.Ctx, catalogkit.LakeIdent(), "", vending.SignRequest{}); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		t.Errorf("Sign of a stranger: %v", err)
	}
}
