package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/rest"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/scale"
)

// lake is a guarded world with these objects. One of them may be left out:
//
//	w/a    t, gone (dropped) and the view v of maker; u and the view v2 of other; the rest of root
//	w/c    nothing
//	w/e    nothing
//	d/a    t of maker; engines get credentials and signatures for its files
//
// The warehouse also contains two metadata files that are in no record.
type lake struct {
	*guardedWorld
	goneFile, newTable, newView string // metadata locations
}

// newLake makes a lake, but leaves out the object called without, and everything in it.
func newLake(t testing.TB, without string) *lake {
	t.Helper()
	files := memorystorage.New()
	l := &lake{guardedWorld: newGuardedWorld(t, files)}
	l.newTable, l.newView = strangers(t, files)
	l.makeDelegating(without)
	if without == "w" {
		return l
	}
	l.warehouse("w")
	for _, ns := range []string{"a", "c", "e"} {
		if without != "w/"+ns {
			l.must(root, "POST", "/v1/w/namespaces", fmt.Sprintf(`{"namespace":[%q],"properties":{"secret":"x"}}`, ns))
		}
	}
	if without == "w/a" {
		return l
	}
	for name, by := range map[string]string{"t": maker, "u": other, "gone": maker} {
		if without != "w/a/"+name {
			l.must(by, "POST", "/v1/w/namespaces/a/tables", `{"name":"`+name+`","schema":`+schemaJSON+`}`)
		}
	}
	if without != "w/a/gone" {
		l.goneFile = metadataLocationOf(t, l.must(maker, "GET", "/v1/w/namespaces/a/tables/gone", ""))
		l.must(maker, "DELETE", "/v1/w/namespaces/a/tables/gone", "")
	}
	for name, by := range map[string]string{"v": maker, "v2": other} {
		if without != "w/a/"+name {
			l.must(by, "POST", "/v1/w/namespaces/a/views", viewJSON(name))
		}
	}
	return l
}

// makeDelegating makes the warehouse d and its contents.
func (l *lake) makeDelegating(without string) {
	l.t.Helper()
	if without == "d" {
		return
	}
	l.warehouse("d", vending.Delegations()...)
	if without == "d/a" {
		return
	}
	l.must(root, "POST", "/v1/d/namespaces", `{"namespace":["a"]}`)
	if without != "d/a/t" {
		l.must(maker, "POST", "/v1/d/namespaces/a/tables", `{"name":"t","schema":`+schemaJSON+`}`)
	}
}

// strangers returns the metadata locations of a table and a view that another catalog made in the
// folder of the warehouse w.
func strangers(t testing.TB, files *memorystorage.Store) (table, view string) {
	t.Helper()
	elsewhere := newGuardedWorld(t, files)
	elsewhere.warehouse("w")
	elsewhere.must(root, "POST", "/v1/w/namespaces", `{"namespace":["elsewhere"]}`)
	elsewhere.must(root, "POST", "/v1/w/namespaces/elsewhere/tables", `{"name":"t","schema":`+schemaJSON+`}`)
	elsewhere.must(root, "POST", "/v1/w/namespaces/elsewhere/views", viewJSON("v"))
	return metadataLocationOf(t, elsewhere.must(root, "GET", "/v1/w/namespaces/elsewhere/tables/t", "")),
		metadataLocationOf(t, elsewhere.must(root, "GET", "/v1/w/namespaces/elsewhere/views/v", ""))
}

// cell is one request, and its subjects.
type cell struct {
	operation          string
	method, path, body string
	verb               gate.Verb
	on                 map[gate.Subject]string // names of the objects of the request, as in lake.objects
	when               []gate.When             // the conditions that the request meets
	updates            access.Privileges       // privileges that its updates require
	through            bool                    // the request names a view, which counts if the caller is trusted
}

// name returns the name of the cell in messages.
func (c cell) name() string { return c.operation + " " + c.method + " " + c.path + " " + c.body }

// asked returns the privileges that the cell requires on each subject, and the order of the
// subjects, from the table of verbs.
func (c cell) asked() (order []gate.Subject, asked map[gate.Subject]access.Privileges) {
	row, _ := c.verb.Row()
	asked = make(map[gate.Subject]access.Privileges)
	for _, ask := range row.Asks {
		if ask.When != gate.Always && !slices.Contains(c.when, ask.When) {
			continue
		}
		if !slices.Contains(order, ask.Of) {
			order = append(order, ask.Of)
		}
		asked[ask.Of] |= ask.For
		if ask.When == gate.ForUpdates {
			asked[ask.Of] |= c.updates
		}
	}
	return order, asked
}

// cells returns a request for each operation of the specification, and for each condition.
func (l *lake) cells() []cell {
	const (
		namespaces = "/v1/w/namespaces"
		a          = namespaces + "/a"
		t          = a + "/tables/t"
		v          = a + "/views/v"
		vended     = "/v1/d/namespaces/a/tables"
		staged     = "?staged=file%3A%2F%2F%2Flake%2Fd%2Fa%2Fnew-1"
		sign       = `{"region":"r","uri":"http://s3/b/k","method":"GET","headers":{}}`
	)
	on := func(name string) map[gate.Subject]string { return map[gate.Subject]string{gate.OfObject: name} }
	in := func(name string) map[gate.Subject]string { return map[gate.Subject]string{gate.OfContainer: name} }
	to := func(name, destination string) map[gate.Subject]string {
		return map[gate.Subject]string{gate.OfObject: name, gate.OfDestination: destination}
	}
	rename := func(from, ns, name string) string {
		return fmt.Sprintf(`{"source":{"namespace":["a"],"name":%q},"destination":{"namespace":[%q],"name":%q}}`, from, ns, name)
	}
	register := func(name, file, more string) string {
		return fmt.Sprintf(`{"name":%q,"metadata-location":%q%s}`, name, file, more)
	}
	cells := []cell{
		{operation: "getConfig", method: "GET", path: "/v1/config?warehouse=w", verb: gate.LoadWarehouse, on: on("w")},
		{operation: "listNamespaces", method: "GET", path: namespaces, verb: gate.ListNamespaces, on: on("w")},
		{operation: "listNamespaces", method: "GET", path: namespaces + "?parent=a", verb: gate.ListNamespaces, on: on("w/a")},
		{operation: "createNamespace", method: "POST", path: namespaces, body: `{"namespace":["new"]}`, verb: gate.CreateNamespace, on: in("w")},
		{operation: "createNamespace", method: "POST", path: namespaces, body: `{"namespace":["a","new"]}`, verb: gate.CreateNamespace, on: in("w/a")},
		{operation: "createNamespace", method: "POST", path: namespaces, body: `{"namespace":["a","new"],"properties":{"location":"file:///lake/w/x"}}`, verb: gate.CreateNamespace, on: in("w/a"), when: []gate.When{gate.IfLocated}},
		{operation: "namespaceExists", method: "HEAD", path: a, verb: gate.LoadNamespace, on: on("w/a")},
		{operation: "loadNamespaceMetadata", method: "GET", path: a, verb: gate.LoadNamespace, on: on("w/a")},
		{operation: "dropNamespace", method: "DELETE", path: namespaces + "/e", verb: gate.DropNamespace, on: on("w/e")},
		{operation: "updateProperties", method: "POST", path: a + "/properties", body: `{"updates":{"k":"w"}}`, verb: gate.UpdateProperties, on: on("w/a")},
		{operation: "updateProperties", method: "POST", path: a + "/properties", body: `{"updates":{"location":"file:///lake/w/x"}}`, verb: gate.UpdateProperties, on: on("w/a"), when: []gate.When{gate.IfLocated}},
		{operation: "updateProperties", method: "POST", path: a + "/properties", body: `{"removals":["location"]}`, verb: gate.UpdateProperties, on: on("w/a"), when: []gate.When{gate.IfLocated}},
		{operation: "listTables", method: "GET", path: a + "/tables", verb: gate.ListTables, on: on("w/a")},
		{operation: "listViews", method: "GET", path: a + "/views", verb: gate.ListViews, on: on("w/a")},
		{operation: "createTable", method: "POST", path: a + "/tables", body: `{"name":"new","schema":` + schemaJSON + `}`, verb: gate.CreateTable, on: in("w/a")},
		{operation: "createTable", method: "POST", path: a + "/tables", body: `{"name":"new","location":"file:///lake/w/x","schema":` + schemaJSON + `}`, verb: gate.CreateTable, on: in("w/a"), when: []gate.When{gate.IfLocated}},
		{operation: "createTable", method: "POST", path: a + "/tables", body: `{"name":"new","location":"file:///lake/w/a/x","schema":` + schemaJSON + `}`, verb: gate.CreateTable, on: in("w/a")},
		{operation: "createTable", method: "POST", path: a + "/tables", body: `{"name":"new","properties":{"write.data.path":"file:///lake/w/x"},"schema":` + schemaJSON + `}`, verb: gate.CreateTable, on: in("w/a"), when: []gate.When{gate.IfLocated}},
		{operation: "createTable", method: "POST", path: a + "/tables", body: `{"name":"new","stage-create":true,"schema":` + schemaJSON + `}`, verb: gate.StageTable, on: in("w/a")},
		{operation: "createTable", method: "POST", path: a + "/tables", body: `{"name":"new","location":"file:///lake/w/a/gone","schema":` + schemaJSON + `}`, verb: gate.CreateTable, on: map[gate.Subject]string{gate.OfContainer: "w/a", gate.OfDropped: "w/a/gone"}, when: []gate.When{gate.IfLocated, gate.IfTakingOver}},
		{operation: "updateTable", method: "POST", path: t, body: `{"requirements":[],"updates":[{"action":"set-location","location":"file:///lake/w/a/gone"}]}`, verb: gate.Commit, on: map[gate.Subject]string{gate.OfObject: "w/a/t", gate.OfDropped: "w/a/gone"}, when: []gate.When{gate.ForUpdates, gate.IfTakingOver}, updates: access.Locate},
		{operation: "loadTable", method: "GET", path: t, verb: gate.LoadTable, on: on("w/a/t")},
		{operation: "loadTable", method: "GET", path: t + "?referenced-by=a%1Fv", verb: gate.LoadTable, on: map[gate.Subject]string{gate.OfObject: "w/a/t", gate.OfView: "w/a/v"}, through: true},
		{operation: "tableExists", method: "HEAD", path: t, verb: gate.TableExists, on: on("w/a/t")},
		{operation: "dropTable", method: "DELETE", path: t, verb: gate.DropTable, on: on("w/a/t")},
		{operation: "dropTable", method: "DELETE", path: t + "?purgeRequested=true", verb: gate.DropTable, on: on("w/a/t"), when: []gate.When{gate.IfPurging}},
		{operation: "unregisterTable", method: "POST", path: t + "/unregister", verb: gate.Unregister, on: on("w/a/t")},
		{operation: "renameTable", method: "POST", path: "/v1/w/tables/rename", body: rename("t", "a", "new"), verb: gate.Rename, on: to("w/a/t", "w/a")},
		{operation: "renameTable", method: "POST", path: "/v1/w/tables/rename", body: rename("t", "c", "t"), verb: gate.Rename, on: to("w/a/t", "w/c"), when: []gate.When{gate.IfMoving}},
		{operation: "registerTable", method: "POST", path: a + "/register", body: register("new", l.newTable, ""), verb: gate.Register, on: in("w/a")},
		{operation: "registerTable", method: "POST", path: a + "/register", body: register("new", l.goneFile, ""), verb: gate.Register, on: map[gate.Subject]string{gate.OfContainer: "w/a", gate.OfDropped: "w/a/gone"}, when: []gate.When{gate.IfTakingBack}},
		{operation: "registerTable", method: "POST", path: a + "/register", body: register("t", l.newTable, `,"overwrite":true`), verb: gate.RegisterOver, on: map[gate.Subject]string{gate.OfContainer: "w/a", gate.OfObject: "w/a/t"}},
		{operation: "createView", method: "POST", path: a + "/views", body: viewJSON("new"), verb: gate.CreateView, on: in("w/a")},
		{operation: "loadView", method: "GET", path: v, verb: gate.LoadView, on: on("w/a/v")},
		{operation: "loadView", method: "GET", path: v + "?referenced-by=a%1Fv2", verb: gate.LoadView, on: map[gate.Subject]string{gate.OfObject: "w/a/v", gate.OfView: "w/a/v2"}, through: true},
		{operation: "viewExists", method: "HEAD", path: v, verb: gate.ViewExists, on: on("w/a/v")},
		{operation: "replaceView", method: "POST", path: v, body: `{"updates":[{"action":"set-properties","updates":{"k":"w"}}]}`, verb: gate.Replace, on: on("w/a/v"), when: []gate.When{gate.ForUpdates}, updates: access.Alter},
		{operation: "replaceView", method: "POST", path: v, body: `{"updates":[{"action":"set-location","location":"file:///lake/w/x"}]}`, verb: gate.Replace, on: on("w/a/v"), when: []gate.When{gate.ForUpdates}, updates: access.Locate},
		{operation: "dropView", method: "DELETE", path: v, verb: gate.DropView, on: on("w/a/v")},
		{operation: "renameView", method: "POST", path: "/v1/w/views/rename", body: rename("v", "a", "new"), verb: gate.RenameView, on: to("w/a/v", "w/a")},
		{operation: "renameView", method: "POST", path: "/v1/w/views/rename", body: rename("v", "c", "v"), verb: gate.RenameView, on: to("w/a/v", "w/c"), when: []gate.When{gate.IfMoving}},
		{operation: "registerView", method: "POST", path: a + "/register-view", body: register("new", l.newView, ""), verb: gate.RegisterView, on: in("w/a")},
		{operation: "loadCredentials", method: "GET", path: vended + "/t/credentials", verb: gate.LoadCredentials, on: on("d/a/t")},
		{operation: "loadCredentials", method: "GET", path: vended + "/new/credentials" + staged, verb: gate.LoadStaged, on: in("d/a")},
		{operation: "signRequest", method: "POST", path: vended + "/t/sign", body: sign, verb: gate.Sign, on: on("d/a/t")},
		{operation: "signRequest", method: "POST", path: vended + "/new/sign" + staged, body: sign, verb: gate.SignStaged, on: in("d/a")},
		{operation: "reportMetrics", method: "POST", path: t + "/metrics", body: rest.ScanReportJSON, verb: gate.ReportMetrics, on: map[gate.Subject]string{gate.OfServer: ""}},
	}
	for _, update := range []struct {
		text  string
		names []string
	}{
		{text: `{"action":"add-schema","schema":` + schemaJSON + `}`},
		{text: `{"action":"set-properties","updates":{"k":"w"}}`, names: []string{"k"}},
		{text: `{"action":"remove-properties","removals":["write.data.path"]}`, names: []string{"write.data.path"}},
		{text: `{"action":"set-location","location":"file:///lake/w/x"}`},
		{text: `{"action":"remove-snapshots","snapshot-ids":[1]}`},
		{text: `{"action":"remove-snapshot-ref","ref-name":"main"}`, names: []string{"main"}},
		{text: `{"action":"remove-snapshot-ref","ref-name":"audit"}`, names: []string{"audit"}},
		{text: `{"action":"remove-statistics","snapshot-id":1}`},
		{text: `{"action":"upgrade-format-version","format-version":2}`},
	} {
		var action struct{ Action string }
		_ = json.Unmarshal([]byte(update.text), &action)
		asked := gate.OfUpdate(action.Action, update.names)
		one := `"requirements":[],"updates":[` + update.text + `]`
		cells = append(cells, cell{
			operation: "updateTable", method: "POST", path: t, body: "{" + one + "}", verb: gate.Commit,
			on: on("w/a/t"), when: []gate.When{gate.ForUpdates}, updates: asked,
		}, cell{
			operation: "commitTransaction", method: "POST", path: "/v1/w/transactions/commit",
			body: `{"table-changes":[{"identifier":{"namespace":["a"],"name":"t"},` + one + `}]}`, verb: gate.Commit,
			on: on("w/a/t"), when: []gate.When{gate.ForUpdates}, updates: asked,
		})
	}
	const create = `"requirements":[{"type":"assert-create"}],"updates":[{"action":"upgrade-format-version","format-version":2},` +
		`{"action":"add-schema","schema":` + schemaJSON + `},{"action":"set-current-schema","schema-id":-1},` +
		`{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},` +
		`{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1}`
	const home = `,{"action":"set-location","location":"file:///lake/w/a/new"}`
	const change = `{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"w"}}]}`
	transaction := func(changes ...string) cell {
		return cell{
			operation: "commitTransaction", method: "POST", path: "/v1/w/transactions/commit",
			body: `{"table-changes":[` + strings.Join(changes, ",") + `]}`, verb: gate.Transaction,
			on:   map[gate.Subject]string{gate.OfObject: "w/a/t", gate.OfContainer: "w/a"},
			when: []gate.When{gate.ForUpdates, gate.IfCreating}, updates: access.Alter,
		}
	}
	return append(cells,
		cell{operation: "updateTable", method: "POST", path: a + "/tables/new", body: `{` + create + home + `]}`, verb: gate.CommitCreate, on: in("w/a")},
		cell{operation: "updateTable", method: "POST", path: a + "/tables/new", body: `{` + create + `,{"action":"set-location","location":"file:///lake/w/x"}]}`, verb: gate.CommitCreate, on: in("w/a"), when: []gate.When{gate.IfLocated}},
		transaction(change, `{"identifier":{"namespace":["a"],"name":"new"},`+create+home+`]}`),
		transaction(`{"identifier":{"namespace":["a"],"name":"new"},`+create+home+`]}`, change),
	)
}

// principal is the sender of a request in the matrix: the name and its grants.
type principal struct {
	name   string
	caller string
	grants func(map[string][]access.Object) []access.Grants
	// generations is the number of deleted principals by name.
	generations map[string]uint64
}

// principals returns the principals of the matrix: one without grants, one with each privilege
// alone, and one with that privilege and describe. The owners follow, and a principal with all
// privileges. A privilege is granted on the warehouse or, if that is not possible, on its
// namespaces.
func principals() []principal {
	everybody := []principal{{name: "nothing", caller: ann}}
	grantTo := func(grantee string, set access.Privileges) func(map[string][]access.Object) []access.Grants {
		return func(objects map[string][]access.Object) (grants []access.Grants) {
			for _, name := range slices.Sorted(maps.Keys(objects)) {
				path := objects[name]
				here := set & access.Grantable(path[0].Kind)
				if len(path) == 2 {
					here &^= access.Grantable(access.Warehouse)
				}
				if here != 0 && len(path) <= 2 {
					grants = append(grants, grantsAt(path, grantee, here))
				}
			}
			if here := set & (access.Admin | access.Operate | access.Audit | access.Impersonate); here != 0 {
				grants = append(grants, grantsAt(nil, grantee, here))
			}
			return grants
		}
	}
	grant := func(set access.Privileges) func(map[string][]access.Object) []access.Grants { return grantTo(ann, set) }
	var all access.Privileges
	for _, each := range access.Every() {
		all |= each
		everybody = append(everybody, principal{each.String(), ann, grant(each), nil},
			principal{each.String() + " and describe", ann, grant(each | access.Describe), nil})
	}
	return append(everybody,
		principal{"everything", ann, grant(all), nil},
		principal{"create and locate", ann, grant(access.Create | access.Locate), nil},
		principal{"create, locate and drop", ann, grant(access.Create | access.Locate | access.Drop), nil},
		principal{"drop, create and manage", ann, grant(access.Drop | access.Create | access.Manage), nil},
		principal{"the owner", maker, grant(0), nil},
		principal{"the owner of another table", other, grant(0), nil},
		principal{"the owner of the warehouse", root, grant(0), nil},
		principal{"what a deleted one of the name had", ann, grant(all), map[string]uint64{ann: 1}},
		principal{"everything, and the name of a deleted one", ann, grantTo(moorage.IdentityOf(ann, 1), all), map[string]uint64{ann: 1}},
		principal{"the name of a deleted owner", maker, grant(0), map[string]uint64{maker: 1}})
}

// missing has the answers to requests of root in lakes that lack one object.
type missing struct {
	mu    sync.Mutex // guards the field below
	lakes map[string]*lake
}

func (m *missing) answer(t testing.TB, without string, c cell) *httptest.ResponseRecorder {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lakes == nil {
		m.lakes = make(map[string]*lake)
	}
	if m.lakes[without] == nil {
		m.lakes[without] = newLake(t, without)
	}
	answer := m.lakes[without].do(root, c.method, c.path, c.body)
	if answer.Code < 300 && c.method != "GET" && c.method != "HEAD" {
		delete(m.lakes, without)
	}
	return answer
}

// Every caller gets the answer that the table of verbs requires: success, 403 with the missing
// privileges, or exactly the answer that root gets if the object does not exist.
func TestAccessMatrix(t *testing.T) {
	t.Parallel()
	drawn := scale.Sample(t)
	absent := &missing{}
	fresh := func() *lake { return newLake(t, "") }
	count := len(fresh().cells())
	for _, p := range principals() {
		l := fresh()
		for i := range count {
			if !drawn() {
				continue
			}
			objects := l.objects()
			grants := []access.Grants(nil)
			if p.grants != nil {
				grants = p.grants(objects)
			}
			l.generations = p.generations
			l.setPolicy(grants...)
			c := l.cells()[i]
			answer := l.do(p.caller, c.method, c.path, c.body)
			l.check(t, absent, p, c, grants, objects, answer)
			if answer.Code < 300 && c.method != "GET" && c.method != "HEAD" {
				l = fresh()
			}
		}
	}
}

// check compares an answer with the decision that the table of verbs requires. If privileges on
// several subjects are missing, the request may be refused for any of them.
func (l *lake) check(t *testing.T, absent *missing, p principal, c cell, grants []access.Grants,
	objects map[string][]access.Object, answer *httptest.ResponseRecorder) {
	t.Helper()
	objects = shownTo(moorage.IdentityOf(p.caller, p.generations[p.caller]), objects)
	who := access.New(1, access.Records{Grants: grants, Generations: p.generations}).Who(access.Caller{Name: p.caller})
	if warehouse := objects["w"]; c.through && who.Believed(warehouse[0], nil, nil) {
		c.when = append(c.when, gate.IfThrough)
	}
	order, asked := c.asked()
	var wanted []string
	for _, subject := range order {
		path := objects[c.on[subject]]
		d := who.Decide(path, asked[subject])
		if c.verb == gate.CreateNamespace && d.Outcome == access.Hidden && d.HiddenAt < len(path)-1 {
			d = who.Decide(path[d.HiddenAt+1:], asked[subject]) // to this caller, nothing seems to exist there
		}
		switch d.Outcome {
		case access.Forbid:
			if isRefusal(answer, c.method, d.Missing) {
				return
			}
			wanted = append(wanted, fmt.Sprintf("403 Not allowed: %s", d.Missing))
		case access.Hidden:
			hidden := nameOf(objects, path[d.HiddenAt])
			if subject == gate.OfView { // as if the object that the view hides did not exist
				hidden = c.on[gate.OfObject]
			}
			want := absent.answer(t, hidden, c)
			if answer.Code == want.Code && answer.Body.String() == want.Body.String() {
				return
			}
			wanted = append(wanted, fmt.Sprintf("%d %s", want.Code, want.Body))
		}
	}
	if len(wanted) > 0 || answer.Code > 299 {
		t.Errorf("%s, who has %s, is answered\n%d %s, want one of %q", c.name(), p.name, answer.Code, answer.Body, wanted)
	}
}

// isRefusal reports whether an answer is 403 and names some of the missing privileges.
func isRefusal(answer *httptest.ResponseRecorder, method string, missing access.Privileges) bool {
	if answer.Code != http.StatusForbidden {
		return false
	}
	if method == http.MethodHead {
		return answer.Body.Len() == 0
	}
	var got failure
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Error.Type != "ForbiddenException" {
		return false
	}
	text, isRefusal := strings.CutPrefix(got.Error.Message, "Not allowed: ")
	words, _, _ := strings.Cut(text, " on ")
	named, err := access.Parse(strings.Split(words, ", "))
	return isRefusal && err == nil && named != 0 && missing.Has(named)
}

// nameOf returns the name of an object.
func nameOf(objects map[string][]access.Object, object access.Object) string {
	for name, path := range objects {
		if path[0].ID == object.ID {
			return name
		}
	}
	return ""
}
