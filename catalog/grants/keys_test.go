package grants_test

import (
	cryptorand "crypto/rand"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/grants"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit/catalogkit"
)

// A key that is requested with a token or a certificate expires after at most 90 days. A key that
// is requested with another key records that key, so that both can be withdrawn together.
func TestKeysOfTokens(t *testing.T) {
	t.Parallel()
	s := catalogkit.NewSecured(t, memoryregistry.New(cryptorand.Reader), true)
	now := s.Config.Now()
	century := now.Add(100 * 365 * 24 * time.Hour)
	for i, tt := range []struct {
		by     moorage.Caller
		ends   time.Time
		parent string
	}{
		{moorage.Caller{Name: catalogkit.AdminName, Source: moorage.SourceToken}, now.Add(grants.KeyLifeMax), ""},
		{moorage.Caller{Name: catalogkit.AdminName, Source: moorage.SourceIssuer}, now.Add(grants.KeyLifeMax), ""},
		{moorage.Caller{Name: catalogkit.AdminName, Source: moorage.SourceCertificate}, now.Add(grants.KeyLifeMax), ""},
		{moorage.System("cli"), century, ""},
	} {
		spec := grants.KeySpec{ID: string(rune('a' + i)), SHA256: [32]byte{byte(i + 1)}, Ends: century}
		made, err := s.As(tt.by).Grants().CreateKey(t.Context(), "key:etl", spec)
		if err != nil || made.Ends.Sub(tt.ends).Abs() > time.Minute || made.Parent != tt.parent {
			t.Errorf("by %s %s: %+v, %v", tt.by.Name, tt.by.Source, made, err)
		}
	}
	must1 := func(spec grants.KeySpec, by moorage.Caller, principal string) grants.APIKey {
		t.Helper()
		made, err := s.As(by).Grants().CreateKey(t.Context(), principal, spec)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	parent := must1(grants.KeySpec{ID: "parent", SHA256: [32]byte{20}, Ends: century}, moorage.System("cli"), catalogkit.AdminName)
	holder := moorage.Caller{Name: catalogkit.AdminName, Source: moorage.SourceKey, KeyID: parent.ID, KeyGeneration: 1}
	if made := must1(grants.KeySpec{ID: "child", SHA256: [32]byte{21}, Ends: century}, holder, "key:etl"); made.Parent != "parent" || made.Ends != century {
		t.Errorf("a key made with a key is %+v", made)
	}
	rotated, err := s.As(holder).Grants().RotateKey(t.Context(), "key:etl",
		grants.KeySpec{ID: "a", SHA256: [32]byte{22}, Ends: now.Add(time.Hour)}, 0)
	if err != nil || rotated.Parent != "parent" {
		t.Errorf("a key whose secret its holder knows is %+v, %v", rotated, err)
	}
	ends, err := s.Admin().KeyEnds(t.Context())
	if err != nil || len(ends) != 6 || ends[0].ID != "a" || ends[0].Principal != "key:etl" || ends[5].Ends.Before(ends[4].Ends) {
		t.Errorf("the keys end %+v, %v", ends, err)
	}
}

// Answers about other objects do not reveal hidden names: neither which principals exist, nor the
// name of the table with the uuid of a registered file.
func TestAnswersNameNothingHidden(t *testing.T) {
	t.Parallel()
	s := catalogkit.NewSecured(t, memoryregistry.New(cryptorand.Reader), true)
	s.Populate()
	ctx := t.Context()
	toNobody := grants.Change{Object: catalogkit.OnTable("t"), Grantee: "corp:nobody", Privileges: access.Read}
	if unknown, err := s.Access(catalogkit.AnnName).ChangeGrants(ctx, []grants.Change{toNobody}); err != nil || len(unknown) > 0 {
		t.Errorf("an owner hears of %q, %v", unknown, err)
	}
	if unknown, err := s.Admin().ChangeGrants(ctx, []grants.Change{toNobody}); err != nil || len(unknown) != 1 {
		t.Errorf("an administrator hears of %q, %v", unknown, err)
	}
	table, err := s.Named(catalogkit.AnnName).LoadTable(ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Create|access.Locate)
	_, err = s.Named(catalogkit.BobName).RegisterTable(ctx, ident("mine"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	if err == nil || strings.Contains(moorage.MessageOf(err), "ns.t") {
		t.Errorf("a register of its file: %v", err)
	}
}
