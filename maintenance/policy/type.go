package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Type is a type of job, as spelled in policies.
type Type string

// The types.
const (
	SnapshotManagement      Type = "icebergSnapshotManagement"
	UnreferencedFileRemoval Type = "icebergUnreferencedFileRemoval"
	Compaction              Type = "icebergCompaction"
)

// Kind is the name of a type of job in records, metrics and commands.
type Kind string

// The kinds, one for each type.
const (
	Snapshots Kind = "snapshots"
	Orphans   Kind = "orphans"
	Compact   Kind = "compaction"
)

// Status is the choice of a policy to enable or disable jobs of a type.
type Status string

// The values of a Status. If a policy has no status, the policies above it decide.
const (
	Enabled  Status = "enabled"
	Disabled Status = "disabled"
)

// Units of settings, expressed in the units of values, which are milliseconds and bytes.
const (
	once    = 1
	minutes = 60 * 1000
	hours   = 60 * minutes
	days    = 24 * hours
	mebi    = 1 << 20
)

// The names of settings.
const (
	MaxSnapshotAgeHours  = "maxSnapshotAgeHours"
	MinSnapshotsToKeep   = "minSnapshotsToKeep"
	MaxRefAgeHours       = "maxRefAgeHours"
	MinSnapshotsToExpire = "minSnapshotsToExpire"
	DeleteDelayHours     = "deleteDelayHours"
	Files                = "files"
	UnreferencedDays     = "unreferencedDays"
	NonCurrentDays       = "nonCurrentDays"
	IntervalDays         = "intervalDays"
	IncludeOlder         = "includeOlder"
	EqualAuthorities     = "equalAuthorities"
	TargetFileSizeMB     = "targetFileSizeMB"
	Strategy             = "strategy"
	MinInputFiles        = "minInputFiles"
	SettleMinutes        = "settleMinutes"
)

// The choices of the setting Files.
const (
	FilesDelete = "delete"
	FilesKeep   = "keep"
)

// Setting is one setting of a type of job.
type Setting struct {
	Name string
	// Choices lists the allowed texts. It is nil if the setting is a number.
	Choices []string
	// Unit is the size of the setting's unit in the unit of values: milliseconds, bytes, or 1.
	Unit int64
	// Min and Max bound the number, in its own unit. A number below Floor is allowed only if the
	// caller allows unsafe values.
	Min, Max, Floor int64
	// Default is in the setting's own unit. A setting without a default has no value until a policy
	// or property sets one.
	Default    int64
	HasDefault bool
	Text       string // the default of a setting with choices
	// Property is the table property with the same meaning; empty if there is none. Its numbers are
	// in units of values.
	Property string
	// IsFloorOfTables means that Floor is also the minimum of the property, unless a policy is
	// unsafe. Iceberg's own properties have no such minimum, because the table's owner decides.
	IsFloorOfTables bool
}

const hoursMax = 24 * 365 * 100

// typeOf holds the fixed facts about a type.
type typeOf struct {
	kind Kind
	// deletes is true if jobs of the type change snapshots or delete files. A table forbids such
	// jobs if its property gc.enabled is false.
	deletes  bool
	settings []Setting
}

// types is read-only.
var types = map[Type]typeOf{
	SnapshotManagement: {Snapshots, true, []Setting{
		{Name: MaxSnapshotAgeHours, Unit: hours, Min: 0, Max: hoursMax, Floor: 1, Default: 120, HasDefault: true,
			Property: "history.expire.max-snapshot-age-ms"},
		{Name: MinSnapshotsToKeep, Unit: once, Min: 1, Max: 1 << 30, Floor: 1, Default: 1, HasDefault: true,
			Property: "history.expire.min-snapshots-to-keep"},
		{Name: MaxRefAgeHours, Unit: hours, Min: 1, Max: hoursMax, Floor: 1, Property: "history.expire.max-ref-age-ms"},
		{Name: MinSnapshotsToExpire, Unit: once, Min: 1, Max: 1 << 30, Floor: 1, Default: 20, HasDefault: true},
		{Name: DeleteDelayHours, Unit: hours, Min: 0, Max: hoursMax, Floor: 1, Default: 24, HasDefault: true},
		{Name: Files, Choices: []string{FilesDelete, FilesKeep}, Text: FilesDelete, HasDefault: true},
	}},
	UnreferencedFileRemoval: {Orphans, true, []Setting{
		{Name: UnreferencedDays, Unit: days, Min: 0, Max: 36500, Floor: 1, Default: 3, HasDefault: true,
			Property: "moorage.maintenance.orphans.unreferenced-ms", IsFloorOfTables: true},
		{Name: NonCurrentDays, Unit: days, Min: 0, Max: 36500, Floor: 1, Default: 10, HasDefault: true,
			Property: "moorage.maintenance.orphans.noncurrent-ms", IsFloorOfTables: true},
		{Name: IntervalDays, Unit: days, Min: 1, Max: 365, Floor: 1, Default: 7, HasDefault: true},
		{Name: IncludeOlder, Choices: []string{"true", "false"}, Text: "false", HasDefault: true},
		{Name: EqualAuthorities, Choices: []string{"true", "false"}, Text: "false", HasDefault: true},
	}},
	Compaction: {Compact, false, []Setting{
		{Name: TargetFileSizeMB, Unit: mebi, Min: 1, Max: 1 << 20, Floor: 1, Default: 512, HasDefault: true,
			Property: "write.target-file-size-bytes"},
		{Name: Strategy, Choices: []string{"binpack"}, Text: "binpack", HasDefault: true},
		{Name: MinInputFiles, Unit: once, Min: 2, Max: 1 << 20, Floor: 2, Default: 5, HasDefault: true},
		{Name: SettleMinutes, Unit: minutes, Min: 0, Max: 60 * 24 * 365, Default: 60, HasDefault: true},
	}},
}

// Types returns all types, sorted.
func Types() []Type {
	return []Type{Compaction, SnapshotManagement, UnreferencedFileRemoval}
}

// Kind returns the kind of t's jobs. It returns the empty string for a type that does not exist.
func (t Type) Kind() Kind { return types[t].kind }

// Settings returns the settings of t, which the caller must not change.
func (t Type) Settings() []Setting { return types[t].settings }

// TypeOf returns the type whose jobs are of the given kind.
func TypeOf(kind Kind) (Type, bool) {
	for _, t := range Types() {
		if t.Kind() == kind {
			return t, true
		}
	}
	return "", false
}

// setting returns the setting of t called name.
func (t Type) setting(name string) (Setting, bool) {
	for _, s := range t.Settings() {
		if s.Name == name {
			return s, true
		}
	}
	return Setting{}, false
}

// Settings maps the names of settings to their texts. Numbers are decimal.
type Settings map[string]string

// Check returns nil if the settings are valid for t, and otherwise an error with the reason. unsafe
// allows values below the floor. Callers send the text of the error to clients.
func (t Type) Check(settings Settings, unsafe bool) error {
	if _, ok := types[t]; !ok {
		return fmt.Errorf("there is no type %q, but %s", t, join(Types()))
	}
	for _, name := range sortedKeys(settings) {
		s, ok := t.setting(name)
		if !ok {
			return fmt.Errorf("%s has no setting %q", t, name)
		}
		if err := s.check(settings[name], unsafe); err != nil {
			return err
		}
	}
	return nil
}

func (s Setting) check(text string, unsafe bool) error {
	if s.Choices != nil {
		if !slices.Contains(s.Choices, text) {
			return fmt.Errorf("%s is %q, and must be %s", s.Name, text, strings.Join(s.Choices, ", "))
		}
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < s.Min || n > s.Max:
		return fmt.Errorf("%s is %q, and must be a whole number from %d to %d", s.Name, text, s.Min, s.Max)
	case n < s.Floor && !unsafe:
		return fmt.Errorf("%s is %d: running readers and writers may need what that deletes. At least %d is safe; "+
			"pass --unsafe to allow it", s.Name, n, s.Floor)
	}
	return nil
}

func join[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
