package identity

import (
	"strings"
	"testing"
	"time"

	"moorage"
)

// stagedTable returns the table in the tests' tokens.
func stagedTable() moorage.Identifier {
	return moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a", "b"}, Name: "t"}
}

const stagedLocation = "s3://lake/w/a/b/t-0123abcd"

func newStages(records *fakeRecords, clock *clock) *Stages {
	return NewStages(StagesConfig{Keys: records, Now: clock.Now})
}

func stageToken(t *testing.T, s *Stages) string {
	t.Helper()
	text, err := s.Token(t.Context(), Stage{"corp:ann", stagedTable(), stagedLocation})
	if err != nil || strings.ContainsAny(text, "%&=+/ ") {
		t.Fatalf("Token = %q, %v", text, err)
	}
	return text
}

// TestStageTokens: a caller can use its token on any node of the store for a day.
func TestStageTokens(t *testing.T) {
	t.Parallel()
	clock, records := newClock(), newRecords()
	text := stageToken(t, newStages(records, clock))
	reads := func(s *Stages, text, caller string, table moorage.Identifier) error {
		location, err := s.Location(t.Context(), text, caller, table)
		if err == nil && location != stagedLocation {
			t.Errorf("the location is %q", location)
		}
		return err
	}
	for range 2 { // by another node: first with a lookup, then from its cache
		if err := reads(newStages(records, clock), text, "corp:ann", stagedTable()); err != nil {
			t.Error(err)
		}
	}
	elsewhere := stagedTable()
	elsewhere.Name = "u"
	other := newStages(newRecords(), clock)
	parts := strings.Split(text, ".")
	for name, err := range map[string]error{
		"another caller":         reads(newStages(records, clock), text, "corp:eve", stagedTable()),
		"another table":          reads(newStages(records, clock), text, "corp:ann", elsewhere),
		"another store's node":   reads(other, text, "corp:ann", stagedTable()),
		"another signature":      reads(newStages(records, clock), parts[0]+"."+parts[1]+"."+strings.Repeat("A", len(parts[2])), "corp:ann", stagedTable()),
		"another body":           reads(newStages(records, clock), parts[0]+"."+strings.ToLower(parts[1])+"."+parts[2], "corp:ann", stagedTable()),
		"no token":               reads(newStages(records, clock), "x", "corp:ann", stagedTable()),
		"nothing":                reads(newStages(records, clock), "", "corp:ann", stagedTable()),
		"a process without keys": reads(NewStages(StagesConfig{Now: clock.Now}), text, "corp:ann", stagedTable()),
	} {
		if moorage.KindOf(err) != moorage.KindForbidden {
			t.Errorf("%s: %v, want KindForbidden", name, err)
		}
	}
	clock.Advance(24 * time.Hour)
	if err := reads(newStages(records, clock), text, "corp:ann", stagedTable()); moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("after a day: %v", err)
	}
}

// TestStageTokenIsForNothingElse: such a token does not authenticate a caller, and an access token
// does not count as such a token.
func TestStageTokenIsForNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	stages := newStages(f.records, f.clock)
	text := stageToken(t, stages)
	if caller, err := f.ask("Bearer " + text); moorage.KindOf(err) != moorage.KindNotAuthorized {
		t.Errorf("it shows %+v, %v", caller, err)
	}
	access := f.tokenOf(f.key("key:etl"))
	if _, err := stages.Location(t.Context(), access, "key:etl", stagedTable()); moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("an access token: %v", err)
	}
}

// TestStagesWithoutKeys: a process that publishes no keys can read its own tokens.
func TestStagesWithoutKeys(t *testing.T) {
	t.Parallel()
	s := NewStages(StagesConfig{Now: newClock().Now})
	if location, err := s.Location(t.Context(), stageToken(t, s), "corp:ann", stagedTable()); err != nil || location != stagedLocation {
		t.Errorf("Location = %q, %v", location, err)
	}
}
