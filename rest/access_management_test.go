package rest_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/audit"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	"moorage/check"
	"moorage/internal/web"
	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/leases"
	"moorage/maintenance/policy"
	"moorage/maintenance/purge"

	"moorage/management"
	"moorage/management/client"
	"moorage/recovery"
	"moorage/registry"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
)

// etl is a principal with a record and an API key, whose id is "abc".
const etl = "key:etl"

// idle is a fake of operators' work that does nothing. These tests are only about the gate before
// it.
type idle struct{}

func (idle) Unfinished(context.Context, string, int) ([]recovery.Unfinished, string, error) {
	return nil, "", nil
}

func (idle) Blocked(context.Context, string, int) ([]purge.Blocked, string, error) {
	return nil, "", nil
}

func (idle) ListWaiting(context.Context, string, int) ([]purge.Waiting, string, error) {
	return nil, "", nil
}

func (idle) Retry(context.Context, string) (recovery.Retried, error) { return recovery.Retried{}, nil }
func (idle) Abort(context.Context, string) (recovery.Aborted, error) { return recovery.Aborted{}, nil }

// mountManagement adds the management API of w to a server.
func mountManagement(on *web.Server, w *guardedWorld) {
	care := careOf(w.store, w.catalog)
	management.Mount(on, management.Config{
		Recovery: idle{}, Purges: idle{}, Gate: w.guard, History: w.catalog.History(),
		Check:  func(context.Context) (check.Report, error) { return check.Report{}, nil },
		Backup: func(context.Context, string) (client.Backup, error) { return client.Backup{}, nil },
		Leases: leases.New(registrytest.Ledger(w.store)), FindTable: w.catalog.Pointers().FindForLease,
		Work: leases.NewWork(leases.WorkConfig{
			Ledger: registrytest.Ledger(w.store), Leases: leases.New(registrytest.Ledger(w.store)),
			Tables: w.catalog.As(moorage.System("expire")).Tables(), Find: w.catalog.Pointers().FindForLease,
		}),
		Versions: func(caller moorage.Caller, key *catalog.Key, lease *catalog.Lease) management.Versions {
			return w.catalog.For(caller, key, lease).(*catalog.Catalog)
		},
		Scopes:   func(caller moorage.Caller) policy.Scopes { return w.catalog.As(caller).Scopes() },
		Policies: care.policies, Steering: care, Jobs: idleJobs{care.Jobs},
		Access:     func(caller moorage.Caller) management.Access { return w.catalog.As(caller).Grants() },
		Warehouses: func(caller moorage.Caller) management.Warehouses { return w.catalog.As(caller).Warehouses() },
		Browse:     func(caller moorage.Caller) management.Browse { return w.catalog.As(caller).Browse() },
		Labels: func(caller moorage.Caller, key *catalog.Key) management.Labels {
			return w.catalog.As(caller).Keyed(key).Labels()
		},
		Dropped: func(caller moorage.Caller, key *catalog.Key) management.Dropped {
			return w.catalog.As(caller).Keyed(key).Dropped()
		},
		Protections: func(caller moorage.Caller, key *catalog.Key) management.Protections {
			return w.catalog.As(caller).Keyed(key).Protections()
		},
		Mirrors: func(caller moorage.Caller, key *catalog.Key) management.Mirrors {
			return w.catalog.As(caller).Keyed(key).Mirrors()
		},
		RotateSecrets: func(context.Context, moorage.Caller, client.SecretsRotation) (client.SecretsRotated, error) {
			return client.SecretsRotated{}, nil
		},
		EndSessions: func(context.Context) error { return nil },
		DrawKey: func(id string) (management.Drawn, error) {
			return management.Drawn{ID: cmp.Or(id, "drawn"), SHA256: sha256.Sum256([]byte("text")), Text: "text"}, nil
		},
		Denials:       func(string) []audit.Line { return make([]audit.Line, 1) },
		Activity:      w.catalog.Activity(),
		Authenticates: true,
	})
}

// care is the maintenance of a guardedWorld, without workers.
type care struct {
	*due.Control

	policies *policy.Policies
}

func careOf(store registry.Store, made *catalog.Catalog) care {
	records := registrytest.Ledger(store)
	tables := made.As(moorage.System("expire")).Tables()
	kept := policy.New(records, nil)
	carried, err := jobs.New(jobs.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: store}), Tables: tables})
	if err != nil {
		panic(err)
	}
	return care{&due.Control{Ledger: records, Policies: kept, Jobs: carried, Tables: tables}, kept}
}

// idleJobs finds every job, whatever the id.
type idleJobs struct{ *jobs.Jobs }

func (idleJobs) Cancel(context.Context, registry.ID, string) error             { return nil }
func (idleJobs) Retry(context.Context, registry.ID, jobs.Retrying) error       { return nil }
func (idleJobs) Quarantine(context.Context, registry.ID, string, string) error { return nil }
func (idleJobs) Pause(context.Context, registry.ID, string, string) error      { return nil }
func (idleJobs) Resume(context.Context, registry.ID) error                     { return nil }
func (idleJobs) Adopt(context.Context, string) (string, error)                 { return "", nil }
func (idleJobs) Files(context.Context, registry.ID, int, int) ([]jobs.Listed, error) {
	return nil, nil
}

// newManagedLake makes a lake with access control, with the principal etl and the role "staff".
func newManagedLake(t testing.TB, without string) *lake {
	t.Helper()
	l := newLake(t, without)
	l.setPolicy(grantsAt(nil, root, access.Admin))
	admin := l.catalog.As(callerNamed(root)).Grants()
	_, err := admin.PutPrincipal(t.Context(), etl, grants.PrincipalSpec{})
	if err == nil {
		_, err = admin.CreateKey(t.Context(), etl, grants.KeySpec{ID: "abc", SHA256: [32]byte{1}, Ends: time.Now().Add(time.Hour)})
	}
	if err == nil {
		_, err = admin.PutRole(t.Context(), grants.Role{Name: "staff", Members: []string{etl}}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, ident := range []moorage.Identifier{
		{Warehouse: "w"}, {Warehouse: "w", Namespace: []string{"a"}}, {Warehouse: "w", Namespace: []string{"a"}, Name: "t"},
	} {
		err := careOf(l.store, l.catalog).policies.Put(t.Context(), l.catalog.As(moorage.System("test")).Scopes(), ident,
			policy.Asked{Type: policy.SnapshotManagement, Status: policy.Enabled, By: "test"}, nil)
		if err != nil && without == "" {
			t.Fatal(err)
		}
	}
	l.epoch += 100 // the calls above have raised the epoch
	return l
}

// managementCell is one request to the management API, and its subjects.
type managementCell struct {
	operation          string
	method, path, body string
	object             string            // name of the object of the request; empty: the server
	about              string            // the principal that the request is about
	grants             access.Privileges // privileges that the request grants
	spares             gate.When         // a condition that this request does not meet
	meets              gate.When         // a condition that only this request meets
	dropped, container string            // names of the dropped object of the request, and of its namespace
	answered           int               // status for callers with the privileges; 0: 200
}

func (c managementCell) verb() gate.Verb { return gate.OfManagement(c.operation)[0] }

// name returns the name of the cell in messages.
func (c managementCell) name() string {
	return c.operation + " " + c.method + " " + c.path + " " + c.body
}

// asked returns the privileges that the cell requires of caller on a subject: the server, or the
// cell's object. They come from the table of verbs. asks is false if the cell requires none there.
func (c managementCell) asked(caller string, of gate.Subject) (asked access.Privileges, asks bool) {
	row, _ := c.verb().Row()
	for _, ask := range row.Asks {
		if ask.When == gate.Instead {
			continue
		}
		switch { // these conditions are met by no cell
		case ask.When == gate.IfMoving && c.meets != gate.IfMoving, ask.When == gate.IfReplacing, ask.When == gate.IfLocated && c.container != "":
			continue
		}
		isOther := ask.When != gate.IfOther || c.about != "" && c.about != caller
		if spared := ask.When != gate.Always && ask.When == c.spares; spared || ask.Of != of || !isOther || of == gate.OfObject && c.object == "" {
			continue
		}
		if asked, asks = asked|ask.For, true; ask.When == gate.ForGrants {
			asked |= c.grants
		}
	}
	return asked, asks
}

// decide returns the expected decision about who and the object at path.
func (c managementCell) decide(who *access.Who, path []access.Object, asked access.Privileges) access.Decision {
	switch c.verb() {
	case gate.ListGrants, gate.ChangeGrants, gate.SetManaged, gate.ShowWarehouse, gate.ChangeWarehouse,
		gate.ValidateWarehouse:
		return who.DecideGrant(path, asked&^access.Manage)
	case gate.SetOwner:
		return who.DecideTransfer(path)
	case gate.Undrop: // it requires drop before it knows whether the object moves
		if d := who.Decide(path, asked&^access.Manage); d.Outcome != access.Allow {
			return d
		}
	}
	row, _ := c.verb().Row()
	if other := row.InsteadOf(gate.OfObject); other != access.See && who.Decide(path, other).Outcome == access.Allow {
		return access.Decision{Outcome: access.Allow}
	}
	return who.Decide(path, asked)
}

// managementCells returns a request for each operation of the management API, and for each kind of
// object if that makes a difference.
func managementCells() []managementCell {
	const (
		person = "/principals/" + etl
		lease  = "/leases/000000000000000000000000000000a1-1"
		id     = "000000000000000000000000000000a1"
	)
	cells := []managementCell{
		{operation: "openapi", method: "GET", path: "/openapi.yaml"},
		{operation: "diagnose", method: "GET", path: "/doctor?deep=true"},
		{operation: "backup", method: "POST", path: "/backup", body: `{"name":"b"}`},
		{operation: "retryUnfinished", method: "POST", path: "/doctor/" + id + "/retry"},
		{operation: "abortUnfinished", method: "POST", path: "/doctor/" + id + "/abort"},
		{operation: "takeLease", method: "POST", path: "/leases", body: `{"warehouse":"w","namespace":["a"],"name":"t","holder":"h","ttl-seconds":60}`, object: "w/a/t"},
		{operation: "loadMetadata", method: "GET", path: "/metadata?warehouse=w&namespace=a&table=t", object: "w/a/t"},
		{operation: "diffVersions", method: "GET", path: "/diff?warehouse=w&namespace=a&table=t&from=now", object: "w/a/t"},
		{operation: "loadMetadata", method: "GET", path: "/metadata?warehouse=w&namespace=a&view=v", object: "w/a/v"},
		{operation: "diffVersions", method: "GET", path: "/diff?warehouse=w&namespace=a&view=v&from=now", object: "w/a/v"},
		{operation: "rollbackTable", method: "POST", path: "/rollback?warehouse=w&namespace=a&view=v", body: `{"to":"now","dry-run":true}`, object: "w/a/v"},
		{operation: "readRows", method: "GET", path: "/rows?warehouse=w&namespace=a&table=t", object: "w/a/t"},
		{operation: "rollbackTable", method: "POST", path: "/rollback?warehouse=w&namespace=a&table=t", body: `{"to":"now","dry-run":true}`, object: "w/a/t"},
		{operation: "renewLeases", method: "PUT", path: "/leases", body: `{"leases":[]}`},
		{operation: "listLeases", method: "GET", path: "/leases"},
		{operation: "releaseLeases", method: "DELETE", path: "/leases?holder=h"},
		{operation: "releaseLease", method: "DELETE", path: lease},
		{operation: "claimWork", method: "POST", path: "/work", body: `{"kinds":["compaction"],"holder":"h"}`, answered: 204},
		{operation: "progressWork", method: "POST", path: "/work/000000000000000000000000000000a1/progress", answered: 404},
		{operation: "finishWork", method: "POST", path: "/work/000000000000000000000000000000a1/finish", body: `{"outcome":"done"}`, answered: 404},
		{operation: "listMaintenanceJobs", method: "GET", path: "/maintenance/jobs"},
		{operation: "listMaintenancePolicies", method: "GET", path: "/maintenance/policies"},
		{operation: "cancelMaintenanceJob", method: "POST", path: "/maintenance/jobs/" + id + "/cancel"},
		{operation: "retryMaintenanceJob", method: "POST", path: "/maintenance/jobs/" + id + "/retry"},
		{operation: "quarantineMaintenanceJob", method: "POST", path: "/maintenance/jobs/" + id + "/quarantine", body: `{"reason":"x"}`},
		{operation: "pauseMaintenanceJob", method: "POST", path: "/maintenance/jobs/" + id + "/pause", body: `{"reason":"x"}`},
		{operation: "resumeMaintenanceJob", method: "POST", path: "/maintenance/jobs/" + id + "/resume"},
		{operation: "listMaintenanceJobFiles", method: "GET", path: "/maintenance/jobs/" + id + "/files"},
		{operation: "adoptOrphans", method: "POST", path: "/maintenance/adopt", body: `{"warehouse":"w"}`},
		{operation: "listPrincipals", method: "GET", path: "/principals"},
		{operation: "loadPrincipal", method: "GET", path: person, about: etl},
		{operation: "putPrincipal", method: "PUT", path: person, body: `{"description":"x"}`},
		{operation: "deletePrincipal", method: "DELETE", path: person},
		{operation: "createKey", method: "POST", path: person + "/keys", about: etl},
		{operation: "rotateKey", method: "POST", path: person + "/keys/abc/rotate", about: etl},
		{operation: "withdrawKey", method: "DELETE", path: person + "/keys/abc", about: etl},
		{operation: "listRoles", method: "GET", path: "/roles"},
		{operation: "loadRole", method: "GET", path: "/roles/staff"},
		{operation: "putRole", method: "PUT", path: "/roles/staff", body: `{"members":[]}`},
		{operation: "deleteRole", method: "DELETE", path: "/roles/staff"},
		{operation: "changeMembers", method: "PATCH", path: "/roles/staff/members", body: `{"add":["corp:bob"]}`},
		{operation: "listGrants", method: "GET", path: "/grants?grantee=" + etl, about: etl},
		{operation: "loadAccess", method: "GET", path: "/access"},
		{operation: "enableAccess", method: "POST", path: "/access/enable"},
		{operation: "explainAccess", method: "POST", path: "/access/explain", body: `{"operation":"load-table","caller":{"name":"` + etl + `"},"object":"server"}`, about: etl},
		{operation: "checkAccess", method: "POST", path: "/access/check", body: `{"questions":[{"privileges":["admin"],"caller":{"name":"` + etl + `"},"object":"server"}]}`, about: etl},
		{operation: "exportAccess", method: "GET", path: "/access/export"},
		{operation: "loadDecisions", method: "GET", path: "/access/decisions/ABCDEFGHIJ-17"},
		{operation: "endSessions", method: "POST", path: "/sessions/end"},
		{operation: "listWarehouses", method: "GET", path: "/warehouses"},
		{operation: "createWarehouse", method: "POST", path: "/warehouses", body: `{"name":"new","location":"file:///lake/new"}`},
		{operation: "loadWarehouse", method: "GET", path: "/warehouses/w", object: "w"},
		{operation: "changeWarehouse", method: "PATCH", path: "/warehouses/w", body: `{"properties":{"k":"v"}}`, object: "w", spares: gate.IfReached},
		{operation: "changeWarehouse", method: "PATCH", path: "/warehouses/w", body: `{"storage":{"k":null}}`, object: "w"},
		{operation: "changeWarehouse", method: "PATCH", path: "/warehouses/w", body: `{"delegation":[]}`, object: "w"},
		{operation: "validateWarehouse", method: "POST", path: "/warehouses/w/validate", object: "w"},
		{operation: "listTombstones", method: "GET", path: "/warehouses/w/tombstones", object: "w"},
		{operation: "clearTombstone", method: "POST", path: "/warehouses/w/tombstones/clear", body: `{"location":"file:///lake/none"}`, object: "w", answered: 404},
		{operation: "dropWarehouse", method: "DELETE", path: "/warehouses/w", answered: 409}, // it has namespaces
		{operation: "rotateSecrets", method: "POST", path: "/secrets/rotate"},
		{operation: "listChanges", method: "GET", path: "/changes"},
		{operation: "loadHistory", method: "GET", path: "/history?warehouse=w&namespace=a&table=gone", object: "w/a/gone"},
		{operation: "searchObjects", method: "GET", path: "/search?q=a"},
		{operation: "loadStats", method: "GET", path: "/warehouses/w/stats", object: "w"},
		{operation: "listManifests", method: "GET", path: "/manifests?warehouse=w&namespace=a&table=t", object: "w/a/t"},
		{operation: "loadHealth", method: "GET", path: "/health?warehouse=w&namespace=a&table=t&deep=true", object: "w/a/t"},
		{operation: "loadTop", method: "GET", path: "/top"},
		{operation: "loadCluster", method: "GET", path: "/cluster"},
		{operation: "listDenials", method: "GET", path: "/denials"},
		{operation: "loadObject", method: "GET", path: "/object?warehouse=w", object: "w"},
		{operation: "loadObject", method: "GET", path: "/object?warehouse=w&path=a", object: "w/a"},
		{operation: "loadObject", method: "GET", path: "/object?warehouse=w&path=a%1Ft", object: "w/a/t"},
		{operation: "loadObject", method: "GET", path: "/object?warehouse=w&path=a%1Fv", object: "w/a/v"},
		{operation: "listObjects", method: "GET", path: "/objects?warehouse=w&recursive=true", object: "w"},
		{operation: "listObjects", method: "GET", path: "/objects?warehouse=w&namespace=a", object: "w/a"},
		{operation: "listDropped", method: "GET", path: "/dropped?warehouse=w", object: "w"},
		{operation: "undrop", method: "POST", path: "/undrop", body: `{"warehouse":"w","namespace":["a"],"name":"gone"}`, dropped: "w/a/gone", container: "w/a"},
		{operation: "undrop", method: "POST", path: "/undrop", body: `{"id":"{gone}"}`, dropped: "w/a/gone", container: "w/a"},
		{operation: "undrop", method: "POST", path: "/undrop", body: `{"id":"{gone}","as":{"namespace":["c"],"name":"back"}}`, dropped: "w/a/gone", container: "w/c", meets: gate.IfMoving},
		{operation: "purgeDropped", method: "POST", path: "/dropped/{gone}/purge", dropped: "w/a/gone"},
		{operation: "forgetDropped", method: "POST", path: "/dropped/{gone}/forget", dropped: "w/a/gone"},
	}
	const named = "warehouse=w&namespace=a&table="
	cells = append(cells,
		managementCell{operation: "putMirror", method: "PUT", path: "/mirror?" + named + "fresh", body: `{"source":"https://old","metadata-location":"{new}"}`, container: "w/a"},
		managementCell{operation: "checkRegister", method: "POST", path: "/mirror/check?" + named + "fresh", body: `{"metadata-location":"{new}"}`, container: "w/a"},
		managementCell{operation: "listMetadataFiles", method: "GET", path: "/metadata-files?warehouse=w&location={folder}", object: "w"},
		managementCell{operation: "loadMirror", method: "GET", path: "/mirror?" + named + "t", object: "w/a/t"},
		managementCell{operation: "loadMirror", method: "GET", path: "/mirror?warehouse=w&namespace=a&view=v", object: "w/a/v"},
		managementCell{operation: "endMirror", method: "POST", path: "/mirror/end?" + named + "t", body: `{"metadata-location":"x"}`, object: "w/a/t"})
	for name, object := range map[string][2]string{
		"w":     {`{"warehouse":"w"}`, "warehouse=w"},
		"w/a":   {`{"warehouse":"w","namespace":["a"]}`, "warehouse=w&namespace=a"},
		"w/a/t": {`{"warehouse":"w","namespace":["a"],"table":"t"}`, "warehouse=w&namespace=a&table=t"},
		"w/a/v": {`{"warehouse":"w","namespace":["a"],"view":"v"}`, "warehouse=w&namespace=a&view=v"},
	} {
		on := func(operation, method, path, body string, grants access.Privileges) managementCell {
			return managementCell{operation: operation, method: method, path: path, body: body, object: name, grants: grants}
		}
		change := func(change string) string {
			return fmt.Sprintf(`{"changes":[{"change":%q,"object":%s,"grantee":"staff","privileges":["describe"]}]}`, change, object[0])
		}
		cells = append(cells,
			on("listRefusals", "GET", "/refusals?"+object[1], "", 0),
			on("listGrants", "GET", "/grants?"+object[1], "", 0),
			on("changeGrants", "POST", "/grants", change("grant"), access.Describe),
			on("changeGrants", "POST", "/grants", change("revoke"), access.Describe),
			on("setOwner", "PUT", "/owner", `{"owner":"corp:bob","object":`+object[0]+`}`, 0),
			on("explainAccess", "POST", "/access/explain", `{"privileges":["describe"],"object":`+object[0]+`}`, 0),
			on("loadProtection", "GET", "/protection?"+object[1], "", 0),
			on("putProtection", "PUT", "/protection?"+object[1], `{"protected":true}`, 0))
		if name == "w/a/t" || name == "w/a/v" {
			cells = append(cells,
				on("loadLabels", "GET", "/labels?"+object[1], "", 0),
				on("putLabels", "PUT", "/labels?"+object[1], `{"object-labels":{"team":"x"}}`, 0),
				on("deleteLabels", "DELETE", "/labels?"+object[1], "", 0))
		}
		if name != "w/a/v" {
			cells = append(cells, maintenanceCells(name, object)...)
		}
		if name != "w" {
			cells = append(cells, on("loadHistory", "GET", "/history?"+object[1], "", 0))
		}
		if name == "w" || name == "w/a" {
			cells = append(cells, on("setManaged", "PUT", "/managed", `{"managed":true,"object":`+object[0]+`}`, 0))
		}
	}
	slices.SortStableFunc(cells, func(a, b managementCell) int { return len(a.object) - len(b.object) })
	return cells
}

// maintenanceCells returns the requests about the maintenance of an object.
func maintenanceCells(name string, object [2]string) []managementCell {
	const ofType = "/maintenance/policies/icebergSnapshotManagement?"
	on := func(operation, method, path, body string) managementCell {
		return managementCell{operation: operation, method: method, path: path, body: body, object: name}
	}
	told := `{"reason":"x","object":` + object[0] + `}`
	cells := []managementCell{
		on("loadMaintenancePolicy", "GET", ofType+object[1], ""),
		on("putMaintenancePolicy", "PUT", ofType+object[1], `{"status":"disabled"}`),
		on("deleteMaintenancePolicy", "DELETE", ofType+object[1], ""),
		on("previewMaintenancePolicy", "POST", strings.Replace(ofType, "?", "/preview?", 1)+object[1], `{"status":"enabled"}`),
		on("loadMaintenance", "GET", "/maintenance/status?"+object[1], ""),
		on("pauseMaintenance", "POST", "/maintenance/pause", told),
		on("resumeMaintenance", "POST", "/maintenance/resume", told),
		on("rescanMaintenance", "POST", "/maintenance/rescan", told),
	}
	if name == "w/a/t" {
		run := `{"kind":"snapshots","object":` + object[0] + `}`
		cells = append(cells, on("runMaintenance", "POST", "/maintenance/run", run),
			on("planMaintenance", "POST", "/maintenance/plan", run))
	}
	if name == "w" {
		cells = append(cells, on("planMaintenance", "POST", "/maintenance/plan", `{"kind":"orphans","object":`+object[0]+`}`))
	}
	return cells
}

// send sends the request of a cell.
func (l *lake) send(caller string, c managementCell) *httptest.ResponseRecorder {
	named := func(text string) string {
		text = strings.NewReplacer("{new}", l.newTable, "{folder}", url.QueryEscape(path.Dir(path.Dir(l.newTable)))).Replace(text)
		if !strings.Contains(text, "{gone}") {
			return text
		}
		return strings.ReplaceAll(text, "{gone}", l.goneID().String())
	}
	return l.do(caller, c.method, "/management/v1"+named(c.path), named(c.body))
}

// goneID returns the id of the dropped table. If there is none, it returns an id that no object
// has.
func (l *lake) goneID() (id registry.ID) {
	l.t.Helper()
	id = registry.ID{15: 1}
	err := registrytest.Ledger(l.store).Scan(l.t.Context(), registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
		pointer, err := registry.Decode[registry.Pointer](record)
		if record.State.IsDropped() {
			id = pointer.ID
		}
		return true, err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return id
}

// The management API answers every caller as the table of verbs says, like the matrix of the
// specification. A caller that is not authenticated gets 401.
func TestManagementMatrix(t *testing.T) {
	t.Parallel()
	drawn := scale.Sample(t)
	absent := make(map[string]*lake)
	everybody := slices.DeleteFunc(principals(), func(p principal) bool {
		return strings.HasSuffix(p.name, " and describe") && !strings.HasPrefix(p.name, "manage")
	})
	everybody = append(everybody, principal{name: "the record of the principal", caller: etl})
	for _, p := range everybody {
		l := newManagedLake(t, "")
		for _, c := range managementCells() {
			if !drawn() {
				continue
			}
			objects := l.objects()
			grants := []access.Grants(nil)
			if p.grants != nil {
				grants = p.grants(objects)
			}
			l.setPolicy(grants...)
			if answer := l.send("anonymous", c); answer.Code != http.StatusUnauthorized {
				t.Errorf("%s by nobody is answered %d %s", c.name(), answer.Code, answer.Body)
			}
			answer := l.send(p.caller, c)
			l.checkManaged(t, absent, p, c, grants, objects, answer)
			if answer.Code < 300 && c.method != "GET" {
				l = newManagedLake(t, "")
			}
		}
	}
}

// ids matches the id of an object in a message.
var ids = regexp.MustCompile(`id [0-9a-f]{32}`)

// withoutID returns text without the ids of objects.
func withoutID(text string) string { return ids.ReplaceAllString(text, "id x") }

// checkManaged compares an answer with the decision that the table of verbs requires.
func (l *lake) checkManaged(t *testing.T, absent map[string]*lake, p principal, c managementCell, grants []access.Grants,
	objects map[string][]access.Object, answer *httptest.ResponseRecorder) {
	t.Helper()
	objects = shownTo(p.caller, objects)
	who := access.New(1, access.Records{Grants: grants}).Who(access.Caller{Name: p.caller})
	for _, of := range []gate.Subject{gate.OfServer, gate.OfObject, gate.OfDropped, gate.OfContainer} {
		name := map[gate.Subject]string{
			gate.OfObject: c.object, gate.OfDropped: c.dropped, gate.OfContainer: c.container,
		}[of]
		asked, asks := c.asked(p.caller, of)
		if !asks || of != gate.OfServer && name == "" {
			continue
		}
		path := objects[name]
		switch d := c.decide(who, path, asked); d.Outcome {
		case access.Forbid:
			if !isRefusal(answer, c.method, d.Missing) {
				t.Errorf("%s by one who has %s is answered\n%d %s, want 403 Not allowed: %s", c.name(), p.name, answer.Code, answer.Body, d.Missing)
			}
			return
		case access.Hidden:
			without := nameOf(objects, path[d.HiddenAt])
			if absent[without] == nil {
				absent[without] = newManagedLake(t, without)
				absent[without].setPolicy(grantsAt(nil, root, access.Admin|access.Audit))
			}
			if want := absent[without].send(root, c); answer.Code != 404 || want.Code != 404 || withoutID(withoutRequest(answer)) != withoutID(withoutRequest(want)) {
				t.Errorf("%s by one who has %s is answered\n%d %s, want that of nothing:\n%d %s", c.name(), p.name, answer.Code, answer.Body, want.Code, want.Body)
			}
			return
		}
	}
	if want := cmp.Or(c.answered, http.StatusOK); answer.Code != want {
		t.Errorf("%s by one who has %s is answered\n%d %s, want %d", c.name(), p.name, answer.Code, answer.Body, want)
	}
}

// withoutRequest returns the body of a failure without the id of its request.
func withoutRequest(answer *httptest.ResponseRecorder) string {
	return requestID.ReplaceAllString(answer.Body.String(), "")
}

var requestID = regexp.MustCompile(`"request-id":"[^"]+"`)

// Each verb of the management API is called, and requires exactly the privileges in the table of
// verbs.
func TestManagementAsksWhatTheTableSays(t *testing.T) {
	t.Parallel()
	called := make(map[string]bool)
	all := access.Privileges(0)
	for _, each := range access.Every() {
		all |= each
	}
	fresh := func() (*lake, map[string][]access.Object) {
		l := newManagedLake(t, "")
		objects := l.objects()
		policy := []access.Grants{grantsAt(nil, ann, all&access.Grantable(access.Server))}
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			policy = append(policy, grantsAt(objects[name], ann, all&access.Grantable(objects[name][0].Kind)))
		}
		l.setPolicy(policy...)
		return l, objects
	}
	l, objects := fresh()
	for _, c := range managementCells() {
		called[c.operation] = true
		l.decided = nil
		answer := l.send(ann, c)
		got := make(map[string]access.Privileges)
		for _, d := range l.decided {
			name := ""
			if len(d.Object.Path) > 0 {
				name = nameOf(objects, d.Object.Path[0])
			}
			got[name] |= d.Asked
		}
		want := make(map[string]access.Privileges)
		for of, name := range map[gate.Subject]string{
			gate.OfServer: "", gate.OfObject: c.object, gate.OfDropped: c.dropped, gate.OfContainer: c.container,
		} {
			if asked, asks := c.asked(ann, of); asks && (name != "" || of == gate.OfServer) {
				want[name] |= asked
			}
		}
		for name := range want {
			if _, asked := got[name]; !asked || got[name].Implied() != want[name].Implied() {
				t.Errorf("%s asks for %q on %q, the table says %q", c.name(), got[name], name, want[name])
			}
		}
		for name, privileges := range got {
			if _, known := want[name]; !known && privileges != access.See {
				t.Errorf("%s asks for %q on %q, which the table does not know", c.name(), privileges, name)
			}
		}
		if answer.Code < 300 && c.method != "GET" {
			l, objects = fresh()
		}
	}
	for _, row := range gate.Table() {
		for _, operation := range row.Management {
			if !called[operation] {
				t.Errorf("nothing calls %s", operation)
			}
		}
	}
}

// Maintenance of an object may be changed by callers with maintain or manage, and on the server by
// callers with operate or manage. No other privilege is enough, and only a policy can require
// manage.
func TestWhoSaysWhatIsMaintained(t *testing.T) {
	t.Parallel()
	put := func(query string) managementCell {
		return managementCell{method: "PUT", path: "/maintenance/policies/icebergSnapshotManagement?" + query, body: `{"status":"disabled"}`}
	}
	pause := managementCell{method: "POST", path: "/maintenance/pause", body: `{"reason":"x","object":{"warehouse":"w"}}`}
	for _, tt := range []struct {
		cell managementCell
		on   string // the object of the grant; empty: the server
		let  access.Privileges
	}{
		{put("warehouse=w"), "w", access.Maintain | access.Manage},
		{put("warehouse=w&namespace=a"), "w", access.Maintain | access.Manage},
		{put("warehouse=w&namespace=a&table=t"), "w/a", access.Maintain | access.Manage},
		{put("warehouse=w&namespace=a&table=t"), "", access.Manage},
		{put("object=server"), "", access.Operate | access.Manage},
		{pause, "w", access.Maintain},
	} {
		for _, each := range access.Every() {
			l := newManagedLake(t, "")
			path := l.objects()[tt.on]
			kind := access.Server
			if len(path) > 0 {
				kind = path[0].Kind
			}
			if !access.Grantable(kind).Has(each) {
				continue
			}
			l.setPolicy(grantsAt(path, ann, each))
			if answer := l.send(ann, tt.cell); (answer.Code == http.StatusOK) != tt.let.Has(each) {
				t.Errorf("%s by one who has %s on %q is answered %d %s", tt.cell.name(), each, tt.on, answer.Code, answer.Body)
			}
		}
	}
}

// An undrop into a namespace that was created again, or that the undrop itself creates, requires
// manage on the object. So does an undrop into a namespace with another name.
func TestUndropIntoANamespaceMadeAgain(t *testing.T) {
	t.Parallel()
	for _, makes := range []bool{false, true} {
		for _, privileges := range []access.Privileges{access.Drop, access.Drop | access.Manage} {
			l := newLake(t, "")
			l.must(maker, "POST", "/v1/w/namespaces/e/tables", `{"name":"back","schema":`+schemaJSON+`}`)
			l.must(maker, "DELETE", "/v1/w/namespaces/e/tables/back", "")
			l.must(root, "DELETE", "/v1/w/namespaces/e", "")
			if !makes {
				l.must(root, "POST", "/v1/w/namespaces", `{"namespace":["e"]}`)
			}
			objects := l.objects()
			dropped := append(objects["/back"][:1:1], objects["w"]...) // its namespace is gone
			l.setPolicy(grantsAt(dropped, ann, privileges), grantsAt(objects["w"], ann, access.Create))
			body := fmt.Sprintf(`{"warehouse":"w","namespace":["e"],"name":"back","make-namespace":%t}`, makes)
			answer := l.do(ann, "POST", "/management/v1/undrop", body)
			switch isRefused := isRefusal(answer, "POST", access.Manage); {
			case privileges.Has(access.Manage) && answer.Code != http.StatusOK, !privileges.Has(access.Manage) && !isRefused:
				t.Errorf("an undrop that makes the namespace (%t), by one who has %s, is answered %d %s", makes, privileges, answer.Code, answer.Body)
			}
		}
	}
}
