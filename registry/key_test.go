package registry_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
)

// TestKeysAreFormat1 pins the structure of the keys in stores of format 1.
func TestKeysAreFormat1(t *testing.T) {
	t.Parallel()
	const some, other = "a1000000000000000000000000000001", "b2000000000000000000000000000002"
	const sumOfAnn = "8b13e5c9cedbdfb2b9d5d82be867d8fa93334d8237a61f3dd09b817ae9542d0f"
	tests := []struct {
		key   registry.Key
		table registry.Table
		id    string
	}{
		{registry.WarehouseKey("w"), 1, "w"},
		{registry.NamespaceKey(someID, otherID, "a/b"), 2, some + "/" + other + "/a/b"},
		{registry.EntryKey(otherID, "t/u"), 3, other + "/t/u"},
		{registry.PointerKey(someID), 4, some},
		{registry.UUIDKey("0190F3A0-1234-7ABC-8DEF-0123456789AB"), 5, "0190f3a0-1234-7abc-8def-0123456789ab"},
		{registry.LocationKey("file:///Data"), 6, "file:///Data"},
		{registry.TombstoneKey("file:///Data"), 29, "file:///Data"},
		{registry.IdempotencyKey(registry.Hash{0: 0xe5, 31: 0x05}), 8, "e5" + strings.Repeat("00", 30) + "05"},
		{registry.ChangeKey(otherID), 9, other},
		{registry.TaskKey(someID), 10, some},
		{registry.FormatKey(), 11, "format"},
		{registry.AssignmentKey("purge/" + some), 25, "purge/" + some},
		{registry.PrincipalKey("corp:ann"), 12, "corp:ann"},
		{registry.RoleKey("analysts"), 13, "analysts"},
		{registry.GrantsKey(someID), 14, some},
		{registry.GrantsKey(registry.ID{}), 14, "server"},
		{registry.SecretKey(someID), 16, some},
		{registry.SecretStoreKey(), 16, "store"},
		{registry.EpochKey(), 17, "epoch"},
		{registry.RecentKey(), 17, "recent"},
		{registry.AccessStoreKey(), 17, "store"},
		{registry.PublicKeyKey("k1"), 17, "key/k1"},
		{registry.ConsoleKeyKey(), 17, "console"},
		{registry.MakerKey("corp:ann", someID), 17, "maker/" + sumOfAnn + "/" + some},
		{registry.ScheduleKey(someID), 19, some},
		{registry.DueKey(someID, "snapshots", time.Unix(0x6943a1f0, 0)), 20, "a/06943a1f0/" + some + "/snapshots"},
		{registry.DueBlockedKey(someID, "snapshots"), 20, "blocked/" + some + "/snapshots"},
		{registry.WindowKey(someID, time.Unix(0x6943a1f0, 999)), 20, "window/06943a1f0/" + some},
		{registry.JobKey(someID, "orphans"), 21, some + "/orphans"},
		{registry.RunKey(someID, time.UnixMilli(1), otherID), 22, some + "/fffffffffffffffe/" + other},
		{registry.LeaseKey(someID), 23, some},
		{registry.MaintenancePolicyKey(registry.ScopeServer), 24, "server"},
		{registry.MaintenancePolicyKey(registry.WarehouseScope(someID)), 24, "w/" + some},
		{registry.MaintenancePolicyKey(registry.NamespaceScope(someID)), 24, "n/" + some},
		{registry.MaintenancePolicyKey(registry.TableScope(someID)), 24, "t/" + some},
		{registry.MonitorKey(), 18, "monitor"},
		{registry.WalkKey(registry.TableScope(someID)), 18, "walk/t/" + some},
		{registry.PauseKey(), 18, "pause"},
		{registry.ClockKey(), 18, "clock"},
	}
	for _, tt := range tests {
		if tt.key.Table != tt.table || tt.key.ID != tt.id {
			t.Errorf("key is {%d %q}, want {%d %q}", tt.key.Table, tt.key.ID, tt.table, tt.id)
		}
	}
	if prefix := registry.NamespacePrefix(someID, otherID); prefix+"x" != registry.NamespaceKey(someID, otherID, "x").ID {
		t.Errorf("namespace prefix %q", prefix)
	}
	if prefix := registry.EntryPrefix(someID); prefix+"x" != registry.EntryKey(someID, "x").ID {
		t.Errorf("entry prefix %q", prefix)
	}
}

// TestNumbersAreFormat1 pins the numbers in stores of format 1.
func TestNumbersAreFormat1(t *testing.T) {
	t.Parallel()
	tables := map[registry.Table]string{
		1: "warehouse", 2: "namespace", 3: "entry", 4: "pointer", 5: "table-uuid", 6: "location",
		7: "transaction", 8: "idempotency", 9: "change", 10: "task", 11: "format",
		12: "principal", 13: "role", 14: "grants", 15: "access-policy", 16: "secret", 17: "access", 18: "cursor", 25: "assignment",
		19: "schedule", 20: "due", 21: "job", 22: "run", 23: "lease", 24: "maintenance-policy", 26: "dropped", 27: "label", 29: "tombstone",
	}
	if got := registry.Tables(); !slices.Equal(got, slices.Sorted(maps.Keys(tables))) {
		t.Errorf("tables %d, want those of %v", got, tables)
	}
	for number, name := range tables {
		if number.String() != name {
			t.Errorf("table %d is called %s, want %s", uint8(number), number, name)
		}
	}
	states := []string{
		"none", "live", "dropping", "dropped", "purging", "table", "view", "owner", "below", "void", "pending", "committed", "aborted", "blocked",
		"collecting", "waiting", "deleting", "assigned", "ended",
	}
	for number, name := range states {
		if got := registry.State(number).String(); got != name {
			t.Errorf("state %d is called %s, want %s", number, got, name)
		}
	}
	if got := registry.State(len(states)).String(); got != "state 19" {
		t.Errorf("a state that does not exist is called %s", got)
	}
	if got := registry.Table(0).String(); got != "table 0" {
		t.Errorf("a table that does not exist is called %s", got)
	}
}

// TestKindsAreFormat1 pins the words for kinds of failures in stores of format 1.
func TestKindsAreFormat1(t *testing.T) {
	t.Parallel()
	words := []string{
		"internal", "bad request", "illegal argument", "validation", "not authorized", "forbidden", "no such warehouse", "no such namespace",
		"no such table", "no such view", "not found", "unsupported", "already exists", "namespace not empty", "commit failed", "unprocessable",
		"too large", "too many requests", "unavailable", "commit state unknown", "precondition failed", "gone",
		"not shown",
	}
	for _, word := range words {
		var kind moorage.Kind
		if err := kind.UnmarshalText([]byte(word)); err != nil || kind.String() != word {
			t.Errorf("%q is read as %s, %v", word, kind, err)
		}
	}
	for _, kind := range moorage.Kinds() {
		if !slices.Contains(words, kind.String()) {
			t.Errorf("%q may be stored, so its words must be pinned here", kind)
		}
	}
	kind := moorage.KindForbidden
	if err := kind.UnmarshalText([]byte("Forbidden")); err == nil || kind != moorage.KindForbidden {
		t.Errorf("words of no kind are read as %s, %v", kind, err)
	}
}

// TestShardsAreFormat1 pins the shards in stores of format 1.
func TestShardsAreFormat1(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]uint8{"": 9, "a": 11, "orders": 5, "ä": 9} {
		if got := registry.Shard(name); got != want {
			t.Errorf("shard of %q is %d, want %d", name, got, want)
		}
	}
}

func TestKeyString(t *testing.T) {
	t.Parallel()
	for key, want := range map[registry.Key]string{
		registry.LocationKey("file:///a b"):         "location/file:///a b",
		registry.LocationKey("\x00\n\xff\"ä"):       `location/\x00\n\xff\"\u00e4`,
		{Table: 99, ID: "x"}:                        "table 99/x",
		registry.EntryKey(registry.ID{15: 1}, "té"): `entry/00000000000000000000000000000001/t\u00e9`,
	} {
		if got := key.String(); got != want {
			t.Errorf("key is shown as %s, want %s", got, want)
		}
	}
}

func TestCheckKeysListPage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", registry.KeyBytesMax)
	tests := []struct {
		name string
		err  error
		bad  bool
	}{
		{"no keys", registry.CheckKeys(nil), false},
		{"longest key", registry.CheckKeys([]registry.Key{registry.LocationKey(long)}), false},
		{"too long", registry.CheckKeys([]registry.Key{registry.FormatKey(), registry.LocationKey(long + "x")}), true},
		{"empty", registry.CheckKeys([]registry.Key{registry.LocationKey("")}), true},
		{"table 0", registry.CheckKeys([]registry.Key{{ID: "x"}}), true},
		{"table 28", registry.CheckKeys([]registry.Key{{Table: 28, ID: "x"}}), true},
		{"smallest page", registry.CheckPage(1), false},
		{"largest page", registry.CheckPage(registry.ListLimitMax), false},
		{"no page", registry.CheckPage(0), true},
		{"negative page", registry.CheckPage(-1), true},
		{"too large a page", registry.CheckPage(registry.ListLimitMax + 1), true},
		{"list", registry.CheckList(registry.TableEntry, 1), false},
		{"list without a limit", registry.CheckList(registry.TableEntry, 0), true},
		{"list of table 28", registry.CheckList(28, 1), true},
	}
	for _, tt := range tests {
		if errors.Is(tt.err, registry.ErrBadBatch) != tt.bad || (tt.err != nil) != tt.bad {
			t.Errorf("%s: %v, want ErrBadBatch: %t", tt.name, tt.err, tt.bad)
		}
	}
}

func TestIDText(t *testing.T) {
	t.Parallel()
	const text = "a1000000000000000000000000000001"
	if someID.String() != text || registry.ETag(someID).String() != text {
		t.Errorf("shown as %s and %s, want %s", someID, registry.ETag(someID), text)
	}
	if someID.IsZero() || !(registry.ID{}).IsZero() || someETag.IsZero() || !(registry.ETag{}).IsZero() {
		t.Error("IsZero is wrong")
	}
	var id registry.ID
	if err := id.UnmarshalText([]byte(text)); err != nil || id != someID {
		t.Errorf("read as %s, %v", id, err)
	}
	for _, bad := range []string{"", text[1:], text + "0", text + "00", "g" + text[1:]} {
		if err := id.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %s", bad, id)
		}
	}
}

func TestNewETagIsNeverZero(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte{7}, 16)
	etag, err := registry.NewETag(io.MultiReader(bytes.NewReader(make([]byte, 32)), bytes.NewReader(want)))
	if err != nil || etag != registry.ETag(want) {
		t.Errorf("drew %s, %v; want the first that is not zero", etag, err)
	}
	id, err := registry.NewID(bytes.NewReader(want))
	if err != nil || id != registry.ID(want) {
		t.Errorf("drew %s, %v", id, err)
	}
	if _, err := registry.NewID(bytes.NewReader(want[:15])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("too few bytes: %v", err)
	}
}
