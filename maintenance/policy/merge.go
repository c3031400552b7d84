package policy

import (
	"strconv"
	"strings"
	"time"
)

// Policy is one scope's policy for all types.
type Policy struct {
	Source Source
	Jobs   map[Type]Job
}

// Job is the part of a policy for one type.
type Job struct {
	Status   Status // empty: not set
	Settings Settings
	// Since is the time when the status last changed.
	Since time.Time
	// Unsafe is true if settings below their Floor were allowed (see Setting).
	Unsafe bool
}

// Source is where a value comes from: a level, and the name of a scope, property or ref at
// that level.
type Source struct {
	Level Level
	Name  string // the name of the scope, property or ref
}

// Level is a level at which a value can be set.
type Level string

// The levels. The first level that has a value decides.
const (
	LevelProperty  Level = "property"
	LevelTable     Level = "table"
	LevelNamespace Level = "namespace"
	LevelWarehouse Level = "warehouse"
	LevelServer    Level = "server"
	LevelDefault   Level = "default"
)

// Value is the effective value of a setting.
type Value struct {
	Number int64 // milliseconds, bytes or a count; zero for a setting with choices
	Text   string
	From   Source
	// Raised is true if a property requires less than the setting's Floor. Then Number is the
	// Floor.
	Raised bool
}

// Rule defines a table's maintenance of one type.
type Rule struct {
	Type    Type
	Enabled bool
	From    Source // the source that enabled or disabled the rule
	// Since is the time when the rule was enabled.
	Since time.Time
	// Unsafe is true if one of the policies allows settings below their Floor.
	Unsafe bool
	// Held explains why no job may run although the rule is enabled. It is empty if jobs may run.
	Held   string
	Values map[string]Value // only the settings that have a value
}

// Rules holds the rules of a table, by type.
type Rules map[Type]Rule

// Reasons why a rule is held. A property that cannot be parsed is another reason.
const (
	HeldCollection = "gc-disabled" // gc.enabled is not true
	HeldByTable    = "held"        // moorage.maintenance.hold is true
	HeldEncrypted  = "encrypted"   // manifests cannot be read here
	heldProperty   = "bad property "
)

// The properties of a table that control its maintenance as a whole.
const (
	propertyCollects = "gc.enabled"
	propertyHold     = "moorage.maintenance.hold"
	propertyKey      = "encryption.key-id"
	propertyPrefix   = "moorage.maintenance."
	propertyEnabled  = ".enabled"
)

// Effective returns the rules for a table. chain contains the policies of the table and of the
// scopes above it, nearest first. properties are the table's properties.
func Effective(chain []Policy, properties map[string]string) Rules {
	rules := make(Rules, len(types))
	for _, t := range Types() {
		rules[t] = effective(t, chain, properties)
	}
	return rules
}

func effective(t Type, chain []Policy, properties map[string]string) Rule {
	rule := Rule{Type: t, From: Source{Level: LevelDefault}, Values: make(map[string]Value)}
	for _, p := range chain {
		rule.Unsafe = rule.Unsafe || p.Jobs[t].Unsafe
	}
	for _, p := range chain {
		if job := p.Jobs[t]; job.Status != "" {
			rule.Enabled, rule.From, rule.Since = job.Status == Enabled, p.Source, job.Since
			break
		}
	}
	// A table can opt out but cannot opt in: only a policy enables maintenance.
	name := propertyPrefix + string(t.Kind()) + propertyEnabled
	if text, said := properties[name]; said && strings.TrimSpace(text) != "true" {
		rule.Enabled, rule.From, rule.Since = false, Source{LevelProperty, name}, time.Time{}
	}
	for _, s := range t.Settings() {
		value, ok, bad := valueOf(rule, s, chain, properties)
		if bad {
			rule.Held = heldProperty + s.Property
		}
		if ok {
			rule.Values[s.Name] = value
		}
	}
	if reason := forbidden(t, properties); reason != "" {
		rule.Held = reason
	}
	return rule
}

// forbidden explains why a table forbids jobs of a type. It returns "" if the table allows them.
func forbidden(t Type, properties map[string]string) string {
	collects, said := properties[propertyCollects]
	switch {
	case strings.EqualFold(strings.TrimSpace(properties[propertyHold]), "true"):
		return HeldByTable
	case properties[propertyKey] != "":
		return HeldEncrypted
	case types[t].deletes && said && !strings.EqualFold(collects, "true"): // the same rule as Document.Collects
		return HeldCollection
	}
	return ""
}

// valueOf returns the effective value of a setting. ok is false if the setting has no value. bad is
// true if the table's property cannot be parsed.
func valueOf(rule Rule, s Setting, chain []Policy, properties map[string]string) (value Value, ok, bad bool) {
	if text, said := properties[s.Property]; said && s.Property != "" {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err == nil && n >= s.Min*s.Unit {
			value = Value{Number: n, From: Source{LevelProperty, s.Property}}
			if floor := s.Floor * s.Unit; s.IsFloorOfTables && n < floor && !rule.Unsafe {
				value.Number, value.Raised = floor, true
			}
			return value, true, false
		}
		bad = true
	}
	for _, p := range chain {
		text, said := p.Jobs[rule.Type].Settings[s.Name]
		if !said || s.check(text, true) != nil { // the settings of policies are checked when they are written
			continue
		}
		if s.Choices != nil {
			return Value{Text: text, From: p.Source}, true, bad
		}
		n, _ := strconv.ParseInt(text, 10, 64)
		return Value{Number: n * s.Unit, From: p.Source}, true, bad
	}
	return Value{Number: s.Default * s.Unit, Text: s.Text, From: Source{Level: LevelDefault}}, s.HasDefault, bad
}

// Count returns the value of a setting that is a count or a size, or zero if it has no value.
func (r Rule) Count(name string) int64 { return r.Values[name].Number }

// Duration returns the value of a setting that is a time, or zero if it has no value.
func (r Rule) Duration(name string) time.Duration {
	return time.Duration(min(r.Values[name].Number, maxMillis)) * time.Millisecond
}

// Text returns the value of a setting with choices, or "" if it has no value.
func (r Rule) Text(name string) string { return r.Values[name].Text }

// IsActive reports whether jobs of the rule may run.
func (r Rule) IsActive() bool { return r.Enabled && r.Held == "" }

const maxMillis = int64(1<<63-1) / int64(time.Millisecond)
