package ascode

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"moorage/access"
)

var (
	seedFlag   = flag.Uint64("seed", 1, "seed of the random catalogs")
	roundsFlag = flag.Int("rounds", 150, "how many pairs of random catalogs a test tries")
)

// random makes catalogs of few names, so that two of them have much in common.
type random struct{ *rand.Rand }

func (r random) yes(percent int) bool { return r.IntN(100) < percent }

func (r random) some(words ...string) (chosen []string) {
	for _, word := range words {
		if r.yes(50) {
			chosen = append(chosen, word)
		}
	}
	return chosen
}

func (r random) pairs(names ...string) map[string]string {
	made := make(map[string]string)
	for _, name := range r.some(names...) {
		made[name] = []string{"", "1", "yes", "a b"}[r.IntN(4)]
	}
	return made
}

func (r random) truth() *bool {
	if r.yes(60) {
		return nil
	}
	truth := r.yes(50)
	return &truth
}

// grants leaves out roles with a greater number than below, so that each role that is named exists.
func (r random) grants(roles []string) Grants {
	made := make(Grants)
	for _, grantee := range r.some(append(roles, "key:etl", "corp/ops")...) {
		if privileges := r.some("admin", "read", "write"); len(privileges) > 0 {
			made[grantee] = privileges
		}
	}
	return made
}

func (r random) access(roles []string) (a Access) {
	if r.yes(30) {
		a.Owner = append(roles, "corp:ann")[r.IntN(len(roles)+1)]
	}
	a.Grants = r.grants(roles)
	return a
}

func (r random) policies() map[string]*Policy {
	made := make(map[string]*Policy)
	for _, of := range r.some("icebergSnapshotManagement", "icebergCompaction") {
		made[of] = &Policy{Status: []string{"enabled", "disabled"}[r.IntN(2)], Settings: r.pairs("a", "b"), Unsafe: r.truth()}
	}
	return made
}

func (r random) container(roles []string, depth int) (c Container) {
	c = Container{Properties: r.pairs("p", "q"), Protected: r.truth(), Access: r.access(roles), Managed: r.truth(),
		Maintenance: r.policies(), Namespaces: make(map[string]*Namespace)}
	if depth > 0 {
		for _, name := range r.some("n", "m.x") {
			namespace := &Namespace{
				Container: r.container(roles, depth-1), Tables: make(map[string]*Table), Views: make(map[string]*View),
			}
			for _, name := range r.some("t", "u") {
				namespace.Tables[name] = &Table{View: r.view(roles), Maintenance: r.policies()}
			}
			for _, name := range r.some("v") {
				view := r.view(roles)
				namespace.Views[name] = &view
			}
			c.Namespaces[name] = namespace
		}
	}
	return c
}

func (r random) view(roles []string) View {
	v := View{Properties: r.pairs("p"), Protected: r.truth(), Access: r.access(roles), Labels: r.pairs("l", "k"),
		Columns: make(map[string]map[string]string)}
	for _, column := range r.some("id", "a.b") {
		if labels := r.pairs("l"); len(labels) > 0 {
			v.Columns[column] = labels
		}
	}
	return v
}

func (r random) catalog() Catalog {
	c := Catalog{Roles: make(map[string]*Role), Warehouses: make(map[string]*Warehouse)}
	roles := r.some("r1", "r2", "r3")
	r.Shuffle(len(roles), func(i, j int) { roles[i], roles[j] = roles[j], roles[i] }) // other catalogs have the reverse
	for i, name := range roles {
		members := r.some(append([]string{"key:etl", "key:me"}, roles[:i]...)...)
		c.Roles[name] = &Role{Description: []string{"", "d", "e"}[r.IntN(3)], Members: members}
	}
	c.Server = &Server{Grants: r.grants(append(roles, "key:me")), Maintenance: r.policies()}
	for _, name := range r.some("lake", "sea") {
		made := &Warehouse{Location: "s3://" + name, AllowedLocations: r.some("s3://x", "s3://y"), Storage: r.pairs("s"),
			Delegation: r.some("vended", "signed"), Container: r.container(roles, 2)}
		if r.yes(30) {
			made.Secret = &SecretRef{"access-key", "LAKE"}
		}
		c.Warehouses[name] = made
	}
	return c
}

// server is what a server has of a catalog: facts that are false are not there.
func server(c Catalog) World {
	w := c.World()
	for _, facts := range w {
		for fact, value := range facts {
			if value == "false" && (fact.Attribute == Protected || fact.Attribute == Managed) {
				delete(facts, fact)
			}
		}
	}
	return w
}

var me = Caller{Grantees: []string{"key:me", "corp/ops"}}

// each calls do with many pairs of random catalogs.
func each(t *testing.T, do func(t *testing.T, r random, c Catalog, actual World, options Options)) {
	t.Helper()
	for i := range *roundsFlag {
		r := random{rand.New(rand.NewPCG(*seedFlag, uint64(i)))}
		options := Options{Prune: r.yes(50), GiveUp: r.yes(50), Caller: me}
		do(t, r, r.catalog(), server(r.catalog()), options)
		if t.Failed() {
			t.Fatalf("seed %d, round %d", *seedFlag, i)
		}
	}
}

// make applies step as a strict server does.
func (w World) make(t *testing.T, step Step) {
	t.Helper()
	_, exists := w[step.Object]
	switch step.Do {
	case CreateWarehouse, CreateNamespace:
		if exists {
			t.Errorf("%s: it exists", step)
		}
		if _, hasUp := w[step.Object.Up()]; step.Do == CreateNamespace && !hasUp {
			t.Errorf("%s: there is no %s", step, step.Object.Up())
		}
	case DropNamespace, DropWarehouse:
		for o := range w {
			if o.Kind > WarehouseKind && o.Up() == step.Object {
				t.Errorf("%s: it has the %s", step, o)
			}
		}
		for at := step.Object; ; at = at.Up() {
			if w[at][Fact{Attribute: Protected}] == "true" {
				t.Errorf("%s: %s is protected", step, at)
			}
			if at.Kind == WarehouseKind {
				break
			}
		}
	default:
		if exists == step.IsNew {
			t.Errorf("%s: exists is %t", step, exists)
		}
	}
	for _, change := range step.Changes {
		was, had := w[step.Object][change.Fact]
		isDone := !had && change.Is == nil // the removal of a role has ended its grants
		if !isDone && (had != (change.Was != nil) || had && was != *change.Was) {
			t.Errorf("%s: %v is %q, not as planned", step, change.Fact, was)
		}
	}
	w.Apply(step)
	if chain := w.longestChain(); isTooLong(chain) {
		t.Errorf("%s: %s", step, faultOf(chain))
	}
}

// The steps of a plan bring a server to what the files describe, and the next plan has none.
func TestPlanReaches(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ random, c Catalog, actual World, options Options) {
		plan, err := Make(c, actual, options)
		if err != nil {
			return
		}
		for _, step := range plan.Steps {
			actual.make(t, step)
		}
		wanted := c.World()
		for o, facts := range wanted {
			for fact, is := range facts {
				if actual[o] != nil && actual[o][fact] != is && is != "false" {
					t.Errorf("%s has %v %q, not %q", o, fact, actual[o][fact], is)
				}
			}
		}
		again, err := Make(c, actual, options)
		if err != nil || len(again.Steps) > 0 {
			t.Errorf("the next plan is %v, %v", again.Steps, err)
		}
	})
}

// A plan that was interrupted after any of its steps can be made again, and comes to the same.
func TestPlanAfterInterruption(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r random, c Catalog, actual World, options Options) {
		plan, err := Make(c, actual, options)
		if err != nil || len(plan.Steps) == 0 {
			return
		}
		whole, wasAdministrator := actual.clone(), me.administers(actual)
		for _, step := range plan.Steps {
			whole.make(t, step)
		}
		for _, step := range plan.Steps[:r.IntN(len(plan.Steps))] {
			actual.make(t, step)
		}
		rest, err := Make(c, actual, options)
		if errors.Is(err, ErrLockout) && !wasAdministrator {
			return // the first steps have made the caller one
		}
		if err != nil {
			t.Errorf("the rest cannot be planned: %v", err)
		}
		for _, step := range rest.Steps {
			actual.make(t, step)
		}
		if !reflect.DeepEqual(actual, whole) {
			t.Errorf("it ends elsewhere")
		}
	})
}

// No step takes the caller's right as an administrator. With GiveUp the steps that do are last.
func TestNoStepLocksOut(t *testing.T) {
	t.Parallel()
	refused, given := 0, 0
	each(t, func(t *testing.T, _ random, c Catalog, actual World, options Options) {
		if !me.administers(actual) {
			return
		}
		plan, err := Make(c, actual, options)
		switch {
		case errors.Is(err, ErrLockout) && options.GiveUp:
			t.Errorf("refused with GiveUp")
		case errors.Is(err, ErrLockout):
			options.GiveUp = true
			if plan, err = Make(c, actual, options); err != nil {
				t.Errorf("refused with GiveUp: %v", err)
			}
			options.GiveUp = false
			for _, step := range plan.Steps {
				actual.Apply(step)
			}
			if refused++; me.administers(actual) {
				t.Errorf("refused, and the caller would still be an administrator")
			}
			return
		case err != nil:
			return
		}
		lost := false
		for _, step := range plan.Steps {
			actual.Apply(step)
			if lost && step.Do < RemoveGrants {
				t.Errorf("%s comes after the caller has lost its right", step)
			}
			lost = lost || !me.administers(actual)
		}
		if lost {
			given++
		}
		if lost && !options.GiveUp {
			t.Errorf("the caller is no administrator any more")
		}
	})
	if refused == 0 || given == 0 {
		t.Errorf("%d plans were refused, and %d gave the right up: the catalogs try nothing", refused, given)
	}
}

// A membership that stands in the way of another one ends before that, and no sooner than the
// caller can do without it.
func TestMembershipsThatChangePlaces(t *testing.T) {
	t.Parallel()
	chain := "r0: {members: ['key:you']}"
	for i := range access.DepthMax - 1 {
		chain += fmt.Sprintf(", r%d: {members: [r%d]}", i+1, i)
	}
	const free = "server: {grants: {'key:me': [admin]}}\n"
	for _, row := range []struct{ name, before, after, want string }{
		{"inverted", free + "roles: {a: {members: [b, 'key:x']}, b: {}}", free + "roles: {a: {}, b: {members: [a]}}",
			"remove members of role a: b; add members of role b: a; remove members of role a: key:x"},
		{"three in a circle", free + "roles: {a: {members: [b]}, b: {members: [c]}, c: {}}",
			free + "roles: {a: {}, b: {members: [a]}, c: {members: [a, b]}}",
			"remove members of role a: b; add members of role b: a; add members of role c: a; " +
				"remove members of role b: c; add members of role c: b"},
		{"the caller's own roles", "server: {grants: {b: [admin]}}\nroles: {a: {members: ['key:me']}, b: {members: [a]}}",
			"server: {grants: {a: [admin]}}\nroles: {a: {members: ['key:me', b]}, b: {}}",
			"grant on server; remove members of role b: a; add members of role a: b; revoke on server"},
		{"a role that goes", free + "roles: {a: {members: [b]}, b: {members: [c]}, c: {}}",
			free + "roles: {a: {}, c: {members: [a]}}",
			"remove members of role a: b; add members of role c: a; remove role b"},
		{"a new role at the end of a long chain", free + "roles: {" + chain + "}",
			free + "roles: {" + strings.Replace(chain, "members: [r3]", "", 1) + ", new: {members: [r7, 'key:x']}}",
			"create role new: key:x; remove members of role r4: r3; add members of role new: r7"},
		{"a circle", free + "roles: {a: {}, b: {}}", free + "roles: {a: {members: [b]}, b: {members: [a]}}",
			"fault: add members of role b: a role cannot contain itself: a has the member b has the member a"},
		{"too long", free + "roles: {" + chain + "}", free + "roles: {" + chain + ", r8: {members: [r7]}}",
			"fault: add members of role r8: 9 roles contain each other, at most 8 can: r8 has the member r7 has"},
		{"no order", "server: {grants: {y: [admin], d: [admin]}}\nroles: {x: {members: ['key:me', d]}, " +
			"y: {members: [x]}, c: {members: ['key:me', y]}, d: {}}",
			"server: {grants: {y: [admin], d: [admin]}}\nroles: {x: {members: ['key:me', d]}, " +
				"y: {}, c: {members: ['key:me', y]}, d: {members: [c]}}",
			"fault: " + ErrLockout.Error()},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			before, err := Decode(File{"before", []byte(row.before)})
			after, err2 := Decode(File{"after", []byte(row.after)})
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			actual := before.World()
			plan, err := Make(after, actual, Options{Prune: true, Caller: me})
			if err != nil {
				if fault := "fault: " + err.Error(); !strings.HasPrefix(fault, row.want) {
					t.Errorf("%s\nwant %s", fault, row.want)
				}
				return
			}
			var steps []string
			for _, step := range plan.Steps {
				actual.make(t, step)
				if !me.administers(actual) {
					t.Errorf("%s: the caller is no administrator any more", step)
				}
				words := step.String()
				for i, change := range step.Changes {
					if change.Fact.Attribute == Member {
						words += []string{", ", ": "}[1-min(i, 1)] + change.Fact.Key
					}
				}
				steps = append(steps, words)
			}
			if got := strings.Join(steps, "; "); got != row.want {
				t.Errorf("the steps are %s\nwant %s", got, row.want)
			}
			if again, err := Make(after, actual, Options{Prune: true, Caller: me}); err != nil || len(again.Steps) > 0 {
				t.Errorf("the next plan is %v, %v", again.Steps, err)
			}
		})
	}
}

// A plan of many roles takes time in proportion to them. With a copy of all roles for each step,
// this test would take minutes.
func TestManyRoles(t *testing.T) {
	t.Parallel()
	const n = 10_000
	c := Catalog{Roles: make(map[string]*Role)}
	name := func(i int) string { return fmt.Sprintf("r%04d", i) }
	for i := range n {
		role := &Role{Members: []string{fmt.Sprintf("key:k%d", i)}}
		if i >= 10 {
			role.Members = append(role.Members, name(i/10))
		}
		c.Roles[name(i)] = role
	}
	actual := World{Object{}: {Fact{Grant, "key:me", "admin"}: ""}}
	plan, err := Make(c, actual, Options{Caller: me})
	if err != nil || len(plan.Steps) != n {
		t.Fatalf("%d steps, %v", len(plan.Steps), err)
	}
	for _, step := range plan.Steps {
		actual.Apply(step)
	}
	if again, err := Make(c, actual, Options{Caller: me}); err != nil || len(again.Steps) > 0 {
		t.Errorf("the next plan has %d steps, %v", len(again.Steps), err)
	}
}

// A credential that is limited to a role counts only while the caller has the role.
func TestNoStepLocksOutALimitedCredential(t *testing.T) {
	t.Parallel()
	const admins = "server: {grants: {admins: [admin]}}\nroles: {admins: {members: ["
	actual, err := Decode(File{"actual", []byte(admins + "'key:me', 'key:you']}}")})
	if err != nil {
		t.Fatal(err)
	}
	limited := func(only ...string) Caller { return Caller{Grantees: []string{"key:me", "everyone"}, Only: only} }
	for _, row := range []struct {
		caller  Caller
		file    string
		refused bool
	}{
		{limited("admins"), admins + "'key:you']}}", true},
		{limited("admins"), admins + "'key:me']}}", false},
		{limited("admins"), admins + "everyone]}}", false},
		{limited("others"), admins + "'key:you']}}", false}, // it is no administrator now
		{limited(), admins + "'key:you']}}", true},
	} {
		c, err := Decode(File{"wanted", []byte(row.file)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Make(c, actual.World(), Options{Prune: true, Caller: row.caller})
		if errors.Is(err, ErrLockout) != row.refused {
			t.Errorf("%v, %s: %v", row.caller, row.file, err)
		}
	}
}

// No step creates or drops a table or view, or removes a container that has one.
func TestTablesStay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ random, c Catalog, actual World, options Options) {
		tables := func() (found []string) {
			for o := range actual {
				if o.isLeaf() {
					found = append(found, o.String())
				}
			}
			slices.Sort(found)
			return found
		}
		before := tables()
		plan, err := Make(c, actual, options)
		if err != nil {
			return
		}
		for _, step := range plan.Steps {
			actual.make(t, step)
		}
		if after := tables(); !slices.Equal(before, after) {
			t.Errorf("the tables were %v, and are %v", before, after)
		}
		for o := range actual {
			if _, hasUp := actual[o.Up()]; o.Kind > WarehouseKind && !hasUp {
				t.Errorf("%s has no container", o)
			}
		}
	})
}

// What only the server has stays, unless the plan prunes. A property of a table, a location, and a
// secret stay in any case.
func TestKept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ random, c Catalog, actual World, options Options) {
		before, wanted := actual.clone(), c.World()
		plan, err := Make(c, actual, options)
		if err != nil {
			return
		}
		for _, step := range plan.Steps {
			actual.make(t, step)
		}
		for o, facts := range before {
			for fact := range facts {
				_, isWanted := wanted[o][fact]
				_, isThere := actual[o][fact]
				always := fact.Attribute == Location || fact.Attribute == Secret || fact.Attribute == Property && o.isLeaf()
				if !isWanted && !isThere && actual[o] != nil && (!options.Prune || always) {
					t.Errorf("%s lost %v", o, fact)
				}
				always = always || fact.Attribute.isAccess() && !c.DescribesAccess()
				if !isWanted && isThere && options.Prune && wanted[o] != nil && !always {
					t.Errorf("%s kept %v", o, fact)
				}
			}
			if !options.Prune && actual[o] == nil {
				t.Errorf("%s is gone", o)
			}
		}
		if options.Prune && plan.Kept > 0 {
			t.Errorf("a prune keeps %d", plan.Kept)
		}
	})
}

// Equal catalogs are equal bytes, which Decode reads back, and the world of a catalog describes it.
func TestEncodeDecode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ random, c Catalog, _ World, _ Options) {
		text, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Decode(File{"a.yaml", text})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(read.World(), c.World()) {
			t.Errorf("read back: %v\nwant %v\n%s", read.World(), c.World(), text)
		}
		again, _ := Encode(read)
		if string(again) != string(text) {
			t.Errorf("written again:\n%s\nwant\n%s", again, text)
		}
		described := CatalogOf(c.World())
		if !reflect.DeepEqual(described.World(), c.World()) {
			t.Errorf("the description of the world is another")
		}
	})
}

// The description of a world names a variable for each secret, and has nothing without a container.
func TestCatalogOf(t *testing.T) {
	t.Parallel()
	secret := Facts{{Attribute: Secret}: "access-key"}
	c := CatalogOf(World{
		{Kind: WarehouseKind, Warehouse: "a-b"}: secret, {Kind: WarehouseKind, Warehouse: "a.b"}: secret,
		{Kind: TableKind, Warehouse: "a.b", Path: PathOf([]string{"gone"}), Name: "t"}: {},
		{Kind: ViewKind, Warehouse: "a.b", Path: PathOf([]string{"gone"}), Name: "v"}:  {},
		{Kind: NamespaceKind, Warehouse: "gone", Path: PathOf([]string{"n"})}:          {},
	})
	first, second := c.Warehouses["a-b"], c.Warehouses["a.b"]
	if first.Secret.Env != "MOORAGE_SECRET_A_B" || second.Secret.Env != "MOORAGE_SECRET_A_B_2" {
		t.Errorf("the variables are %s and %s", first.Secret.Env, second.Secret.Env)
	}
	if len(c.Warehouses) != 2 || len(second.Namespaces) > 0 {
		t.Errorf("it describes %+v", c.Warehouses)
	}
}

// What is missing on a server is a fault, or waits for an engine.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, file, server, want string }{
		{"no location", "warehouses: {lake: {}}", "", "there is no warehouse lake: give its location"},
		{"another location", "warehouses: {lake: {location: 's3://b'}}", "warehouses: {lake: {location: 's3://a'}}",
			"the location of warehouse lake is s3://a, and cannot become s3://b"},
		{"a secret", "warehouses: {lake: {location: 's3://b', storage: {s3.secret-access-key: hidden}}}", "",
			"warehouse lake has a secret in the storage option s3.secret-access-key: put it"},
		{"own right", "server: {grants: {'key:you': [admin]}}", "server: {grants: {'key:me': [admin]}}",
			"would take your own right"},
		{"role", "server: {grants: {r: [read], 'key:me': [admin]}}", "roles: {r: {}}",
			"names the role r, which --prune would remove"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, err := Decode(File{"a", []byte(row.file)})
			actual, err2 := Decode(File{"b", []byte(row.server)})
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			_, err = Make(c, actual.World(), Options{Prune: true, Caller: me})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %s", err, row.want)
			}
		})
	}
}

// Faults of files have a file, a line and the nearest key.
func TestDecodeFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"warehouses:\n  lake:\n    propertys: {}": `a.yaml:3: unknown key "propertys" in warehouses.lake; close: properties`,
		"catalogs: {}":                                                             `a.yaml:1: unknown key "catalogs"; there are: server, roles, warehouses`,
		"warehouse: {}":                                                            `a.yaml:1: unknown key "warehouse"; close: warehouses`,
		"roles: {a: {members: x}}":                                                 `a.yaml:1: roles.a.members takes a list, such as [a, b]`,
		"roles: {a: {members: [x, x]}}":                                            `a.yaml:1: "x" stands twice in roles.a.members`,
		"roles:\n  a:\n    description:\n":                                         `a.yaml:3: roles.a.description takes a text; an empty one is ""`,
		"roles:\n  a: {}\n  a: {}":                                                 `a.yaml:3: roles.a stands twice; the first is at line 2`,
		"warehouses: {l: {protected: yes}}":                                        `a.yaml:1: warehouses.l.protected is true or false`,
		"server: {maintenance: {icebergCompaction: {settings: {}}}}":               `a.yaml:1: server.maintenance.icebergCompaction needs the key status`,
		"server: {maintenance: {icebergCompaction: {status: on}}}":                 `a.yaml:1: server.maintenance.icebergCompaction.status is "on", and can be enabled or disabled`,
		"warehouses: {l: {secret: {kind: access-key, secret-access-key: hidden}}}": `a.yaml:1: unknown key "secret-access-key" in warehouses.l.secret; there are: kind, env`,
		"a: [\n": `a.yaml:1: did not find expected node content`,
		"warehouses:\n  l: &l\n    namespaces: {n: *l}": `a.yaml:3: warehouses.l.namespaces.n.namespaces.n has an alias of what it is in`,
		"- a": `a.yaml:1: a file takes keys and values, such as name: value`,
		"roles: {}\n---\nroles: {a: {description: b}}\n---\nroles: {a: {description: c}}": `a.yaml:5: roles.a.description is set a second time; the first is at a.yaml:3`,
	} {
		_, err := Decode(File{"a.yaml", []byte(text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: a fault has a value of a secret: %v", text, err)
		}
	}
	bomb := "warehouses:\n  l:\n    namespaces:\n      n0: &n0 {}\n"
	for i := range 20 {
		bomb += fmt.Sprintf("      n%d: &n%[1]d {namespaces: {a: *n%d, b: *n%[2]d}}\n", i+1, i)
	}
	if _, err := Decode(File{"a.yaml", []byte(bomb)}); err == nil || !strings.Contains(err.Error(), "aliases repeat more than") {
		t.Errorf("a short file of many values: %.200v", err)
	}
	dots := "warehouses: {l: {namespaces: {n: {tables: {t: {columns: {a.b: {c: x}, a: {b.c: y}}}}}}}}"
	if _, err := Decode(File{"a.yaml", []byte(dots)}); err != nil {
		t.Errorf("keys with dots: %v", err)
	}
	_, err := Decode(File{"a.yaml", []byte("roles: {a: {description: b}}")}, File{"b.yaml", []byte("\nroles: {a: {description: b}}")})
	if want := "b.yaml:2: roles.a.description is set a second time; the first is at a.yaml:1"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	c, err := Decode(File{"a.yaml", []byte("roles: {a: {description: b}}")}, File{"b.yaml", []byte("roles: {a: {members: [c]}, d: }")})
	if err != nil || c.Roles["a"].Description != "b" || c.Roles["a"].Members[0] != "c" || !slices.Equal(slices.Sorted(maps.Keys(c.Roles)), []string{"a", "d"}) {
		t.Errorf("two files about one role: %+v, %v", c.Roles["a"], err)
	}
}
