package policy

import (
	"strconv"
	"strings"
	"time"
)

// Policy is what one scope says of all types.
type Policy struct {
	Source Source
	Jobs   map[Type]Job
}

// Job is what a policy says of one type.
type Job struct {
	Status   Status // empty: nothing
	Settings Settings
	// Since is when the status became what it is.
	Since time.Time
	// Unsafe says that somebody let settings below the floor through.
	Unsafe bool
}

// Source says where a value comes from: the level, and which one of it.
type Source struct {
	Level Level
	Name  string // of the scope, the property or the ref
}

// Level is one of the places that say something.
type Level string

// The levels, the strongest first.
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
	Number int64 // milliseconds, bytes or a count; zero for one with choices
	Text   string
	From   Source
	// Raised says that a property asked for less than is safe, and Number is what is safe.
	Raised bool
}

// Rule is what a table is to have of one type.
type Rule struct {
	Type    Type
	Enabled bool
	From    Source // who enabled or disabled it
	// Since is when it was enabled.
	Since time.Time
	// Unsafe says that one of the policies lets values below the floor through.
	Unsafe bool
	// Held says why nothing may happen although it is enabled; empty: nothing holds it.
	Held   string
	Values map[string]Value // of those settings that are set
}

// Rules are what a table is to have.
type Rules map[Type]Rule

// Reasons why a rule is held. A property that cannot be read is a reason of its own.
const (
	HeldCollection = "gc-disabled" // gc.enabled is not true
	HeldByTable    = "held"        // moorage.maintenance.hold is true
	HeldEncrypted  = "encrypted"   // manifests cannot be read here
	heldProperty   = "bad property "
)

// The properties by which a table says more than settings.
const (
	propertyCollects = "gc.enabled"
	propertyHold     = "moorage.maintenance.hold"
	propertyKey      = "encryption.key-id"
	propertyPrefix   = "moorage.maintenance."
	propertyEnabled  = ".enabled"
)

// Effective returns what a table is to have. chain are the policies above and of the table, the
// nearest first. properties are those of the table.
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
	// A table can say no. That it is maintained, somebody above it decides.
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
	if reason := held(t, properties); reason != "" {
		rule.Held = reason
	}
	return rule
}

// held returns why a table forbids jobs of a type.
func held(t Type, properties map[string]string) string {
	collects, said := properties[propertyCollects]
	switch {
	case strings.EqualFold(strings.TrimSpace(properties[propertyHold]), "true"):
		return HeldByTable
	case properties[propertyKey] != "":
		return HeldEncrypted
	case types[t].deletes && said && !strings.EqualFold(collects, "true"): // as Document.Collects has it
		return HeldCollection
	}
	return ""
}

// valueOf returns the effective value of a setting. ok is false if it is not set; bad says that the
// table's property cannot be read.
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
		if !said || s.check(text, true) != nil { // policies are checked when they are written
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

// Count returns the value of a setting that is a count or a size; zero if it is not set.
func (r Rule) Count(name string) int64 { return r.Values[name].Number }

// Duration returns the value of a setting that is a time; zero if it is not set.
func (r Rule) Duration(name string) time.Duration {
	return time.Duration(min(r.Values[name].Number, maxMillis)) * time.Millisecond
}

// Text returns the value of a setting with choices; empty if it is not set.
func (r Rule) Text(name string) string { return r.Values[name].Text }

// IsActive reports whether jobs of the rule are to be done.
func (r Rule) IsActive() bool { return r.Enabled && r.Held == "" }

const maxMillis = int64(1<<63-1) / int64(time.Millisecond)
