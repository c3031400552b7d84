package storagetest

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"moorage/storage"
)

// ErrDenied is the error of an Engine if the storage refused a request because of the credential.
var ErrDenied = errors.New("storagetest: denied by the storage")

// Engine uses a credential as an engine would, without the store. Its methods return ErrDenied if
// the storage refuses a request because of the credential. They return other errors of the storage
// unchanged.
type Engine interface {
	Read(ctx context.Context, location string) error
	Write(ctx context.Context, location string) error
	// List lists the objects that begin with prefix, which may end in the middle of a name.
	List(ctx context.Context, prefix string) error
	// Delete deletes an object with a bulk delete.
	Delete(ctx context.Context, location string) error
}

// Vending is a store whose credentials are tested.
type Vending struct {
	Store interface {
		storage.Store
		storage.Vender
	}
	// Root is a location that the store can use. There must be no files below it.
	Root string
	// Engine returns an Engine that uses credential.
	Engine func(t *testing.T, credential storage.Credential) Engine
	// Refuses reports whether the store may refuse a name, because no policy can express it or the
	// storage does not support it.
	Refuses func(name string) bool
	// Impossible reports whether no object of the storage can have the name.
	Impossible func(name string) bool
	// ProtectsMetadata is true if writers cannot change the catalog's own files.
	ProtectsMetadata bool
}

// lookAlikes returns names of tables that a policy may confuse with others. The suite makes
// siblings of each.
func lookAlikes() []string {
	return []string{
		"tab", "table", "a", "a/", "a*", "ab", "$", "${aws:username}", "${*}", "'", `"`, `a"b`, "%2F", "a%2Fb",
		"+", "a+b", " ", "a b", "é", "日本", "a//b", "[a]", "a|b", `a\b`, "a,b", "<a>", "a&b", "..a", "~",
		"it's || true", "a') || ('b",
	}
}

// siblingsOf returns names that differ from name, but may be confused with it.
func siblingsOf(name string) []string {
	name = strings.TrimSuffix(name, "/")
	_, last := utf8.DecodeLastRuneInString(name)
	candidates := []string{
		name + "le", name + "b", name + ".", name + "*", name[:len(name)-last], "x" + name, strings.ToUpper(name),
		strings.ReplaceAll(name, "*", "b"), strings.ReplaceAll(name, "${aws:username}", "mrg-suite"),
		strings.ReplaceAll(name, "${*}", "*"), strings.ReplaceAll(name, "//", "/"), strings.ReplaceAll(name, "+", " "),
		url.PathEscape(name), url.QueryEscape(name),
	}
	if decoded, err := url.PathUnescape(name); err == nil {
		candidates = append(candidates, decoded)
	}
	own := storage.Location{Scheme: storage.SchemeS3, Path: "/" + name}
	var siblings []string
	for _, candidate := range candidates {
		parsed, err := storage.Parse("s3://b/" + candidate)
		parsed.Authority = ""
		isEmpty := strings.Trim(candidate, "/. ") == ""
		isOwn := own.Contains(parsed) || parsed.Contains(own)
		if err != nil || isEmpty || isOwn || slices.Contains(siblings, candidate) {
			continue
		}
		siblings = append(siblings, candidate)
	}
	return siblings
}

// RunVending tests that the credentials of a store reach their scope, and that the storage refuses
// them everywhere else.
func RunVending(t *testing.T, open func(t *testing.T) Vending) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, v Vending)
	}{
		{"LookAlikes", testLookAlikes},
		{"ReadOnly", testReadOnly},
		{"Above", testAbove},
		{"SeveralLocations", testSeveralLocations},
		{"ProtectedMetadata", testProtectedMetadata},
		{"Detours", testDetours},
		{"Expiry", testExpiry},
		{"VendOutside", testVendOutside},
		{"ProbeVending", testProbeVending},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

// testLookAlikes makes a table of each odd name. The table's credentials must work there, or the
// store must refuse to issue them. With these credentials, the storage must deny access to each
// sibling.
func testLookAlikes(t *testing.T, v Vending) {
	for _, name := range lookAlikes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v.testName(t, name)
		})
	}
}

func (v Vending) testName(t *testing.T, name string) {
	// Each name has its own folder, so that names do not share siblings.
	place := storage.Join(v.Root, "of-"+storage.EscapeBelow(v.Root, name))
	location := storage.Join(place, name)
	scope := storage.Scope{Locations: []string{location}, Write: true, Session: "suite"}
	credential, err := v.Store.Vend(t.Context(), scope)
	if errors.Is(err, storage.ErrUnscopable) || errors.Is(err, storage.ErrLocation) {
		if v.Refuses == nil || !v.Refuses(name) {
			t.Fatalf("Vend(%q): %v", location, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("Vend(%q): %v", location, err)
	}
	engine := v.Engine(t, credential)
	if v.Impossible == nil || !v.Impossible(name) {
		v.mustReach(t, engine, location)
	}
	for _, sibling := range siblingsOf(name) {
		if v.Impossible != nil && v.Impossible(sibling) {
			continue
		}
		v.mustDeny(t, engine, storage.Join(place, sibling))
	}
}

// mustReach uses every kind of request inside a location.
func (v Vending) mustReach(t *testing.T, engine Engine, location string) {
	t.Helper()
	file := storage.Join(location, "data", "a.parquet")
	for _, step := range []struct {
		what string
		err  error
	}{
		{"write", engine.Write(t.Context(), file)},
		{"read", engine.Read(t.Context(), file)},
		{"list", engine.List(t.Context(), storage.Trim(location)+"/")},
		{"list deeper in", engine.List(t.Context(), storage.Join(location, "da"))},
	} {
		if step.err != nil {
			t.Errorf("%s in %q: %v", step.what, location, step.err)
		}
	}
	if err := engine.Delete(t.Context(), file); err != nil {
		t.Errorf("delete in %q: %v", location, err)
	}
	if _, err := v.Store.Stat(t.Context(), file); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%q was deleted, and Stat says %v", file, err)
	}
}

// mustDeny uses every kind of request in a location outside the credential's scope.
func (v Vending) mustDeny(t *testing.T, engine Engine, location string) {
	t.Helper()
	file := storage.Join(location, "data", "a.parquet")
	if err := v.Store.Create(t.Context(), file, []byte("theirs")); err != nil {
		t.Errorf("make %q for the sibling: %v", file, err)
		return
	}
	for _, step := range []struct {
		what string
		err  error
	}{
		{"read", engine.Read(t.Context(), file)},
		{"write over", engine.Write(t.Context(), file)},
		{"write beside", engine.Write(t.Context(), file+".new")},
		{"list", engine.List(t.Context(), storage.Trim(location)+"/")},
		{"delete", engine.Delete(t.Context(), file)},
	} {
		if !errors.Is(step.err, ErrDenied) {
			t.Errorf("%s %q: %v; want ErrDenied", step.what, file, step.err)
		}
	}
	mustHold(t, v.Store, file, "theirs")
	mustMiss(t, v.Store, file+".new")
}

// mustVend returns an engine with a credential for scope.
func (v Vending) mustVend(t *testing.T, scope storage.Scope) Engine {
	t.Helper()
	credential, err := v.Store.Vend(t.Context(), scope)
	if err != nil {
		t.Fatalf("Vend(%+v): %v", scope, err)
	}
	return v.Engine(t, credential)
}

func testReadOnly(t *testing.T, v Vending) {
	location := storage.Join(v.Root, "t")
	file := storage.Join(location, "data", "a.parquet")
	mustCreate(t, v.Store, file, "body")
	engine := v.mustVend(t, storage.Scope{Locations: []string{location}, Session: "suite"})
	if err := engine.Read(t.Context(), file); err != nil {
		t.Errorf("read: %v", err)
	}
	if err := engine.List(t.Context(), location+"/"); err != nil {
		t.Errorf("list: %v", err)
	}
	for what, err := range map[string]error{
		"write over": engine.Write(t.Context(), file), "write beside": engine.Write(t.Context(), file+".new"),
		"delete": engine.Delete(t.Context(), file),
	} {
		if !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v; want ErrDenied", what, err)
		}
	}
	mustHold(t, v.Store, file, "body")
}

// testAbove tries requests above a location.
func testAbove(t *testing.T, v Vending) {
	location := storage.Join(v.Root, "n", "t")
	engine := v.mustVend(t, storage.Scope{Locations: []string{location}, Write: true, Session: "suite"})
	parsed, err := storage.Parse(v.Root)
	if err != nil {
		t.Fatal(err)
	}
	bucket := storage.Location{Scheme: parsed.Scheme, Authority: parsed.Authority, Path: "/"}.String()
	for _, prefix := range []string{location, storage.Join(v.Root, "n") + "/", v.Root + "/", v.Root, bucket} {
		if err := engine.List(t.Context(), prefix); !errors.Is(err, ErrDenied) {
			t.Errorf("list %q: %v; want ErrDenied", prefix, err)
		}
	}
	for _, above := range []string{storage.Join(v.Root, "n", "a"), storage.Join(v.Root, "a")} {
		v.mustDeny(t, engine, above)
	}
}

func testSeveralLocations(t *testing.T, v Vending) {
	first, second := storage.Join(v.Root, "n", "t"), storage.Join(v.Root, "m", "u")
	engine := v.mustVend(t, storage.Scope{Locations: []string{first, second}, Write: true, Session: "suite"})
	v.mustReach(t, engine, first)
	v.mustDeny(t, engine, storage.Join(v.Root, "m", "uu"))

	// These are too many locations for a policy, but a policy always includes the first.
	many := []string{first}
	for i := range 200 {
		many = append(many, storage.Join(v.Root, strings.Repeat("long", 8), strings.Repeat("x", 1+i%50), "u"))
	}
	v.mustReach(t, v.mustVend(t, storage.Scope{Locations: many, Write: true, Session: "suite"}), first)
}

// testProtectedMetadata writes files with the catalog's names.
func testProtectedMetadata(t *testing.T, v Vending) {
	location := storage.Join(v.Root, "t")
	metadata := storage.Join(location, "metadata", "00001-a.metadata.json")
	mustCreate(t, v.Store, metadata, "body")
	engine := v.mustVend(t, storage.Scope{Locations: []string{location}, Write: true, Session: "suite"})
	if err := engine.Read(t.Context(), metadata); err != nil {
		t.Errorf("read a metadata file: %v", err)
	}
	if err := engine.Write(t.Context(), storage.Join(location, "metadata", "snap-1.avro")); err != nil {
		t.Errorf("write a manifest list: %v", err)
	}
	if !v.ProtectsMetadata {
		return
	}
	// As if in a write.metadata.path, present or former
	elsewhere := storage.Join(location, "own", "00001-a.metadata.json")
	mustCreate(t, v.Store, elsewhere, "body")
	for what, err := range map[string]error{
		"write over one elsewhere": engine.Write(t.Context(), elsewhere),
		"delete elsewhere":         engine.Delete(t.Context(), elsewhere),
		"write over":               engine.Write(t.Context(), metadata), "delete": engine.Delete(t.Context(), metadata),
		"write beside": engine.Write(t.Context(), storage.Join(location, "metadata", "00002-b.metadata.json")),
	} {
		if !errors.Is(err, ErrDenied) {
			t.Errorf("%s a metadata file: %v; want ErrDenied", what, err)
		}
	}
	mustHold(t, v.Store, metadata, "body")
	mustHold(t, v.Store, elsewhere, "body")
}

// testDetours uses names that a server may clean after it has checked the policy.
func testDetours(t *testing.T, v Vending) {
	location := storage.Join(v.Root, "t")
	sibling := storage.Join(v.Root, "u", "data", "a.parquet")
	metadata := storage.Join(location, "metadata", "00001-a.metadata.json")
	mustCreate(t, v.Store, sibling, "theirs")
	mustCreate(t, v.Store, metadata, "ours")
	engine := v.mustVend(t, storage.Scope{Locations: []string{location}, Write: true, Session: "suite"})
	for _, detour := range []string{"/../u/data/a.parquet", "/x/../../u/data/a.parquet", "/./../u/data/a.parquet",
		"/%2e%2e/u/data/a.parquet", "//../u/data/a.parquet", `/..\u\data\a.parquet`} {
		if err := engine.Read(t.Context(), location+detour); err == nil {
			t.Errorf("read %q: no error", location+detour)
		}
		// The server decides whether these requests succeed; the suite only checks that they have
		// no effect elsewhere.
		_ = engine.Write(t.Context(), location+detour)
		_ = engine.Delete(t.Context(), location+detour)
	}
	for _, detour := range []string{"//metadata/00001-a.metadata.json", "/metadata//00001-a.metadata.json",
		"/./metadata/00001-a.metadata.json", "/x/../metadata/00001-a.metadata.json",
		"/Metadata/../metadata/00001-a.metadata.json"} {
		_ = engine.Write(t.Context(), location+detour)
		_ = engine.Delete(t.Context(), location+detour)
	}
	mustHold(t, v.Store, sibling, "theirs")
	if v.ProtectsMetadata {
		mustHold(t, v.Store, metadata, "ours")
	}
}

func testExpiry(t *testing.T, v Vending) {
	location := storage.Join(v.Root, "t")
	for _, asked := range []time.Duration{0, 15 * time.Minute, time.Hour} {
		begin := time.Now()
		session := "a caller: é/" + strings.Repeat("x", 100)
		credential, err := v.Store.Vend(t.Context(),
			storage.Scope{Locations: []string{location}, Session: session, Duration: asked})
		if err != nil {
			t.Fatal(err)
		}
		if asked == 0 {
			asked = time.Hour
		}
		if left := credential.Expires.Sub(begin); left < asked/2 || left > asked+time.Minute {
			t.Errorf("asked for %s, and it ends in %s", asked, left)
		}
	}
}

func testVendOutside(t *testing.T, v Vending) {
	for _, outside := range []string{v.Root + "x", storage.Join(v.Root+"x", "t"), "s3://another-bucket/t"} {
		scope := storage.Scope{Locations: []string{storage.Join(v.Root, "t"), outside}, Session: "suite"}
		if _, err := v.Store.Vend(t.Context(), scope); !errors.Is(err, storage.ErrOutside) {
			t.Errorf("Vend for %q: %v; want ErrOutside", outside, err)
		}
	}
	if _, err := v.Store.Vend(t.Context(), storage.Scope{Session: "suite"}); !errors.Is(err, storage.ErrUnscopable) {
		t.Errorf("Vend for nothing: %v; want ErrUnscopable", err)
	}
}

func testProbeVending(t *testing.T, v Vending) {
	if err := v.Store.ProbeVending(t.Context()); err != nil {
		t.Error(err)
	}
}
