package gate

import (
	"slices"

	"moorage/access"
	"moorage/locks"
)

// Verb is the name of a verb, as used in change records, logs and the lock table.
type Verb string

// The verbs that change the catalog.
const (
	CreateWarehouse Verb = "create-warehouse"
	DropWarehouse   Verb = "drop-warehouse"
	// Only the management API has ChangeWarehouse and ValidateWarehouse.
	ChangeWarehouse   Verb = "change-warehouse"
	ValidateWarehouse Verb = "validate-warehouse"
	ClearTombstone    Verb = "clear-tombstone"
	CreateNamespace   Verb = "create-namespace"
	DropNamespace     Verb = "drop-namespace"
	UpdateProperties  Verb = "update-namespace-properties"
	CreateTable       Verb = "create-table"
	StageTable        Verb = "stage-table"
	CommitCreate      Verb = "commit-create"
	Register          Verb = "register-table"
	RegisterOver      Verb = "register-table-overwrite"
	DropTable         Verb = "drop-table"
	Unregister        Verb = "unregister-table"
	Rename            Verb = "rename-table"
	Commit            Verb = "commit-table"
	Transaction       Verb = "commit-transaction"
	CreateView        Verb = "create-view"
	RegisterView      Verb = "register-view"
	DropView          Verb = "drop-view"
	RenameView        Verb = "rename-view"
	Replace           Verb = "replace-view"
)

// The verbs that only read.
const (
	GetToken       Verb = "get-token"
	ListWarehouses Verb = "list-warehouses"
	LoadWarehouse  Verb = "load-warehouse"
	ShowWarehouse  Verb = "show-warehouse" // includes the storage; for the warehouse's administrators
	ListTombstones Verb = "list-tombstones"
	ListNamespaces Verb = "list-namespaces"
	LoadNamespace  Verb = "load-namespace"
	ListTables     Verb = "list-tables"
	LoadTable      Verb = "load-table"
	TableExists    Verb = "table-exists"
	ReportMetrics  Verb = "report-metrics"
	// LoadCredentials and Sign give access to the files of a table.
	LoadCredentials Verb = "load-credentials"
	Sign            Verb = "sign-request"
	// LoadStaged and SignStaged give access to the files of a staged table.
	LoadStaged Verb = "load-staged-credentials"
	SignStaged Verb = "sign-staged-request"
	ListViews  Verb = "list-views"
	LoadView   Verb = "load-view"
	ViewExists Verb = "view-exists"
)

// The verbs for operating a server.
const (
	Describe        Verb = "describe-management"
	Diagnose        Verb = "diagnose"
	ListChanges     Verb = "list-changes"
	Backup          Verb = "backup"
	RotateSecrets   Verb = "rotate-secrets"
	EndSessions     Verb = "end-sessions"
	RetryUnfinished Verb = "retry-unfinished"
	AbortUnfinished Verb = "abort-unfinished"
	TakeLease       Verb = "take-lease"
	RenewLeases     Verb = "renew-leases"
	ReleaseLease    Verb = "release-lease"
	ListLeases      Verb = "list-leases"
	ClaimWork       Verb = "claim-work"
	ReportWork      Verb = "report-work"
	LoadMetrics     Verb = "load-metrics" // GET /metrics
)

// The verbs of the server's own jobs.
const (
	Purge     Verb = "purge"
	EndWindow Verb = "end-undrop-window"
	Expire    Verb = "expire"
)

// Row holds the fixed properties of one verb.
type Row struct {
	Verb Verb
	On   access.Kind
	// Reads is true if the verb changes nothing.
	Reads bool
	// Locks are the levels of the subtrees that the verb locks for writing. It takes all locks in
	// one sorted call. A verb without Locks relies on the conditions of its Apply alone.
	Locks []locks.Level
	// InProcess is true if the verb locks only against operations of this node. A create rarely
	// conflicts with another node's create in the same shard, and hardly ever with a drop of its
	// namespace. A lock across nodes would cost every create more than such a conflict costs
	// (docs/reference/behaviour.md). The conditions of a create hold in any case.
	InProcess bool
	// Contended are the levels of the subtrees that a verb without Locks locks after several
	// conflicts.
	Contended []locks.Level
	// Patient is true if the verb removes a container and waits longer for its locks. It waits as
	// long as other operations may need to create objects in the container.
	Patient bool
	// Asks are the privilege checks of the verb. It is nil for a job of the server and for an Open
	// verb. OfUpdate returns the additional privileges that a commit requires.
	Asks []Ask
	// Open is true if every caller may use the verb, including an unauthenticated one.
	Open bool
	// AskedLater is true if Guard.Authorize admits the verb, and its privileges are checked later.
	AskedLater bool
	// Keyed is true if the verb takes an idempotency key.
	Keyed bool
	// Iceberg lists the operations of the Iceberg REST specification for this verb.
	Iceberg []string
	// Management lists the operations of the management API for this verb.
	Management []string
}

// Table returns the row of every verb.
func Table() []Row {
	all := table()
	for i := range all {
		all[i] = rows[all[i].Verb]
	}
	return all
}

// table returns the row of every verb, without its privilege checks (asks.go).
func table() []Row {
	shard := []locks.Level{locks.LevelShard}
	named := []locks.Level{locks.LevelShard, locks.LevelPointer}
	pointer := []locks.Level{locks.LevelPointer}
	return append(slices.Concat(administering(), maintaining(), browsing(), versioning(), undoing()), []Row{
		{Verb: CreateWarehouse, On: access.Warehouse, Locks: []locks.Level{locks.LevelWarehouse},
			Management: []string{"createWarehouse"}},
		{Verb: DropWarehouse, On: access.Warehouse, Locks: []locks.Level{locks.LevelWarehouse},
			Management: []string{"dropWarehouse"}},
		{Verb: ChangeWarehouse, On: access.Warehouse, Management: []string{"changeWarehouse"}},
		{Verb: ValidateWarehouse, On: access.Warehouse, Management: []string{"validateWarehouse"}},
		{Verb: ClearTombstone, On: access.Warehouse, Management: []string{"clearTombstone"}},
		// It locks the highest namespace that must be created.
		{Verb: CreateNamespace, On: access.Namespace, Keyed: true, Locks: []locks.Level{locks.LevelNamespace},
			Iceberg: []string{"createNamespace"}},
		{Verb: DropNamespace, On: access.Namespace, Keyed: true, Patient: true,
			Locks:   []locks.Level{locks.LevelNamespace},
			Iceberg: []string{"dropNamespace"}},
		{Verb: UpdateProperties, On: access.Namespace, Keyed: true, Iceberg: []string{"updateProperties"}},
		{Verb: CreateTable, On: access.Table, Keyed: true, Locks: shard, InProcess: true,
			Iceberg: []string{"createTable"}},
		{Verb: StageTable, On: access.Table, Keyed: true, Iceberg: []string{"createTable"}}, // stores nothing
		// It takes all locks at once and does not wait for them. With an idempotency key it also
		// takes the lock of its attempt.
		{Verb: Transaction, On: access.Table, Keyed: true, Locks: pointer, Iceberg: []string{"commitTransaction"}},
		// Commit also serves transactions of one table.
		{Verb: Commit, On: access.Table, Keyed: true, Contended: pointer,
			Iceberg: []string{"updateTable", "commitTransaction"}},
		{Verb: CommitCreate, On: access.Table, Keyed: true, Locks: shard, InProcess: true,
			Iceberg: []string{"updateTable", "commitTransaction"}},
		{Verb: Register, On: access.Table, Keyed: true, Locks: shard, InProcess: true,
			Iceberg: []string{"registerTable"}},
		{Verb: RegisterOver, On: access.Table, Keyed: true, Locks: named, Iceberg: []string{"registerTable"}},
		{Verb: DropTable, On: access.Table, Keyed: true, Locks: named, Iceberg: []string{"dropTable"}},
		{Verb: Unregister, On: access.Table, Keyed: true, Locks: named, Iceberg: []string{"unregisterTable"}},
		// It locks the shards of both names.
		{Verb: Rename, On: access.Table, Keyed: true, Locks: named, Iceberg: []string{"renameTable"}},
		{Verb: CreateView, On: access.View, Keyed: true, Locks: shard, InProcess: true,
			Iceberg: []string{"createView"}},
		{Verb: RegisterView, On: access.View, Keyed: true, Locks: shard, InProcess: true,
			Iceberg: []string{"registerView"}},
		{Verb: DropView, On: access.View, Keyed: true, Locks: named, Iceberg: []string{"dropView"}},
		{Verb: RenameView, On: access.View, Keyed: true, Locks: named, Iceberg: []string{"renameView"}},
		{Verb: Replace, On: access.View, Keyed: true, Contended: pointer, Iceberg: []string{"replaceView"}},

		{Verb: GetToken, On: access.Server, Reads: true, Open: true, Iceberg: []string{"getToken"}},
		{Verb: ListWarehouses, On: access.Server, Reads: true, Management: []string{"listWarehouses"}},
		{Verb: ShowWarehouse, On: access.Warehouse, Reads: true, Management: []string{"loadWarehouse"}},
		{Verb: ListTombstones, On: access.Warehouse, Reads: true, Management: []string{"listTombstones"}},
		{Verb: LoadWarehouse, On: access.Warehouse, Reads: true, Iceberg: []string{"getConfig"}},
		{Verb: ListNamespaces, On: access.Namespace, Reads: true, Iceberg: []string{"listNamespaces"}},
		{Verb: LoadNamespace, On: access.Namespace, Reads: true,
			Iceberg: []string{"loadNamespaceMetadata", "namespaceExists"}},
		{Verb: ListTables, On: access.Namespace, Reads: true, Iceberg: []string{"listTables"}},
		{Verb: LoadTable, On: access.Table, Reads: true, Iceberg: []string{"loadTable"}},
		{Verb: TableExists, On: access.Table, Reads: true, Iceberg: []string{"tableExists"}},
		{Verb: ReportMetrics, On: access.Table, Reads: true, Iceberg: []string{"reportMetrics"}},
		{Verb: LoadCredentials, On: access.Table, Reads: true, Iceberg: []string{"loadCredentials"}},
		{Verb: Sign, On: access.Table, Reads: true, Iceberg: []string{"signRequest"}},
		{Verb: LoadStaged, On: access.Table, Reads: true, Iceberg: []string{"loadCredentials"}},
		{Verb: SignStaged, On: access.Table, Reads: true, Iceberg: []string{"signRequest"}},
		{Verb: ListViews, On: access.Namespace, Reads: true, Iceberg: []string{"listViews"}},
		{Verb: LoadView, On: access.View, Reads: true, Iceberg: []string{"loadView"}},
		{Verb: ViewExists, On: access.View, Reads: true, Iceberg: []string{"viewExists"}},

		{Verb: Describe, On: access.Server, Reads: true, Management: []string{"openapi"}},
		{Verb: Diagnose, On: access.Server, Reads: true, Management: []string{"diagnose"}},
		// Package history decides about each event.
		{Verb: ListChanges, On: access.Server, Reads: true, Management: []string{"listChanges"}},
		{Verb: Backup, On: access.Server, Keyed: true, Management: []string{"backup"}},
		{Verb: RotateSecrets, On: access.Server, Keyed: true, Management: []string{"rotateSecrets"}},
		{Verb: EndSessions, On: access.Server, Keyed: true, Management: []string{"endSessions"}},
		{Verb: RetryUnfinished, On: access.Server, Keyed: true, Management: []string{"retryUnfinished"}},
		{Verb: AbortUnfinished, On: access.Server, Keyed: true, Management: []string{"abortUnfinished"}},
		// A caller renews and ends only its own leases.
		{Verb: TakeLease, On: access.Table, Keyed: true, Management: []string{"takeLease"}},
		{Verb: RenewLeases, On: access.Server, Keyed: true, Management: []string{"renewLeases"}},
		{Verb: ReleaseLease, On: access.Server, Keyed: true, Management: []string{"releaseLease", "releaseLeases"}},
		{Verb: ClaimWork, On: access.Server, Keyed: true, Management: []string{"claimWork"}},
		{Verb: ReportWork, On: access.Server, Keyed: true, Management: []string{"progressWork", "finishWork"}},
		{Verb: ListLeases, On: access.Server, Reads: true, Management: []string{"listLeases"}},
		{Verb: LoadMetrics, On: access.Server, Reads: true},

		{Verb: Purge, On: access.Table},
		{Verb: EndWindow, On: access.Table},
		{Verb: Expire, On: access.Table, Contended: pointer},
	}...)
}

// rows has the row of each verb. It never changes.
var rows = func() map[Verb]Row {
	byVerb := make(map[Verb]Row)
	questions := asks()
	for _, row := range table() {
		row.Asks = questions[row.Verb]
		byVerb[row.Verb] = row
	}
	return byVerb
}()

// Row returns the row of v. ok is false if there is no row.
func (v Verb) Row() (row Row, ok bool) {
	row, ok = rows[v]
	return row, ok
}

// OfIceberg returns the possible verbs of an operation of the Iceberg REST specification. A request
// that cannot be parsed counts as the first of these verbs.
func OfIceberg(operation string) []Verb {
	return verbsWith(func(row Row) []string { return row.Iceberg }, operation)
}

// OfManagement returns the possible verbs of an operation of the management API.
func OfManagement(operation string) []Verb {
	return verbsWith(func(row Row) []string { return row.Management }, operation)
}

func verbsWith(operations func(Row) []string, operation string) (found []Verb) {
	for _, row := range Table() {
		if slices.Contains(operations(row), operation) {
			found = append(found, row.Verb)
		}
	}
	return found
}
