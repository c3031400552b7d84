package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moorage/ascode"
	"moorage/internal/cli"
)

var largeCode = flag.Bool("large", false, "describe 50 warehouses, 2,000 namespaces and 5,000 grants")

// codeOf returns a catalog with the given numbers of warehouses, namespaces and grants, in a
// folder.
func codeOf(folder string, warehouses, namespaces, grants int) ascode.Catalog {
	random := rand.New(rand.NewPCG(1, 2))
	yes, no := true, false
	c := ascode.Catalog{
		Server: &ascode.Server{
			Grants:      ascode.Grants{"key:root": {"admin", "audit", "manage", "operate"}, "r1": {"operate"}},
			Maintenance: map[string]*ascode.Policy{"icebergUnreferencedFileRemoval": {Status: "disabled"}},
		},
		Roles:      make(map[string]*ascode.Role),
		Warehouses: make(map[string]*ascode.Warehouse),
	}
	var grantees []string
	for i := range 20 {
		name := fmt.Sprintf("r%d", i)
		c.Roles[name] = &ascode.Role{Description: "role " + name, Members: []string{fmt.Sprintf("key:k%d", i), "corp/group"}}
		if i%5 > 0 { // longer chains are refused
			c.Roles[name].Members = append(c.Roles[name].Members, grantees[i-1])
		}
		grantees = append(grantees, name)
	}
	grantees = append(grantees, "corp:ann", "key:etl", "corp/analysts", "everyone")
	var all []*ascode.Container
	for i := range warehouses {
		name := fmt.Sprintf("w%d", i)
		made := &ascode.Warehouse{Location: "file://" + filepath.Join(folder, name)}
		made.Properties = map[string]string{"number": fmt.Sprint(i), "text": "# yes: \"no\"\nline"}
		if i%3 == 0 {
			made.AllowedLocations = []string{"file://" + filepath.Join(folder, "more"+name)}
			made.Protected, made.Managed = &yes, &yes
		}
		c.Warehouses[name] = made
		all = append(all, &made.Container)
	}
	for i := range namespaces {
		in := all[random.IntN(len(all))]
		if in.Namespaces == nil {
			in.Namespaces = make(map[string]*ascode.Namespace)
		}
		made := &ascode.Namespace{}
		made.Properties = map[string]string{"owner": grantees[random.IntN(len(grantees))]}
		if i%7 == 0 {
			made.Protected, made.Owner, made.Managed = &yes, "corp:ann", &no
			made.Maintenance = map[string]*ascode.Policy{"icebergSnapshotManagement": {
				Status: "enabled", Settings: map[string]string{"maxSnapshotAgeHours": fmt.Sprint(100 + i)},
			}}
		}
		in.Namespaces[fmt.Sprintf("n.%d", i)] = made
		if i%10 == 0 { // so that namespaces are at most a few levels deep
			all = append(all, &made.Container)
		}
		if i < grants%namespaces || grants >= namespaces {
			made.Grants = make(ascode.Grants)
		}
		for range (grants + namespaces - 1 - i) / namespaces {
			grantee := grantees[random.IntN(len(grantees))]
			if made.Grants[grantee] == nil {
				made.Grants[grantee] = []string{"read"}
			}
		}
	}
	return c
}

// codeRun runs moorage with the rights of a key.
type codeRun struct {
	*served
	key string
}

func (r codeRun) run(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	environ := []string{"MOORAGE_URI=" + r.uri, "MOORAGE_TOKEN=" + r.key, "HOME=" + t.TempDir(), "NO_COLOR=1"}
	code := run(t.Context(), args, cli.Environment{Environ: environ, Stdout: &stdout, Stderr: &stderr, Now: time.Now})
	return result{code, stdout.String(), stderr.String()}
}

// must runs a command, which must succeed, and returns its output.
func (r codeRun) must(t *testing.T, args ...string) string {
	t.Helper()
	got := r.run(t, args...)
	if got.code != 0 {
		t.Fatalf("moorage %v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// newCodeRun starts a server that has only a warehouse and an administrator.
func newCodeRun(t *testing.T, folder string) codeRun {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	key := newKey(t, "root", "--admin", "--data", data)
	started := startServe(t, "--data", data, "--keys", "--default-location", "file://"+filepath.Join(folder, "default"),
		"--allow-location", "file://"+folder)
	made := codeRun{started, key}
	made.must(t, "grant", "manage", "on", "server", "to", "key:root")
	return made
}

// TestAsCodeOfALargeCatalog exports a catalog, applies the file to an empty server, and exports
// that server. Both files must be equal. Then a plan must show exactly each change made by hand.
// make code runs it with 50 warehouses, 2,000 namespaces and 5,000 grants.
func TestAsCodeOfALargeCatalog(t *testing.T) {
	t.Parallel()
	warehouses, namespaces, grants := 3, 30, 70
	if *largeCode {
		warehouses, namespaces, grants = 50, 2000, 5000
	}
	folder := t.TempDir()
	text, err := ascode.Encode(codeOf(folder, warehouses, namespaces, grants))
	if err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, "first.yaml", string(text))
	began := time.Now()
	took := func(what string) {
		t.Logf("%s: %s", what, time.Since(began).Round(time.Millisecond))
		began = time.Now()
	}
	first := newCodeRun(t, folder)
	first.must(t, "apply", "--yes", file)
	took("apply")
	exported := first.must(t, "export", "--as-code")
	took("export")
	if got := first.run(t, "plan", file); got.code != 0 {
		t.Errorf("after apply: %+v", got)
	}
	took("plan")
	first.stop()

	second := newCodeRun(t, folder)
	whole := writeFile(t, "whole.yaml", exported)
	second.must(t, "apply", "--yes", "--prune", whole)
	took("apply what was exported")
	if again := second.must(t, "export", "--as-code"); again != exported {
		t.Errorf("the second export differs from the first:\n%s", again)
	}
	took("export it")
	if got := second.run(t, "plan", "--prune", whole); got.code != 0 || got.stdout != "Nothing to change.\n" {
		t.Errorf("plan after apply: %+v", got)
	}
	took("plan all")
	if err := os.Mkdir(filepath.Join(folder, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ by, want string }{
		{"grant write on warehouse w1 to corp:eve", "  warehouse w1\n  - grant corp:eve write\n"},
		{"revoke audit on server from key:root", "  server\n  + grant key:root audit\n"},
		{"role add r3 key:eve", "  role r3\n  - member key:eve\n"},
		{"role remove r4 key:k4", "  role r4\n  + member key:k4\n"},
		{"role create spare", "- role spare\n"},
		{"owner warehouse w1 to corp:eve", "  warehouse w1\n  - owner corp:eve\n"},
		{"set w1/ number=7", "  warehouse w1\n  ~ property number 7 -> 1\n"},
		{"mk w2/extra a=b", "- namespace w2/extra\n"},
		{"protect w1/", "  warehouse w1\n  - protected true\n"},
		{"maintain set server orphans on", "  server\n  ~ maintenance icebergUnreferencedFileRemoval enabled -> disabled\n"},
		{"maintain set warehouse w1 snapshots on", "  warehouse w1\n  - maintenance icebergSnapshotManagement enabled\n"},
		{"warehouse change w1 --allow-location file://" + folder + "/other", "  warehouse w1\n  - allowed location file://" + folder + "/other\n"},
	} {
		second.must(t, strings.Fields(row.by)...)
		got := second.run(t, "plan", "--prune", whole)
		shown, _, _ := strings.Cut(got.stdout, "1 to add, ")
		if shown, _, _ = strings.Cut(shown, "0 to add, "); got.code != cli.ExitNo || shown != row.want {
			t.Errorf("after %s: exit %d\n%s%swant\n%s", row.by, got.code, got.stdout, got.stderr, row.want)
		}
		second.must(t, "apply", "--prune", "--yes", whole)
	}
	if again := second.must(t, "export", "--as-code"); again != exported {
		t.Errorf("the export after all is another:\n%s", again)
	}
	took("changes by hand")
}

// TestAsCode applies files to a server with access control. It tests refusals, and the order of the
// steps.
func TestAsCode(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := newCodeRun(t, folder)
	write := func(name, text string) string { return writeFile(t, name, text) }
	exit := func(want int, text string, args ...string) {
		t.Helper()
		got := server.run(t, args...)
		if got.code != want || !strings.Contains(got.stdout+got.stderr, text) {
			t.Errorf("moorage %v: exit %d, want %d\n%s%swant %s", args, got.code, want, got.stdout, got.stderr, text)
		}
	}
	// The caller's right moves from a direct grant to a role. The role must get it first.
	moved := write("moved.yaml", "server: {grants: {admins: [admin, audit, manage, operate]}}\nroles: {admins: {members: ['key:root']}}\n")
	exit(0, "1/3 create role admins\n2/3 grant on server\n3/3 revoke on server\n", "apply", "--prune", "--yes", moved)
	// A plan that would take this right is refused, unless --give-up-admin permits it.
	lost := write("lost.yaml", "server: {grants: {admins: [audit, manage, operate]}}\nroles: {admins: {members: ['key:root']}}\n")
	exit(cli.ExitFailed, "your own right as an administrator", "plan", "--prune", lost)
	exit(cli.ExitFailed, "--give-up-admin", "apply", "--prune", "--yes", lost)
	exit(cli.ExitNo, "- grant admins admin", "plan", "--prune", "--give-up-admin", lost)
	exit(0, "", "plan", "--prune", moved)
	// The server refuses to let a caller read or change what it has no privilege for.
	etl := newKey(t, "etl", "--uri", server.uri, "--token", server.key)
	stranger := codeRun{server.served, etl}
	if got := stranger.run(t, "plan", moved); got.code != cli.ExitFailed || !strings.Contains(got.stderr, "403") {
		t.Errorf("a stranger: %+v", got)
	}
	// A namespace with a table stays, and so do protected objects.
	server.must(t, "grant", "create", "on", "warehouse", "default", "to", "key:root")
	server.must(t, "mk", "full")
	server.must(t, "mk", "safe")
	server.must(t, "protect", "safe.")
	if status, answer := server.request(t, "POST", "/v1/namespaces/full/tables", createTable, "Authorization", "Bearer "+server.key); status != 200 {
		t.Fatal(answer)
	}
	bare := write("bare.yaml", "warehouses: {default: {allowed-locations: ['file://"+folder+"']}}\n")
	exit(0, "namespace full stays: it has the table full.ships", "plan", "--prune", bare)
	exit(0, "namespace safe stays: namespace safe is protected", "apply", "--prune", "--yes", bare)
	// An owner in the file that is already the creator becomes the owner.
	owned := write("owned.yaml", "warehouses: {default: {namespaces: {full: {owner: 'key:root', tables: {ships: {owner: 'key:root'}}}}}}\n")
	exit(0, "2/2 change the owner of table full.ships", "apply", "--yes", owned)
	exit(0, "Nothing to change.", "plan", owned)
	// If something changes between the plan and the user's answer, apply leaves it alone.
	changed := write("changed.yaml", "warehouses: {default: {namespaces: {full: {properties: {a: b}}}}}\n")
	conflict := func(want string, do func(), args ...string) {
		t.Helper()
		var stdout, stderr lockedBuffer
		code := run(t.Context(), args, cli.Environment{
			Environ: []string{"MOORAGE_URI=" + server.uri, "MOORAGE_TOKEN=" + server.key, "HOME=" + t.TempDir(), "NO_COLOR=1"},
			Stdin:   &answering{do: do}, Stdout: &stdout, Stderr: &stderr, Columns: 80, Now: time.Now,
		})
		if code != cli.ExitConflict || !strings.Contains(stderr.String(), want) {
			t.Errorf("moorage %v: exit %d\n%s%swant %s", args, code, stdout.String(), stderr.String(), want)
		}
	}
	conflict(`moorage: change properties of namespace full: property a is "c" since the plan was made. 0 of 1 steps are made`,
		func() { server.must(t, "set", "full.", "a=c") }, "apply", changed)
	exit(cli.ExitNo, "~ property a c -> b", "plan", changed)
	// Nor does a step take the caller's right because another one was taken meanwhile.
	server.must(t, "grant", "admin", "on", "server", "to", "key:root")
	conflict("revoke on server: it would take your own right as an administrator of the server",
		func() { server.must(t, "role", "remove", "admins", "key:root") }, "apply", "--prune", moved)
	server.must(t, "role", "add", "admins", "key:root")
	exit(0, "1/1 revoke on server\n", "apply", "--prune", "--yes", moved)
	// Two roles that contain each other's members change places in one run.
	inner := write("inner.yaml", "roles: {a: {members: [b]}, b: {}}\n")
	outer := write("outer.yaml", "roles: {admins: {members: ['key:root']}, a: {}, b: {members: [a]}}\nserver: {grants: {admins: [admin, audit, manage, operate]}}\n")
	exit(0, "2/2 create role b\n", "apply", "--yes", inner)
	exit(0, "1/2 remove members of role a\n2/2 add members of role b\n", "apply", "--prune", "--yes", outer)
	exit(0, "Nothing to change.", "plan", "--prune", outer)
	// A missing secret stops all steps.
	secret := write("secret.yaml", "warehouses:\n  default: {properties: {a: b}}\n  lake: {location: 's3://lake/x', secret: {kind: access-key, env: LAKE_KEY}}\n")
	exit(cli.ExitNo, "missing secret: the environment variable LAKE_KEY is not set", "plan", secret)
	exit(cli.ExitFailed, "nothing is changed", "apply", "--yes", secret)
	exit(0, "", "plan", bare)
	// A secret in a file, in place of its variable, is not printed.
	pasted := write("pasted.yaml", `warehouses: {default: {secret: {kind: access-key, env: '{"secret-access-key": "hidden"}'}}}`)
	if got := server.run(t, "plan", pasted); got.code != cli.ExitNo || !strings.Contains(got.stdout, "missing secret: the key env") ||
		strings.Contains(got.stdout+got.stderr, "hidden") {
		t.Errorf("a secret in place of its variable: %+v", got)
	}
}

// What others change while a step is made stays: the server refuses the step.
func TestAsCodeKeepsWhatOthersChange(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := newCodeRun(t, folder)
	to, err := url.Parse(server.uri)
	if err != nil {
		t.Fatal(err)
	}
	var before func(r *http.Request) // is called before a request reaches the server
	proxy := httputil.NewSingleHostReverseProxy(to)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(r)
		proxy.ServeHTTP(w, r)
	}))
	defer between.Close()
	through := codeRun{&served{uri: between.URL}, server.key}
	server.must(t, "grant", "create", "on", "warehouse", "default", "to", "key:root")
	server.must(t, "mk", "fleet")
	server.must(t, "role", "create", "analysts")
	for _, row := range []struct {
		file, path string // the path of the request before which others change something
		by         []string
		want       string
	}{
		{"roles: {analysts: {description: they read}}", "/roles/analysts", []string{"role add analysts key:eve"},
			"change role analysts: it has changed since the plan was made"},
		{"roles: {analysts: {description: they read}}", "/roles/analysts", []string{"role drop analysts"},
			"change role analysts: it has changed since the plan was made"},
		{"roles: {analysts: {description: they read}}", "/roles/analysts", []string{"role create analysts"},
			"create role analysts: it has changed since the plan was made"},
		{"warehouses: {default: {namespaces: {fleet: {owner: 'corp:ann'}}}}", "/owner", []string{"owner namespace default.fleet to corp:eve"},
			"change the owner of namespace fleet: it has changed since the plan was made"},
		{"warehouses: {default: {properties: {note: y}}}", "/warehouses/default", []string{"warehouse change default --property note=x"},
			"change warehouse default: it has changed since the plan was made"},
		{"warehouses: {default: {namespaces: {fleet: {maintenance: {icebergCompaction: {status: enabled}}}}}}", "/policies/icebergCompaction",
			[]string{"maintain set namespace default.fleet compaction off"},
			"change maintenance of namespace fleet: it has changed since the plan was made"},
	} {
		before = func(r *http.Request) {
			if r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, row.path) {
				for _, line := range row.by {
					if got := server.run(t, strings.Fields(line)...); got.code != 0 {
						t.Errorf("moorage %s: %+v", line, got)
					}
				}
			}
		}
		got := through.run(t, "apply", "--yes", writeFile(t, "changed.yaml", row.file))
		if got.code != cli.ExitConflict || !strings.Contains(got.stderr, row.want) {
			t.Errorf("%s, then %v: %+v\nwant %s", row.file, row.by, got, row.want)
		}
	}
	if got := server.must(t, "export", "--as-code"); !strings.Contains(got, "owner: corp:eve") || strings.Contains(got, "they read") {
		t.Errorf("it is now\n%s", got)
	}
	// An owner that was set between the plan and its step is one, and not the creator.
	before = func(*http.Request) {}
	server.must(t, "mk", "harbour")
	var stdout, stderr lockedBuffer
	code := run(t.Context(), []string{"apply", writeFile(t, "owned.yaml", "warehouses: {default: {namespaces: {harbour: {owner: 'corp:ann'}}}}")},
		cli.Environment{
			Environ: []string{"MOORAGE_URI=" + server.uri, "MOORAGE_TOKEN=" + server.key, "HOME=" + t.TempDir(), "NO_COLOR=1"},
			Stdin:   &answering{do: func() { server.must(t, "owner", "namespace", "default.harbour", "to", "corp:eve") }}, Stdout: &stdout,
			Stderr: &stderr, Columns: 80, Now: time.Now,
		})
	if want := `owner is "corp:eve" since the plan was made`; code != cli.ExitConflict || !strings.Contains(stderr.String(), want) {
		t.Errorf("exit %d\n%s%swant %s", code, stdout.String(), stderr.String(), want)
	}
}
