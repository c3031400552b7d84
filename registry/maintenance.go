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

// MaintenancePolicy is the value of a maintenance-policy record: what is asked for the tables of
// one scope.
type MaintenancePolicy struct {
	Unknown
	// Ident is what the scope is called: all empty is the server. A table's is in its pointer.
	Ident moorage.Identifier `json:"identifier,omitzero"`
	// Jobs has one element for each type at most, in the order of their names.
	Jobs []JobPolicy `json:"jobs,omitempty"`
}

// JobPolicy is what a policy says of one type of job.
type JobPolicy struct {
	Type     string          `json:"type"`               // in the words of package policy
	Status   string          `json:"status"`             // "enabled" or "disabled"
	Settings json.RawMessage `json:"settings,omitempty"` // an object; absent members are not set
	// Since is when the status became what it is, by the store's clock.
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitempty"` // who wrote it last
	// Unsafe says that who wrote it asked for settings below what is safe.
	Unsafe bool `json:"unsafe,omitempty"`
}

// Care is the value of a care record: what is known of a table that has, or had, work to do.
type Care struct {
	Unknown
	Warehouse ID `json:"warehouse"` // its id
	// Rules is the hash of those properties and refs of the table that maintenance looks at.
	Rules string `json:"rules,omitempty"`
	// Seq is the highest sequence number that the server has seen, and SeqAt when it saw that, by
	// the store's clock.
	Seq   int64     `json:"seq,omitempty"`
	SeqAt time.Time `json:"seq-at,omitzero"`
	// Jobs has one element for each kind at most, in the order of their names.
	Jobs []JobCare `json:"jobs,omitempty"`
}

// Job returns what c says of a kind, zero if nothing.
func (c Care) Job(kind string) JobCare {
	for _, job := range c.Jobs {
		if job.Kind == kind {
			return job
		}
	}
	return JobCare{Kind: kind}
}

// With returns c with job in the place of what it says of that kind.
func (c Care) With(job JobCare) Care {
	jobs := make([]JobCare, 0, len(c.Jobs)+1)
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

// JobCare is what is known of one kind of job of a table.
type JobCare struct {
	Kind string `json:"kind"`
	// Due is when the table is to be looked at. There is a due record for it, and no other of this
	// table and kind. Zero: nothing is due.
	Due  time.Time `json:"due,omitzero"`
	Set  time.Time `json:"set,omitzero"`   // when Due was set, by the store's clock
	Rule string    `json:"rule,omitempty"` // hash of the rule that Due was reckoned by
	// Mode is how Due came about: "event", "walk", "shadow" or "operator".
	Mode    string    `json:"mode,omitempty"`
	Held    string    `json:"held,omitempty"`    // why nothing happens although a rule asks for it
	Outcome string    `json:"outcome,omitempty"` // of the last run
	Error   string    `json:"error,omitempty"`   // of the last run
	Last    time.Time `json:"last,omitzero"`     // when that ended
	Base    CareBase  `json:"base,omitzero"`
	// Tries counts failures in a row that another try would meet again. Laters counts tries in a
	// row that were put off since LaterSince.
	Tries      int       `json:"tries,omitempty"`
	Laters     int       `json:"laters,omitempty"`
	LaterSince time.Time `json:"later-since,omitzero"`
}

// CareBase is how a table was when the last job of a kind left it.
type CareBase struct {
	Snapshots int64 `json:"snapshots,omitempty"`
	Files     int64 `json:"files,omitempty"`
	Deletes   int64 `json:"deletes,omitempty"`
	Bytes     int64 `json:"bytes,omitempty"`
	Seq       int64 `json:"seq,omitempty"`
	// Interval is the time between two passes of a kind that has a cadence of its own.
	Interval time.Duration `json:"interval-ns,omitempty"`
}

// Due is the value of a due record; the key says all, also that of WindowKey. A record of
// DueBlockedKey says that a kind is blocked, and why. One of WaitingKey says which purge waits.
type Due struct {
	Unknown
	Reason string    `json:"reason,omitempty"` // why it is blocked
	Since  time.Time `json:"since,omitzero"`
	By     string    `json:"by,omitempty"` // who quarantined it; empty: it failed
	// Purge says that a purge waits. The fields below belong to it.
	Purge     bool `json:"purge,omitempty"`
	Task      ID   `json:"task,omitzero"`      // that the purge gets
	Warehouse ID   `json:"warehouse,omitzero"` // of the table
	// Bytes is what the files of the table's head take; zero if the table does not say it.
	Bytes int64 `json:"bytes,omitempty"`
}

// Job is the value of a job record: one piece of maintenance under way. Its state is
// StateCollecting, StateWaiting, StateDeleting, StateClaimed or StateBlocked.
type Job struct {
	Unknown
	ID      ID     `json:"id"`
	Kind    string `json:"kind"`
	Pointer ID     `json:"pointer"`
	UUID    string `json:"uuid"` // of the table
	Rule    string `json:"rule"` // hash of the rule that asked for it
	Caller  string `json:"caller"`
	// Commit is the id of the change that expired the snapshots; zero if none did.
	Commit ID `json:"commit,omitzero"`
	// Folder is where the job keeps its files; no trailing slash.
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
	// Looked is the metadata location up to which commits were looked at.
	Looked string `json:"looked,omitempty"`
	// Node is the process that works on it, and Touched when that last said so.
	Node    ID        `json:"node,omitzero"`
	Touched time.Time `json:"touched,omitzero"`
	// Lease is the token of the lease of a claimed job, and Holder who holds it.
	Lease  uint64 `json:"lease,omitempty"`
	Holder string `json:"holder,omitempty"`
	// Before is the state that a blocked job was in, and goes back to.
	Before State `json:"before,omitempty"`
	// Confirmed says that an operator let a job go on that would delete most of a table's files.
	Confirmed  bool      `json:"confirmed,omitempty"`
	Paused     bool      `json:"paused,omitempty"`
	PausedWhy  string    `json:"paused-why,omitempty"` // and by whom
	Tries      int       `json:"tries,omitempty"`
	Laters     int       `json:"laters,omitempty"`
	LaterSince time.Time `json:"later-since,omitzero"`
	// RestsUntil is when a job that failed is tried again.
	RestsUntil time.Time `json:"rests-until,omitzero"`
	LastError  string    `json:"last-error,omitempty"`
	Begun      int       `json:"begun,omitempty"` // tries that have begun since one got on or failed; see BegunMax
	Totals     JobTotals `json:"totals,omitzero"`
}

// AsOf returns j as it is to be read at now, by the store's clock. If that was ahead when j began
// to wait, moved is true, and the whole wait begins now.
func (j Job) AsOf(now time.Time) (at Job, moved bool) {
	if !IsAhead(j.WaitsFrom, now) {
		return j, false
	}
	j.NotBefore, j.WaitsFrom = now.Add(j.NotBefore.Sub(j.WaitsFrom)), now
	return j, true
}

// JobFile is a file of a job. One that differs from what its record says is not used.
type JobFile struct {
	Location string `json:"location"`
	What     string `json:"what,omitempty"` // kind of the files that it lists
	Count    int64  `json:"count"`
	SHA256   Hash   `json:"sha256"`
}

// JobProgress is how far a job has come.
type JobProgress struct {
	List int   `json:"list,omitempty"` // in Lists
	Line int64 `json:"line,omitempty"` // in that list, of those that are done
	// After is the place in a listing behind which it goes on.
	After string `json:"after,omitempty"`
}

// JobTotals is what a job did.
type JobTotals struct {
	Snapshots int64    `json:"snapshots,omitempty"`
	Files     int64    `json:"files,omitempty"` // deleted
	Bytes     int64    `json:"bytes,omitempty"`
	Read      int64    `json:"read-bytes,omitempty"`
	Kept      []KeptOf `json:"kept,omitempty"`
}

// KeptOf counts files that a job kept for one reason.
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

// Lease is the value of a lease record: who works on a table outside the server.
type Lease struct {
	Unknown
	// Last is the highest token that was ever given out for the table. It only grows.
	Last  uint64 `json:"last"`
	Holds []Hold `json:"holds,omitempty"` // in the order of their tokens
}

// Hold is one lease on a table.
type Hold struct {
	Token  uint64 `json:"token"`
	Scope  string `json:"scope"`
	Holder string `json:"holder"` // as its holder calls itself
	Caller string `json:"caller"` // who took it
	// Job is the piece of work that it was taken for; zero: none.
	Job ID `json:"job,omitzero"`
	// Since, Expires and TTL are by the store's clock.
	Since   time.Time     `json:"since"`
	Expires time.Time     `json:"expires"`
	TTL     time.Duration `json:"ttl-ns"`
}

// Hold returns the hold with a token if it has not expired at now, a time of the store's clock.
func (l Lease) Hold(token uint64, now time.Time) (Hold, bool) {
	for _, hold := range l.Holds {
		if hold.Token == token {
			return hold, hold.IsLive(now)
		}
	}
	return Hold{}, false
}

// IsLive reports whether h has not expired at now. One that ends much later than its life allows
// was written when the store's clock was ahead, and has expired.
func (h Hold) IsLive(now time.Time) bool {
	return h.Expires.After(now) && h.Expires.Sub(now) <= 2*h.TTL
}

// LeaseID names one lease: the table that it is on, and its token.
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

// Monitor is the value of the record MonitorKey: how far the log of changes was read for
// maintenance.
type Monitor struct {
	Unknown
	Position Position `json:"position"`
	// Time is the latest by the store's clock at which the monitor has looked.
	Time time.Time `json:"time,omitzero"`
	// Policies is a hash of all policies that were in force then.
	Policies string `json:"policies,omitempty"`
	// Lost says that changes were deleted that were not read, so all policies are walked again.
	Lost bool `json:"lost,omitempty"`
}

// Walk is the value of a record of WalkKey: how far the tables of a scope were looked at.
type Walk struct {
	Unknown
	Ident moorage.Identifier `json:"identifier,omitzero"`
	// After is the ID of the pointer record behind which it goes on.
	After   string    `json:"after,omitempty"`
	Reason  string    `json:"reason"` // "policy", "lost-log", "rescan", "lag" or "clock"
	Since   time.Time `json:"since"`
	Looked  int64     `json:"looked,omitempty"`
	MadeDue int64     `json:"made-due,omitempty"`
}

// Pauses is the value of the record PauseKey.
type Pauses struct {
	Unknown
	Pauses []Pause `json:"pauses,omitempty"` // in the order of their scopes, "server" first
}

// Pause stops the maintenance of a scope.
type Pause struct {
	Scope  string             `json:"scope"` // as in the ID of a policy's key
	Ident  moorage.Identifier `json:"identifier,omitzero"`
	Reason string             `json:"reason"`
	By     string             `json:"by,omitempty"`
	Since  time.Time          `json:"since"`
}

// Covers reports whether p is about a table.
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

// ClockDoubt is the value of the record ClockKey: the store's clock cannot be believed, so nothing
// is deleted because of its age.
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

// CareKey is the key of the care record of a table.
func CareKey(pointer ID) Key { return Key{TableCare, pointer.String()} }

// DueShard returns the part of the due index that a table belongs to, a hexadecimal digit.
func DueShard(pointer ID) string { return pointer.String()[:1] }

// DuePrefix is what the IDs of all due records of a shard start with.
func DuePrefix(shard string) string { return shard + "/" }

// DueID is the first ID of a shard's due records at a time.
func DueID(shard string, at time.Time) string {
	return fmt.Sprintf("%s/%09x", shard, max(at.Unix(), 0))
}

// DueKey is the key of the due record of a table and a kind of job. IDs of one shard are ordered by
// time.
func DueKey(pointer ID, kind string, at time.Time) Key {
	return Key{TableDue, DueID(DueShard(pointer), at) + "/" + pointer.String() + "/" + kind}
}

// ParseDue returns what DueKey was made of, by the second.
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

// blockedPrefix begins the IDs of all blockers. No shard is called so.
const blockedPrefix = "blocked/"

// DueBlockedPrefix is what the IDs of all records of DueBlockedKey start with.
func DueBlockedPrefix() string { return blockedPrefix }

// DueBlockedKey is the key of the record which says that a kind of job of a table is blocked.
func DueBlockedKey(pointer ID, kind string) Key {
	return Key{TableDue, blockedPrefix + pointer.String() + "/" + kind}
}

// JobKey is the key of the job of a kind on a table: there is one at most.
func JobKey(pointer ID, kind string) Key { return Key{TableJob, JobPrefix(pointer) + kind} }

// JobPrefix is what the IDs of all jobs of a table start with.
func JobPrefix(pointer ID) string { return pointer.String() + "/" }

// RunKey is the key of the run of a job that ended at a time. The runs of a table are ordered by
// time, the latest first.
func RunKey(pointer ID, ended time.Time, job ID) Key {
	return Key{TableRun, fmt.Sprintf("%s%016x/%s", RunPrefix(pointer), ^uint64(max(ended.UnixMilli(), 0)), job)}
}

// RunPrefix is what the IDs of all runs of a table start with.
func RunPrefix(pointer ID) string { return pointer.String() + "/" }

// LeaseKey is the key of the leases on a table.
func LeaseKey(pointer ID) Key { return Key{TableLease, pointer.String()} }

// MonitorKey is the key of the record that says how far changes were read for maintenance.
func MonitorKey() Key { return Key{TableCursor, "monitor"} }

// WalkPrefix is what the IDs of all walks start with.
const WalkPrefix = "walk/"

// WalkKey is the key of the walk over the tables of a scope.
func WalkKey(scope string) Key { return Key{TableCursor, WalkPrefix + scope} }

// PauseKey is the key of the record that says which scopes are paused.
func PauseKey() Key { return Key{TableCursor, "pause"} }

// ClockKey is the key of the record which says that the store's clock is in doubt.
func ClockKey() Key { return Key{TableCursor, "clock"} }

// The names of the members of the records of maintenance.
var (
	maintenancePolicyMembers = MembersOf[MaintenancePolicy]()
	careMembers              = MembersOf[Care]()
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
func (Care) Members() *Members { return careMembers }

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
