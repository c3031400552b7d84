package policy_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"moorage/maintenance/policy"
)

var (
	server    = policy.Source{Level: policy.LevelServer, Name: "server"}
	warehouse = policy.Source{Level: policy.LevelWarehouse, Name: "main"}
	outer     = policy.Source{Level: policy.LevelNamespace, Name: "main.shop"}
	inner     = policy.Source{Level: policy.LevelNamespace, Name: "main.shop.eu"}
	table     = policy.Source{Level: policy.LevelTable, Name: "main.shop.eu.t"}
	byDefault = policy.Source{Level: policy.LevelDefault}
	since     = time.Unix(1_800_000_000, 0)
)

// policyOf returns a policy of one level for snapshots.
func policyOf(source policy.Source, status policy.Status, settings policy.Settings) policy.Policy {
	job := policy.Job{Status: status, Settings: settings, Since: since}
	return policy.Policy{Source: source, Jobs: map[policy.Type]policy.Job{policy.SnapshotManagement: job}}
}

// Each value comes from the first level that sets it, whatever the other levels set.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	const age = policy.MaxSnapshotAgeHours
	all := []policy.Policy{
		policyOf(table, "", policy.Settings{age: "1"}), policyOf(inner, "", policy.Settings{age: "2"}),
		policyOf(outer, "", policy.Settings{age: "3"}), policyOf(warehouse, "", policy.Settings{age: "4"}),
		policyOf(server, policy.Enabled, policy.Settings{age: "5"}),
	}
	const property = "history.expire.max-snapshot-age-ms"
	said, hour := map[string]string{property: "600"}, int64(3_600_000)
	tests := []struct {
		name       string
		chain      []policy.Policy
		properties map[string]string
		want       policy.Value
	}{
		{"nothing", nil, nil, policy.Value{Number: 120 * hour, From: byDefault}},
		{"server", all[4:], nil, policy.Value{Number: 5 * hour, From: server}},
		{"warehouse", all[3:], nil, policy.Value{Number: 4 * hour, From: warehouse}},
		{"outer namespace", all[2:], nil, policy.Value{Number: 3 * hour, From: outer}},
		{"inner namespace", all[1:], nil, policy.Value{Number: 2 * hour, From: inner}},
		{"table", all, nil, policy.Value{Number: hour, From: table}},
		{"property", all, said, policy.Value{Number: 600, From: policy.Source{Level: policy.LevelProperty, Name: property}}},
		{"a level that says nothing of it", []policy.Policy{policyOf(table, policy.Enabled, nil), all[4]}, nil, policy.Value{Number: 5 * hour, From: server}},
	}
	for _, tt := range tests {
		if got := policy.Effective(tt.chain, tt.properties)[policy.SnapshotManagement].Values[age]; got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	on := []policy.Policy{policyOf(warehouse, policy.Enabled, nil), policyOf(server, policy.Disabled, nil)}
	const no = "moorage.maintenance.snapshots.enabled"
	tests := []struct {
		name       string
		chain      []policy.Policy
		properties map[string]string
		enabled    bool
		held       string
		from       policy.Level
	}{
		{"nobody asks", nil, nil, false, "", policy.LevelDefault},
		{"a property cannot ask", nil, map[string]string{no: "true"}, false, "", policy.LevelDefault},
		{"nearest wins", on, nil, true, "", policy.LevelWarehouse},
		{"nearest says no", []policy.Policy{policyOf(table, policy.Disabled, nil), on[0]}, nil, false, "", policy.LevelTable},
		{"the table says no", on, map[string]string{no: "false"}, false, "", policy.LevelProperty},
		{"the table says something else", on, map[string]string{no: "maybe"}, false, "", policy.LevelProperty},
		{"the table says yes", on, map[string]string{no: "true"}, true, "", policy.LevelWarehouse},
		{"no collection", on, map[string]string{"gc.enabled": "FALSE"}, true, policy.HeldCollection, policy.LevelWarehouse},
		{"no collection, otherwise", on, map[string]string{"gc.enabled": "no"}, true, policy.HeldCollection, policy.LevelWarehouse},
		{"collection", on, map[string]string{"gc.enabled": "TRUE"}, true, "", policy.LevelWarehouse},
		{"hold, in capitals", on, map[string]string{"moorage.maintenance.hold": "TRUE"}, true, policy.HeldByTable, policy.LevelWarehouse},
		{"hold", on, map[string]string{"moorage.maintenance.hold": "true"}, true, policy.HeldByTable, policy.LevelWarehouse},
		{"encrypted", on, map[string]string{"encryption.key-id": "k"}, true, policy.HeldEncrypted, policy.LevelWarehouse},
		{"bad number", on, map[string]string{"history.expire.max-snapshot-age-ms": "5 days"}, true, "bad property history.expire.max-snapshot-age-ms", policy.LevelWarehouse},
		{"too small a number", on, map[string]string{"history.expire.min-snapshots-to-keep": "0"}, true, "bad property history.expire.min-snapshots-to-keep", policy.LevelWarehouse},
	}
	for _, tt := range tests {
		got := policy.Effective(tt.chain, tt.properties)[policy.SnapshotManagement]
		if got.Enabled != tt.enabled || got.Held != tt.held || got.From.Level != tt.from {
			t.Errorf("%s: enabled %t, held %q, from %s; want %t, %q, %s", tt.name, got.Enabled, got.Held, got.From.Level, tt.enabled, tt.held, tt.from)
		}
		if active := tt.enabled && tt.held == ""; got.IsActive() != active {
			t.Errorf("%s: active %t, want %t", tt.name, got.IsActive(), active)
		}
	}
	// gc.enabled affects only jobs that delete.
	compaction := policy.Policy{Source: server, Jobs: map[policy.Type]policy.Job{policy.Compaction: {Status: policy.Enabled}}}
	if rule := policy.Effective([]policy.Policy{compaction}, map[string]string{"gc.enabled": "false"})[policy.Compaction]; !rule.IsActive() {
		t.Errorf("compaction is held by gc.enabled: %+v", rule)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		of       policy.Type
		settings policy.Settings
		unsafe   bool
		wrong    string // a part of the refusal; empty if the settings are allowed
	}{
		{policy.SnapshotManagement, nil, false, ""},
		{policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1", policy.Files: "keep"}, false, ""},
		{policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "0"}, false, "At least 1 is safe"},
		{policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "0"}, true, ""},
		{policy.SnapshotManagement, policy.Settings{policy.DeleteDelayHours: "0"}, false, "unsafe"},
		{policy.SnapshotManagement, policy.Settings{policy.MinSnapshotsToKeep: "0"}, true, "from 1"},
		{policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "-1"}, true, "whole number"},
		{policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "1.5"}, true, "whole number"},
		{policy.SnapshotManagement, policy.Settings{policy.MaxSnapshotAgeHours: "99999999999999999999"}, true, "whole number"},
		{policy.SnapshotManagement, policy.Settings{policy.Files: "maybe"}, true, "delete, keep"},
		{policy.SnapshotManagement, policy.Settings{policy.UnreferencedDays: "3"}, true, "no setting"},
		{policy.UnreferencedFileRemoval, policy.Settings{policy.UnreferencedDays: "0"}, false, "unsafe"},
		{policy.UnreferencedFileRemoval, policy.Settings{policy.IncludeOlder: "true"}, false, ""},
		{policy.Compaction, policy.Settings{policy.Strategy: "sort"}, false, "binpack"},
		{"icebergManifestRewrite", nil, false, "there is no type"},
	}
	for _, tt := range tests {
		err := tt.of.Check(tt.settings, tt.unsafe)
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s %v, unsafe %t: %v, want %q", tt.of, tt.settings, tt.unsafe, err, tt.wrong)
		}
	}
}

// The hash depends on the requirements of a rule, and on nothing else.
func TestHash(t *testing.T) {
	t.Parallel()
	of := func(chain ...policy.Policy) string {
		return policy.Effective(chain, nil)[policy.SnapshotManagement].Hash()
	}
	base := of(policyOf(warehouse, policy.Enabled, policy.Settings{policy.MaxSnapshotAgeHours: "7"}))
	if same := of(policyOf(server, policy.Enabled, policy.Settings{policy.MaxSnapshotAgeHours: "7", policy.MinSnapshotsToKeep: "1"})); same != base {
		t.Errorf("the same from another level, with a default said: %s, want %s", same, base)
	}
	others := map[string]string{
		"another age":    of(policyOf(server, policy.Enabled, policy.Settings{policy.MaxSnapshotAgeHours: "8"})),
		"disabled":       of(policyOf(server, policy.Disabled, policy.Settings{policy.MaxSnapshotAgeHours: "7"})),
		"one more value": of(policyOf(server, policy.Enabled, policy.Settings{policy.MaxSnapshotAgeHours: "7", policy.MaxRefAgeHours: "7"})),
		"files are kept": of(policyOf(server, policy.Enabled, policy.Settings{policy.MaxSnapshotAgeHours: "7", policy.Files: policy.FilesKeep})),
	}
	for name, hash := range others {
		if hash == base {
			t.Errorf("%s has the same hash", name)
		}
	}
	one := policy.HashOf([]policy.Policy{policyOf(server, policy.Enabled, policy.Settings{"ab": "c"})})
	if two := policy.HashOf([]policy.Policy{policyOf(server, policy.Enabled, policy.Settings{"a": "bc"})}); one == two {
		t.Error("a delimiter can be forged")
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	now := since
	const hour = time.Hour
	rules := policy.Effective([]policy.Policy{{Source: server, Jobs: map[policy.Type]policy.Job{
		policy.SnapshotManagement:      {Status: policy.Enabled, Settings: policy.Settings{policy.MinSnapshotsToKeep: "2"}},
		policy.UnreferencedFileRemoval: {Status: policy.Enabled},
		policy.Compaction:              {Status: policy.Enabled},
	}}}, nil)
	snapshots, orphans, compaction := rules[policy.SnapshotManagement], rules[policy.UnreferencedFileRemoval], rules[policy.Compaction]
	off := policy.Effective(nil, nil)[policy.SnapshotManagement]
	facts := func(n int64, first time.Time) policy.Facts {
		return policy.Facts{Known: true, Snapshots: n, First: first, Files: 10}
	}
	ran := func(rule policy.Rule, at time.Time, n int64) policy.Base {
		return policy.Base{Rule: rule.Hash(), Ran: at, Snapshots: n, Files: 10}
	}
	never := time.Time{}
	tests := []struct {
		name  string
		facts policy.Facts
		base  policy.Base
		rule  policy.Rule
		want  time.Time
	}{
		{"nobody asks", facts(100, now), policy.Base{}, off, never},
		{"nothing known", policy.Facts{}, policy.Base{}, snapshots, now.Add(time.Minute)},
		{"another rule", facts(1, now), policy.Base{Rule: "x"}, snapshots, now.Add(time.Minute)},
		{"the table says something else", policy.Facts{Known: true, Rules: "y", Files: 10}, ran(snapshots, now, 1), snapshots, now.Add(time.Minute)},
		{"as many as are kept", facts(2, now), policy.Base{}, snapshots, never},
		{"empty table", facts(0, never), policy.Base{}, snapshots, never},
		{"few that may go wait", facts(3, now), policy.Base{}, snapshots, now.Add(144 * hour)},
		{"many go at their age", facts(22, now), policy.Base{}, snapshots, now.Add(120 * hour)},
		{"those that a run left count no more", facts(5, now.Add(-9999*hour)), ran(snapshots, now, 5), snapshots, never},
		{"those that came since do", facts(25, now.Add(-9999*hour)), ran(snapshots, now, 5), snapshots, now.Add(120 * hour)},
		{"first pass", facts(1, now), policy.Base{}, orphans, now.Add(hour)},
		{"next pass", facts(1, now), ran(orphans, now.Add(-hour), 0), orphans, now.Add(167 * hour)},
		{"a pass that is late", facts(1, now), ran(orphans, now.Add(-999*hour), 0), orphans, now.Add(-831 * hour)},
		{"few new files", policy.Facts{Known: true, Files: 14}, ran(compaction, now, 0), compaction, never},
		{"new files rest", policy.Facts{Known: true, Files: 15}, ran(compaction, now, 0), compaction, now.Add(hour)},
		{"files nobody counts", policy.Facts{Known: true, Files: -1}, ran(compaction, now, 0), compaction, never},
	}
	for _, tt := range tests {
		if got := policy.Due(tt.facts, tt.base, tt.rule, now); !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// FuzzCheck: an allowed setting has an effect within its bounds, and a refused one has no effect.
func FuzzCheck(f *testing.F) {
	f.Add("icebergSnapshotManagement", "maxSnapshotAgeHours", "120", false)
	f.Add("icebergUnreferencedFileRemoval", "unreferencedDays", "0", true)
	f.Add("icebergCompaction", "strategy", "binpack", false)
	f.Fuzz(func(t *testing.T, of, name, text string, unsafe bool) {
		kind, settings := policy.Type(of), policy.Settings{name: text}
		err := kind.Check(settings, unsafe)
		with := policy.Effective([]policy.Policy{{Source: server, Jobs: map[policy.Type]policy.Job{kind: {Settings: settings}}}}, nil)
		without := policy.Effective(nil, nil)
		if kind.Check(settings, true) != nil {
			for of, rule := range with {
				if !maps.Equal(rule.Values, without[of].Values) {
					t.Errorf("%s %s=%q is refused (%v) and gives %+v", kind, name, text, err, rule.Values)
				}
			}
			return
		}
		value := with[kind].Values[name]
		if value.From != server {
			t.Errorf("%s %s=%q gives %+v", kind, name, text, value)
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && value.Text == "" && (value.Number < 0 || n > 0 && value.Number < n) {
			t.Errorf("%s %s=%q gives %+v", kind, name, text, value)
		}
		if with[kind].Duration(name) < 0 {
			t.Errorf("%s %s=%q lasts %s", kind, name, text, with[kind].Duration(name))
		}
	})
}

// FuzzProperties: a table can forbid or hold its maintenance. It can never start maintenance that
// no policy requires. A number that cannot be parsed holds the maintenance.
func FuzzProperties(f *testing.F) {
	f.Add("history.expire.max-snapshot-age-ms", "5 days")
	f.Add("moorage.maintenance.snapshots.enabled", "true")
	f.Add("gc.enabled", "false")
	f.Fuzz(func(t *testing.T, name, text string) {
		properties := map[string]string{name: text}
		for of, rule := range policy.Effective(nil, properties) {
			if rule.IsActive() {
				t.Errorf("%s=%q makes %s active", name, text, of)
			}
		}
		on := policy.Effective([]policy.Policy{policyOf(server, policy.Enabled, nil)}, properties)[policy.SnapshotManagement]
		if on.IsActive() && on.Count(policy.MinSnapshotsToKeep) < 1 {
			t.Errorf("%s=%q keeps %d snapshots", name, text, on.Count(policy.MinSnapshotsToKeep))
		}
	})
}

// A property of a table cannot go below the floor for orphans. A policy that was accepted as unsafe
// can.
func TestPropertiesBelowTheFloor(t *testing.T) {
	t.Parallel()
	const day = int64(24 * 3_600_000)
	properties := map[string]string{
		"moorage.maintenance.orphans.unreferenced-ms": "0", "moorage.maintenance.orphans.noncurrent-ms": "1000",
		"history.expire.max-snapshot-age-ms": "7",
	}
	says := func(unsafe bool) policy.Policy {
		job := policy.Job{Status: policy.Enabled, Unsafe: unsafe}
		return policy.Policy{Source: warehouse, Jobs: map[policy.Type]policy.Job{
			policy.UnreferencedFileRemoval: job, policy.SnapshotManagement: job,
		}}
	}
	for _, tt := range []struct {
		name         string
		chain        []policy.Policy
		unreferenced int64
		quarantine   int64
	}{
		{"safe", []policy.Policy{says(false)}, day, day},
		{"nothing said", nil, day, day},
		{"unsafe", []policy.Policy{says(true)}, 0, 1000},
		{"unsafe above", []policy.Policy{says(false), says(true)}, 0, 1000},
	} {
		rules := policy.Effective(tt.chain, properties)
		rule := rules[policy.UnreferencedFileRemoval]
		for name, want := range map[string]int64{policy.UnreferencedDays: tt.unreferenced, policy.NonCurrentDays: tt.quarantine} {
			got := rule.Values[name]
			if got.Number != want || got.Raised != (want == day) || got.From.Level != policy.LevelProperty {
				t.Errorf("%s: %s is %+v, want %d", tt.name, name, got, want)
			}
		}
		if rule.Unsafe != (tt.unreferenced == 0) {
			t.Errorf("%s: unsafe is %t", tt.name, rule.Unsafe)
		}
		if got := rules[policy.SnapshotManagement].Values[policy.MaxSnapshotAgeHours].Number; got != 7 {
			t.Errorf("%s: Iceberg's own property is %d", tt.name, got)
		}
	}
}
