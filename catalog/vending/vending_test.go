package vending_test

import (
	"testing"
	"time"

	"moorage"
	"moorage/catalog/vending"
	"moorage/storage"
	"moorage/storage/memory"
)

// limited is a storage whose credentials have a fixed lifetime.
type limited struct {
	storage.Store
	life time.Duration
}

func (l limited) CredentialLife() time.Duration { return l.life }

// TestReachableUntil: a location stays reserved as long as engines may hold access to it.
func TestReachableUntil(t *testing.T) {
	t.Parallel()
	now, plain := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), memory.New()
	vended, signed := string(vending.VendedCredentials), string(vending.RemoteSigning)
	for name, row := range map[string]struct {
		offers []string
		store  storage.Store
		want   time.Duration
	}{
		"signatures":                      {[]string{signed}, plain, 15 * time.Minute},
		"credentials":                     {[]string{vended}, plain, 12 * time.Hour},
		"credentials with a limit":        {[]string{signed, vended}, limited{plain, time.Hour}, time.Hour},
		"credentials for a short time":    {[]string{vended, signed}, limited{plain, time.Minute}, 15 * time.Minute},
		"signatures of a limited storage": {[]string{signed}, limited{plain, time.Hour}, 15 * time.Minute},
	} {
		if got := vending.ReachableUntil(now, row.offers, row.store); !got.Equal(now.Add(row.want)) {
			t.Errorf("%s: until %s, want %s later", name, got, row.want)
		}
	}
	if got := vending.ReachableUntil(now, nil, plain); !got.IsZero() {
		t.Errorf("without an offer until %s", got)
	}
}

// TestCheckPaths: if engines get access only to the locations of a table, its properties must not
// put files elsewhere.
func TestCheckPaths(t *testing.T) {
	t.Parallel()
	const own = "s3://bucket/lake/t"
	offers := []string{string(vending.RemoteSigning)}
	for path, want := range map[string]moorage.Kind{
		own + "/data": 0, own: 0, own + "x": moorage.KindBadRequest, "s3://bucket/lake": moorage.KindBadRequest,
		"data": moorage.KindBadRequest,
	} {
		properties := map[string]string{"write.data.path": path, "owner": "ann"}
		if err := vending.CheckPaths(offers, properties, "s3://bucket/lake/former", own); moorage.KindOf(err) != want {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if err := vending.CheckPaths(nil, properties, own); err != nil {
			t.Errorf("%s without an offer: %v", path, err)
		}
	}
}

// TestCheckOffers: a warehouse can offer each known delegation at most once.
func TestCheckOffers(t *testing.T) {
	t.Parallel()
	one, two := vending.VendedCredentials, vending.RemoteSigning
	for _, row := range []struct {
		offers []vending.Delegation
		want   moorage.Kind
	}{
		{nil, 0}, {[]vending.Delegation{one, two}, 0}, {[]vending.Delegation{two, two}, moorage.KindBadRequest},
		{[]vending.Delegation{"trust"}, moorage.KindBadRequest},
	} {
		if err := vending.CheckOffers(row.offers); moorage.KindOf(err) != row.want {
			t.Errorf("%q: %v, want %v", row.offers, err, row.want)
		}
	}
	for _, offer := range vending.Delegations() {
		if err := offer.Probe(t.Context(), memory.New()); err == nil {
			t.Errorf("a storage without %s passes its probe", offer)
		}
	}
}

// TestCheckViews: the length of a path of views is bounded, and no view may occur on it twice.
func TestCheckViews(t *testing.T) {
	t.Parallel()
	var names []moorage.Identifier
	for i := range vending.ViewsMax {
		names = append(names, moorage.Identifier{
			Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: string(rune('a' + i)),
		})
	}
	for name, row := range map[string]struct {
		names []moorage.Identifier
		want  moorage.Kind
	}{
		"none": {nil, 0}, "as many as possible": {names, 0},
		"too many": {append(names[:len(names):len(names)], moorage.Identifier{Name: "z"}), moorage.KindBadRequest},
		"twice":    {[]moorage.Identifier{names[0], names[1], names[0]}, moorage.KindBadRequest},
	} {
		if err := vending.CheckViews(row.names); moorage.KindOf(err) != row.want {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
	}
}
