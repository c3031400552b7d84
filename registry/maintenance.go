package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage"
)

// MaintenancePolicy is the value of a maintenance-policy record: the settings for the tables of one
// scope.
type MaintenancePolicy struct {
	Unknown
	// Ident is the name of the scope. An empty Ident is the whole server. The current name of a
	// table is in its pointer, because the table may have been renamed.
	Ident moorage.Identifier `json:"identifier,omitzero"`
	// Jobs has at most one element for each type, ordered by name.
	Jobs []JobPolicy `json:"jobs,omitempty"`
}

// JobPolicy is the part of a policy for one type of job.
type JobPolicy struct {
	Type     string          `json:"type"`               // a name of package policy
	Status   string          `json:"status"`             // "enabled" or "disabled"
	Settings json.RawMessage `json:"settings,omitempty"` // an object; absent members are not set
	// Since is when the status last changed, by the store's clock.
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitempty"` // identity of the last writer
	// Unsafe is true if the writer requested settings below the safe bounds.
	Unsafe bool `json:"unsafe,omitempty"`
}

// Schedule is the value of a schedule record: the maintenance state of a table that has, or had,
// work to do.
type Schedule struct {
	Unknown
	Warehouse ID `json:"warehouse"` // the id of the warehouse
	// Rules is the hash of the table's properties and refs that maintenance reads.
	Rules string `json:"rules,omitempty"`
	// Seq is the highest sequence number of the table that the server has seen. SeqAt is when the
	// server saw that number, by the store's clock.
	Seq   int64     `json:"seq,omitempty"`
	SeqAt time.Time `json:"seq-at,omitzero"`
	// Jobs has at most one element for each kind, ordered by name.
	Jobs []KindSchedule `json:"jobs,omitempty"`
}

// Job returns c's state for a kind of job. It is zero if there is no such state.
func (c Schedule) Job(kind string) KindSchedule {
	for _, job := range c.Jobs {
		if job.Kind == kind {
			return job
		}
	}
	return KindSchedule{Kind: kind}
}

// With returns c with job in place of the state of the same kind.
func (c Schedule) With(job KindSchedule) Schedule {
	jobs := make([]KindSchedule, 0, len(c.Jobs)+1)
	placed := false
	for _, each := range c.Jobs {
		if !placed && each.Kind >= job.Kind {
			jobs, placed = append(jobs, job), true
		}
		if each.Kind != job.Kind {
			jobs = append(jobs, each)
		}
	}
	if !placed {
		jobs = append(jobs, job)
	}
	c.Jobs = jobs
	return c
}

// KindSchedule is the state of one kind of job of a table.
type KindSchedule struct {
	Kind string `json:"kind"`
	// Due is when the table must be checked. There is one due record for this table and kind, at
	// that time. If Due is zero, there is no due record.
	Due  time.Time `json:"due,omitzero"`
	Set  time.Time `json:"set,omitzero"`   // when Due was set, by the store's clock
	Rule string    `json:"rule,omitempty"` // hash of the rule that Due was computed from
	// Mode is how Due was set: "event", "walk", "shadow" or "operator".
	Mode    string       `json:"mode,omitempty"`
	Held    string       `json:"held,omitempty"`    // why the job does not run although a rule requires it
	Outcome string       `json:"outcome,omitempty"` // of the last run
	Error   string       `json:"error,omitempty"`   // of the last run
	Last    time.Time    `json:"last,omitzero"`     // when the last run ended
	Base    ScheduleBase `json:"base,omitzero"`
	// Former is when the server last searched for metadata files that had left the log. It is set
	// only for the kind "snapshots".
	Former time.Time `json:"former,omitzero"`
	// Tries counts consecutive failures of a kind that would probably recur on a retry. Laters
	// counts consecutive postponed tries since LaterSince.
	Tries      int       `json:"tries,omitempty"`
	Laters     int       `json:"laters,omitempty"`
	LaterSince time.Time `json:"later-since,omitzero"`
}

// ScheduleBase describes the table after the last job of a kind.
type ScheduleBase struct {
	Snapshots int64 `json:"snapshots,omitempty"`
	Files     int64 `json:"files,omitempty"`
	Deletes   int64 `json:"deletes,omitempty"`
	Bytes     int64 `json:"bytes,omitempty"`
	Seq       int64 `json:"seq,omitempty"`
	// Interval is the time between two runs, for a kind of job that has its own interval.
	Interval time.Duration `json:"interval-ns,omitempty"`
}

// Due is the value of a due record. At DueKey and WindowKey the value is empty, because the key
// contains everything. At DueBlockedKey the value records why a kind of job is blocked. At
// WaitingKey it describes the waiting purge.
type Due struct {
	Unknown
	Reason string    `json:"reason,omitempty"` // why the kind is blocked
	Since  time.Time `json:"since,omitzero"`
	By     string    `json:"by,omitempty"` // identity of the operator that quarantined it; empty after a failure
	// Purge is true for a waiting purge. The fields below belong to the purge.
	Purge     bool `json:"purge,omitempty"`
	Task      ID   `json:"task,omitzero"`      // the future ID of the purge's task
	Warehouse ID   `json:"warehouse,omitzero"` // of the table
	// Bytes is the size of the files of the table's head. It is zero if the table's metadata lacks
	// it.
	Bytes int64 `json:"bytes,omitempty"`
}

// Job is the value of a job record: one maintenance job in progress. Its state is StateCollecting,
// StateWaiting, StateDeleting, StateAssigned or StateBlocked.
type Job struct {
	Unknown
	ID      ID     `json:"id"`
	Kind    string `json:"kind"`
	Pointer ID     `json:"pointer"`
	UUID    string `json:"uuid"` // of the table
	Rule    string `json:"rule"` // hash of the rule that requires the job
	Caller  string `json:"caller"`
	// Commit is the id of the change that expired the snapshots. It is zero if there was no such
	// change.
	Commit ID `json:"commit,omitzero"`
	// Folder is where the job keeps its files. It has no trailing slash.
	Folder string    `json:"folder,omitempty"`
	Input  *JobFile  `json:"input,omitempty"`
	Lists  []JobFile `json:"lists,omitempty"`
	Reach  string    `json:"reach,omitempty"` // how the files were found: "linear" or "full"
	// Times are by the store's clock.
	Created   time.Time   `json:"created"`
	Since     time.Time   `json:"since"` // when the present state began
	NotBefore time.Time   `json:"not-before,omitzero"`
	WaitsFrom time.Time   `json:"waits-from,omitzero"` // when NotBefore was set
	Progress  JobProgress `json:"progress,omitzero"`
	// Looked is the metadata location of the last commit checked by the job.
	Looked string `json:"looked,omitempty"`
	// Node is the process that works on the job, and Touched is its last heartbeat.
	Node    ID        `json:"node,omitzero"`
	Touched time.Time `json:"touched,omitzero"`
	// Lease is the token of the lease of an assigned job, and Holder is the name of the holder.
	Lease  uint64 `json:"lease,omitempty"`
	Holder string `json:"holder,omitempty"`
	// Before is the state of the job before it was blocked. When the job is released, it returns to
	// that state.
	Before State `json:"before,omitempty"`
	// Confirmed is true if an operator allowed a job that would delete most of a table's files.
	Confirmed  bool      `json:"confirmed,omitempty"`
	Paused     bool      `json:"paused,omitempty"`
	PausedWhy  string    `json:"paused-why,omitempty"` // includes the operator's identity
	Tries      int       `json:"tries,omitempty"`
	Laters     int       `json:"laters,omitempty"`
	LaterSince time.Time `json:"later-since,omitzero"`
	// RestsUntil is when a failed job is retried.
	RestsUntil time.Time `json:"rests-until,omitzero"`
	LastError  string    `json:"last-error,omitempty"`
	Begun      int       `json:"begun,omitempty"` // tries begun since the last progress or failure; see BegunMax
	Totals     JobTotals `json:"totals,omitzero"`
}

// AsOf returns j as of the time now of the store's clock. If that clock was ahead when j began to
// wait, moved is true and the whole wait begins again now.
func (j Job) AsOf(now time.Time) (at Job, moved bool) {
	if !IsAhead(j.WaitsFrom, now) {
		return j, false
	}
	j.NotBefore, j.WaitsFrom = now.Add(j.NotBefore.Sub(j.WaitsFrom)), now
	return j, true
}

// JobFile is a file of a job. A file whose content does not match this record is not used.
type JobFile struct {
	Location string `json:"location"`
	What     string `json:"what,omitempty"` // the kind of files in the list
	Count    int64  `json:"count"`
	SHA256   Hash   `json:"sha256"`
}

// JobProgress is the progress of a job.
type JobProgress struct {
	List int   `json:"list,omitempty"` // index in Lists
	Line int64 `json:"line,omitempty"` // lines done in that list
	// After is the name in a listing after which the job continues.
	After string `json:"after,omitempty"`
}

// JobTotals are the totals of a job.
type JobTotals struct {
	Snapshots int64    `json:"snapshots,omitempty"`
	Files     int64    `json:"files,omitempty"` // deleted
	Bytes     int64    `json:"bytes,omitempty"`
	Read      int64    `json:"read-bytes,omitempty"`
	Kept      []KeptOf `json:"kept,omitempty"`
}

// KeptOf is the number of files that a job did not delete for one reason.
type KeptOf struct {
	Reason string `json:"reason"`
	Files  int64  `json:"files"`
}

// Run is the value of a run record: a job that has ended.
type Run struct {
	Unknown
	Job     ID        `json:"job"`
	Kind    string    `json:"kind"`
	Outcome string    `json:"outcome"`
	Rule    string    `json:"rule,omitempty"`
	Caller  string    `json:"caller,omitempty"`
	Holder  string    `json:"holder,omitempty"`
	Commit  ID        `json:"commit,omitzero"`
	Reach   string    `json:"reach,omitempty"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Error   string    `json:"error,omitempty"`
	Totals  JobTotals `json:"totals,omitzero"`
}

// Lease is the value of a lease record: the workers outside the server that hold leases on a table.
type Lease struct {
	Unknown
	// Last is the highest token ever issued for the table. It only grows.
	Last  uint64 `json:"last"`
	Holds []Hold `json:"holds,omitempty"` // ordered by token
}

// Hold is one lease on a table.
type Hold struct {
	Token  uint64 `json:"token"`
	Scope  string `json:"scope"`
	Holder string `json:"holder"` // the name that the holder chose
	Caller string `json:"caller"` // identity of the caller that acquired it
	// Job is the job for which the lease was acquired. It is zero if there is no job.
	Job ID `json:"job,omitzero"`
	// Since, Expires and TTL are by the store's clock.
	Since   time.Time     `json:"since"`
	Expires time.Time     `json:"expires"`
	TTL     time.Duration `json:"ttl-ns"`
}

// Hold returns the hold with a token, unless the hold has expired at the time now of the store's
// clock.
func (l Lease) Hold(token uint64, now time.Time) (Hold, bool) {
	for _, hold := range l.Holds {
		if hold.Token == token {
			return hold, hold.IsLive(now)
		}
	}
	return Hold{}, false
}

// IsLive reports whether h has not expired at the time now. A hold that ends much later than its
// TTL allows was written while the store's clock was ahead, and counts as expired.
func (h Hold) IsLive(now time.Time) bool {
	return h.Expires.After(now) && h.Expires.Sub(now) <= 2*h.TTL
}

// LeaseID identifies one lease by its table and its token.
type LeaseID struct {
	Pointer ID
	Token   uint64
}

// String returns the pointer's id, a hyphen and the token.
func (id LeaseID) String() string {
	return id.Pointer.String() + "-" + strconv.FormatUint(id.Token, 10)
}

// ParseLeaseID reads the text of String.
func ParseLeaseID(text string) (id LeaseID, err error) {
	pointer, token, _ := strings.Cut(text, "-")
	if err = id.Pointer.UnmarshalText([]byte(pointer)); err == nil {
		id.Token, err = strconv.ParseUint(token, 10, 64)
	}
	if err != nil || id.String() != text {
		return LeaseID{}, fmt.Errorf("%q is no lease", text)
	}
	return id, nil
}

// Monitor is the value of the record MonitorKey: the position up to which maintenance has read the
// log of changes.
type Monitor struct {
	Unknown
	Position Position `json:"position"`
	// Time is when the monitor last ran, by the store's clock.
	Time time.Time `json:"time,omitzero"`
	// Policies is a hash of all policies in force at Time.
	Policies string `json:"policies,omitempty"`
	// Lost is true if changes were deleted before the monitor read them. Then the monitor walks the
	// tables of all policies again.
	Lost bool `json:"lost,omitempty"`
}

// Walk is the value of a record of WalkKey: the progress of a walk over the tables of a scope.
type Walk struct {
	Unknown
	Ident moorage.Identifier `json:"identifier,omitzero"`
	// After is the ID of the pointer record after which the walk continues.
	After   string    `json:"after,omitempty"`
	Reason  string    `json:"reason"` // "policy", "lost-log", "rescan", "lag" or "clock"
	Since   time.Time `json:"since"`
	Looked  int64     `json:"looked,omitempty"`
	MadeDue int64     `json:"made-due,omitempty"`
}

// Pauses is the value of the record PauseKey.
type Pauses struct {
	Unknown
	Pauses []Pause `json:"pauses,omitempty"` // ordered by scope, "server" first
}

// Pause stops the maintenance of a scope.
type Pause struct {
	Scope  string             `json:"scope"` // as in the ID of a policy's key
	Ident  moorage.Identifier `json:"identifier,omitzero"`
	Reason string             `json:"reason"`
	By     string             `json:"by,omitempty"`
	Since  time.Time          `json:"since"`
}

// Covers reports whether p applies to a table.
func (p Pause) Covers(table Pointer) bool {
	if p.Scope == ScopeServer || p.Scope == TableScope(table.ID) {
		return true
	}
	if p.Ident.Warehouse != table.Warehouse || p.Ident.Name != "" {
		return false
	}
	levels := len(p.Ident.Namespace)
	return levels <= len(table.Namespace) && slices.Equal(p.Ident.Namespace, table.Namespace[:levels])
}

// ClockDoubt is the value of the record ClockKey. While the store's clock is in doubt, files are
// not deleted because of their age.
type ClockDoubt struct {
	Unknown
	Why   string    `json:"why"`
	Since time.Time `json:"since"` // by the clock in doubt
}

// ScopeServer is the scope of the whole server.
const ScopeServer = "server"

// WarehouseScope is the scope of a warehouse.
func WarehouseScope(id ID) string { return "w/" + id.String() }

// NamespaceScope is the scope of a namespace.
func NamespaceScope(id ID) string { return "n/" + id.String() }

// TableScope is the scope of a table.
func TableScope(pointer ID) string { return "t/" + pointer.String() }

// MaintenancePolicyKey is the key of the policy of a scope.
func MaintenancePolicyKey(scope string) Key { return Key{TableMaintenancePolicy, scope} }

// ScheduleKey is the key of the schedule of a table.
func ScheduleKey(pointer ID) Key { return Key{TableSchedule, pointer.String()} }

// DueShards has the names of all shards of the due index, one character each.
const DueShards = "0123456789abcdef"

// DueShard returns the shard of the due index to which a table belongs, a hexadecimal digit.
func DueShard(pointer ID) string { return pointer.String()[:1] }

// DuePrefix is the prefix of the IDs of all due records of a shard.
func DuePrefix(shard string) string { return shard + "/" }

// DueID returns the first possible ID of a due record of a shard at a time.
func DueID(shard string, at time.Time) string {
	return fmt.Sprintf("%s/%09x", shard, max(at.Unix(), 0))
}

// DueKey is the key of the due record of a table and a kind of job. IDs of one shard are ordered by
// time.
func DueKey(pointer ID, kind string, at time.Time) Key {
	return Key{TableDue, DueID(DueShard(pointer), at) + "/" + pointer.String() + "/" + kind}
}

// ParseDue returns the arguments from which DueKey made key. The time is in whole seconds.
func ParseDue(key Key) (pointer ID, kind string, at time.Time, err error) {
	parts := strings.Split(key.ID, "/")
	var seconds int64
	if len(parts) == 4 {
		_, err = fmt.Sscanf(parts[1], "%09x", &seconds)
	}
	if err == nil && len(parts) == 4 {
		err = pointer.UnmarshalText([]byte(parts[2]))
	}
	if err != nil || len(parts) != 4 || DueKey(pointer, parts[3], time.Unix(seconds, 0)) != key {
		return ID{}, "", time.Time{}, fmt.Errorf("%s is no time at which something is due", key)
	}
	return pointer, parts[3], time.Unix(seconds, 0).UTC(), nil
}

// blockedPrefix is the prefix of the IDs of all records of DueBlockedKey. No shard has this name.
const blockedPrefix = "blocked/"

// DueBlockedPrefix is the prefix of the IDs of all records of DueBlockedKey.
func DueBlockedPrefix() string { return blockedPrefix }

// DueBlockedKey is the key of the record of a blocked kind of job of a table.
func DueBlockedKey(pointer ID, kind string) Key {
	return Key{TableDue, blockedPrefix + pointer.String() + "/" + kind}
}

// JobKey is the key of the job of a kind on a table. There is at most one such job.
func JobKey(pointer ID, kind string) Key { return Key{TableJob, JobPrefix(pointer) + kind} }

// JobPrefix is the prefix of the IDs of all jobs of a table.
func JobPrefix(pointer ID) string { return pointer.String() + "/" }

// RunKey is the key of the run of a job that ended at a time. The runs of a table are ordered by
// time, latest first.
func RunKey(pointer ID, ended time.Time, job ID) Key {
	return Key{TableRun, fmt.Sprintf("%s%016x/%s", RunPrefix(pointer), ^uint64(max(ended.UnixMilli(), 0)), job)}
}

// RunPrefix is the prefix of the IDs of all runs of a table.
func RunPrefix(pointer ID) string { return pointer.String() + "/" }

// LeaseKey is the key of the leases on a table.
func LeaseKey(pointer ID) Key { return Key{TableLease, pointer.String()} }

// MonitorKey is the key of the record with the position up to which maintenance has read the
// changes.
func MonitorKey() Key { return Key{TableCursor, "monitor"} }

// WalkPrefix is the prefix of the IDs of all walks.
const WalkPrefix = "walk/"

// WalkKey is the key of the walk over the tables of a scope.
func WalkKey(scope string) Key { return Key{TableCursor, WalkPrefix + scope} }

// PauseKey is the key of the record of the paused scopes.
func PauseKey() Key { return Key{TableCursor, "pause"} }

// ClockKey is the key of the record that marks the store's clock as in doubt.
func ClockKey() Key { return Key{TableCursor, "clock"} }

// The names of the members of the records of maintenance.
var (
	maintenancePolicyMembers = MembersOf[MaintenancePolicy]()
	scheduleMembers          = MembersOf[Schedule]()
	dueMembers               = MembersOf[Due]()
	jobMembers               = MembersOf[Job]()
	runMembers               = MembersOf[Run]()
	leaseMembers             = MembersOf[Lease]()
	monitorMembers           = MembersOf[Monitor]()
	walkMembers              = MembersOf[Walk]()
	pausesMembers            = MembersOf[Pauses]()
	clockDoubtMembers        = MembersOf[ClockDoubt]()
)

// Members implements Value.
func (MaintenancePolicy) Members() *Members { return maintenancePolicyMembers }

// Members implements Value.
func (Schedule) Members() *Members { return scheduleMembers }

// Members implements Value.
func (Due) Members() *Members { return dueMembers }

// Members implements Value.
func (Job) Members() *Members { return jobMembers }

// Members implements Value.
func (Run) Members() *Members { return runMembers }

// Members implements Value.
func (Lease) Members() *Members { return leaseMembers }

// Members implements Value.
func (Monitor) Members() *Members { return monitorMembers }

// Members implements Value.
func (Walk) Members() *Members { return walkMembers }

// Members implements Value.
func (Pauses) Members() *Members { return pausesMembers }

// Members implements Value.
func (ClockDoubt) Members() *Members { return clockDoubtMembers }
