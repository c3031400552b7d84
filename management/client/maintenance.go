package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// MaintenancePolicy is a scope's policy for a type of job. Its JSON has the form of Amazon S3
// Tables.
type MaintenancePolicy struct {
	Status string `json:"status"` // enabled or disabled
	// Settings has one member. Its name is that of the type, and its value is an object of
	// settings.
	Settings map[string]MaintenanceSettings `json:"settings,omitempty"`
	// Unsafe allows settings below the values that are safe for running readers and writers.
	Unsafe bool      `json:"unsafe,omitempty"`
	Since  time.Time `json:"since,omitzero"` // when the status last changed
	By     string    `json:"by,omitempty"`
}

// MaintenanceScope has an object's own policies, by type.
type MaintenanceScope struct {
	// Scope is "server", or a letter, a slash and the id of the object. The letter is w for a
	// warehouse, n for a namespace, and t for a table. The object may no longer exist.
	Scope    string                       `json:"scope"`
	Policies map[string]MaintenancePolicy `json:"policies"`
}

// MaintenanceScopesPage is a page of the objects that have policies of their own.
type MaintenanceScopesPage struct {
	Scopes []MaintenanceScope `json:"scopes"`
	NextPage
}

// MaintenanceSettings are settings by name: numbers and strings.
type MaintenanceSettings map[string]json.RawMessage

// MaintenanceValue is the effective value of a setting, and its source.
type MaintenanceValue struct {
	Value string `json:"value"` // in the form of a policy, or with its own unit
	// Level and name of the source, and whether the server raised a property to a safe value
	From string `json:"from"`
}

// MaintenanceKind is the state of a kind of job of a table.
type MaintenanceKind struct {
	Kind string `json:"kind"`
	Type string `json:"type"`
	// State is Disabled, Held, Blocked, Paused, Running, Waiting, Failed, Successful or
	// Not_Yet_Run.
	State    string                      `json:"state"`
	From     string                      `json:"from"`          // the source that enabled or disabled it
	Why      string                      `json:"why,omitempty"` // why it is held, blocked or failed
	Due      time.Time                   `json:"due,omitzero"`
	Last     time.Time                   `json:"last,omitzero"`
	Outcome  string                      `json:"outcome,omitempty"` // of the last check
	Job      string                      `json:"job,omitempty"`     // id of the job in progress
	Settings map[string]MaintenanceValue `json:"settings"`
}

// MaintenanceRun is a job that has ended.
type MaintenanceRun struct {
	Job       string    `json:"job"`
	Kind      string    `json:"kind"`
	Outcome   string    `json:"outcome"`
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	Snapshots int64     `json:"snapshots"`
	Files     int64     `json:"files"`
	Bytes     int64     `json:"bytes"`
	Error     string    `json:"error,omitempty"`
	// Kept counts the files that the job kept although it listed them, or could have listed them.
	Kept []MaintenanceKept `json:"kept,omitempty"`
}

// MaintenanceKept counts the files that stay for one reason.
type MaintenanceKept struct {
	// Reason is outside, unreadable, named again, look-alike or changed. For a warehouse it can
	// also be a phrase, such as "too young".
	Reason string `json:"reason"`
	Files  int64  `json:"files"`
}

// MaintenancePause is a pause of the maintenance of a scope.
type MaintenancePause struct {
	Object Object    `json:"object"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
}

// MaintenanceStatus is the state of the maintenance of a scope. Kinds, Jobs and Runs are present
// only if the scope is a table.
type MaintenanceStatus struct {
	Object   Object                       `json:"object"`
	Policies map[string]MaintenancePolicy `json:"policies"` // of the scope itself, by type
	Pauses   []MaintenancePause           `json:"pauses"`
	Kinds    []MaintenanceKind            `json:"kinds"`
	Jobs     []MaintenanceJob             `json:"jobs"` // in progress
	Runs     []MaintenanceRun             `json:"runs"`
}

// MaintenanceJob is a job in progress.
type MaintenanceJob struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	Object    *Object   `json:"object,omitempty"` // nil if the table is gone
	State     string    `json:"state"`
	Principal string    `json:"principal"`
	Created   time.Time `json:"created"`
	NotBefore time.Time `json:"not-before,omitzero"`
	Files     int64     `json:"files"` // files to be deleted, as far as known
	Deleted   int64     `json:"deleted"`
	LastError string    `json:"last-error,omitempty"`
	Paused    string    `json:"paused,omitempty"` // the pausing caller and the reason; empty if not paused
	// Kept counts the files that the job has kept so far.
	Kept []MaintenanceKept `json:"kept,omitempty"`
}

// MaintenanceJobsPage is a page of jobs.
type MaintenanceJobsPage struct {
	Jobs []MaintenanceJob `json:"jobs"`
	NextPage
}

// MaintenanceChange is an operator's request about the maintenance of an object.
type MaintenanceChange struct {
	Object Object `json:"object"`
	Kind   string `json:"kind,omitempty"`   // of a run
	Reason string `json:"reason,omitempty"` // of a pause
}

// MaintenanceSettingsByHand are the settings of a job that an operator begins. A nil field means
// the default. Times are in whole seconds.
type MaintenanceSettingsByHand struct {
	// Settings for snapshots.
	MaxSnapshotAgeSeconds *int64 `json:"max-snapshot-age-seconds,omitempty"` // default 5 days
	MinSnapshots          *int64 `json:"min-snapshots,omitempty"`            // of each branch; default 1
	MaxRefAgeSeconds      *int64 `json:"max-ref-age-seconds,omitempty"`      // default 0: refs stay
	// Delay until files are deleted; default a day
	DelaySeconds *int64 `json:"delay-seconds,omitempty"`
	KeepFiles    bool   `json:"keep-files,omitempty"` // do not delete files
	// Settings for orphans.
	OlderThanSeconds  *int64 `json:"older-than-seconds,omitempty"` // default 3 days, or 7 days for a warehouse
	QuarantineSeconds *int64 `json:"quarantine-seconds,omitempty"` // default 10 days
	EqualAuthorities  bool   `json:"equal-authorities,omitempty"`
	Confirm           bool   `json:"confirm,omitempty"` // confirms that most files are orphans
	// Treat files as the table's even if they are older than the table's claim of its location
	Adopt  bool `json:"adopt,omitempty"`
	Unsafe bool `json:"unsafe,omitempty"` // for a warehouse: OlderThanSeconds may be less than 7 days
}

// MaintenanceByHand is a request to plan a job or to begin it.
type MaintenanceByHand struct {
	// Object is a table. For a plan of orphans it may also be a warehouse. Such a plan names the
	// files outside of all tables and views, which no job deletes.
	Object Object `json:"object"`
	Kind   string `json:"kind"` // snapshots or orphans
	// Settings overrides the policies. If it is nil, a plan shows the effects of the policies, and
	// a run makes the table due now.
	Settings *MaintenanceSettingsByHand `json:"settings,omitempty"`
	Sample   int                        `json:"sample,omitempty"` // maximum number of files that a plan names
}

// MaintenanceBegun is the result of a MaintenanceByHand run.
type MaintenanceBegun struct {
	Object Object `json:"object"`
	Kind   string `json:"kind"`
	// Outcome is begun if a job began, done if no file has to be deleted, and nothing if no
	// snapshot expires. It is due if the server will apply the table's policies.
	Outcome   string `json:"outcome"`
	Job       string `json:"job,omitempty"` // if Outcome is begun or done
	Snapshots int    `json:"snapshots"`     // snapshots that expired
	Refs      int    `json:"refs"`
}

// The outcomes of MaintenanceBegun.
const (
	BegunBegun   = "begun"
	BegunDone    = "done"
	BegunNothing = "nothing"
	BegunDue     = "due"
)

// MaintenancePlan lists the effects that a job would have now.
type MaintenancePlan struct {
	Object  Object `json:"object"`
	Kind    string `json:"kind"`
	Held    string `json:"held,omitempty"`    // why nothing may be deleted
	Blocked string `json:"blocked,omitempty"` // why the job would stop until an operator intervenes
	// Snapshots has all snapshots of the table. Refs has the refs that the job would remove.
	Snapshots []MaintenancePlanSnapshot `json:"snapshots"`
	Refs      []string                  `json:"refs"`
	// Reach names how the job finds its files: "full", or "" if there are no files to find.
	// Manifests and ReadBytes count the manifests and bytes that the job reads for this.
	Reach     string            `json:"reach,omitempty"`
	Manifests int64             `json:"manifests"`
	ReadBytes int64             `json:"read-bytes"`
	Files     int64             `json:"files"`          // files to be deleted
	Bytes     int64             `json:"bytes"`          // size of the orphans
	More      bool              `json:"more,omitempty"` // for a warehouse: there are more files than Files
	Kept      []MaintenanceKept `json:"kept,omitempty"`
	LeftOut   []string          `json:"left-out,omitempty"` // folders of other warehouses within this one
	Sample    []string          `json:"sample"`             // locations of the first files
}

// MaintenancePlanSnapshot is a snapshot in a plan.
type MaintenancePlanSnapshot struct {
	ID      int64     `json:"snapshot-id"`
	Time    time.Time `json:"time,omitzero"` // time of an expired snapshot
	Expires bool      `json:"expires"`
	Why     string    `json:"why,omitempty"` // why it stays
}

// MaintenanceFilesPage is a page of the files that a job will delete.
type MaintenanceFilesPage struct {
	Files []string `json:"files"` // locations
	NextPage
}

// MaintenanceAdopted names the store that removed orphans in a warehouse until now. Other is empty
// if that was this store, or if there was no such store.
type MaintenanceAdopted struct {
	Warehouse string `json:"warehouse"`
	Other     string `json:"other,omitempty"`
}

// MaintenanceJobChange is a requested or finished change of a job.
type MaintenanceJobChange struct {
	Job    string `json:"job"`
	Change string `json:"change"` // cancel, retry, quarantine, pause or resume
	Reason string `json:"reason,omitempty"`
	// Confirm confirms that most files of the table are orphans. It is only for a retry.
	Confirm bool `json:"confirm,omitempty"`
}

// MaintenanceJobSpec has the details of a change of a job.
type MaintenanceJobSpec struct {
	Reason  string `json:"reason,omitempty"`  // of a quarantine or a pause
	Confirm bool   `json:"confirm,omitempty"` // of a retry
}

// PolicyPath returns the path of the policies for a type of job.
func PolicyPath(of string) string { return Path("maintenance", "policies", of) }

// PutMaintenancePolicy sets an object's policy for a type of job.
func (c *Client) PutMaintenancePolicy(ctx context.Context, object Object, of string, policy MaintenancePolicy) error {
	put := Request{Method: http.MethodPut, Path: PolicyPath(of), Query: object.Query(), Body: policy}
	return c.Do(ctx, put, new(MaintenancePolicy))
}

// MaintenanceStatus returns the state of the maintenance of an object.
func (c *Client) MaintenanceStatus(ctx context.Context, object Object) (status MaintenanceStatus, err error) {
	err = c.Do(ctx, Request{Method: http.MethodGet, Path: "/maintenance/status", Query: object.Query()}, &status)
	return status, err
}

// RunMaintenance begins a job on a table, or makes the table due for a check now.
func (c *Client) RunMaintenance(ctx context.Context, asked MaintenanceByHand) (begun MaintenanceBegun, err error) {
	err = c.Do(ctx, Request{Method: http.MethodPost, Path: "/maintenance/run", Body: asked}, &begun)
	return begun, err
}
