package archtest

import (
	"strings"
)

// ruleCase is the source of one package, and the number of faults that a rule finds in it.
type ruleCase struct {
	name  string
	rule  string
	dir   string
	files map[string]string
	want  int
}

// ruleCases returns source that each rule must reject, and source that it must accept.
func ruleCases() []ruleCase {
	source := func(text string) map[string]string { return map[string]string{"x.go": text} }
	test := func(text string) map[string]string { return map[string]string{"x_test.go": text} }
	return []ruleCase{
		{"upwards", "imports", "locks", source("package locks\nimport _ \"moorage/catalog\""), 1},
		{"sibling", "imports", "registry/pebble", source("package pebble\nimport _ \"moorage/registry/memory\""), 1},
		{"past the catalog", "imports", "rest", source("package rest\nimport _ \"moorage/registry\""), 1},
		{"root imports", "imports", "", source("package moorage\nimport _ \"moorage/internal/worker\""), 1},
		{"downwards", "imports", "catalog", source("package catalog\nimport (\n_ \"moorage\"\n_ \"moorage/locks\"\n_ \"moorage/internal/worker\"\n)"), 0},
		{"test of a layer", "imports", "catalog", test("package catalog\nimport _ \"moorage/registry/memory\""), 0},
		{"unknown package", "imports", "util", source("package util"), 1},

		{"log message that no page explains", "log message", "locks", source("package locks\nimport \"log/slog\"\nfunc f(l *slog.Logger) { l.Warn(\"shown nowhere\"); l.Info(\"shown nowhere\") }"), 1},
		{"log message that is made", "log message", "locks", source("package locks\nimport \"log/slog\"\nfunc f(l *slog.Logger, what string) { l.Error(\"store \" + what) }"), 1},
		{"log message of the page", "log message", "locks", source("package locks\nimport \"log/slog\"\nfunc f(l *slog.Logger) { l.Warn(\"run failed\", \"error\", 1) }"), 0},

		{"foreign driver", "drivers", "catalog", source("package catalog\nimport _ \"github.com/cockroachdb/pebble/v2\""), 1},
		{"http in the catalog", "drivers", "catalog", source("package catalog\nimport _ \"net/http\""), 1},
		{"types outside of the schema", "drivers", "metadata", source("package metadata\nimport _ \"github.com/apache/iceberg-go\""), 1},
		{"types in the schema", "drivers", "metadata/schema", source("package schema\nimport _ \"github.com/apache/iceberg-go\""), 0},
		{"own driver", "drivers", "registry/pebble", source("package pebble\nimport _ \"github.com/cockroachdb/pebble/v2\""), 0},

		{"impure", "forbidden imports", "metadata", source("package metadata\nimport (\n_ \"context\"\n_ \"io/fs\"\n_ \"io\"\n)"), 2},
		{"impure schema", "forbidden imports", "metadata/schema", source("package schema\nimport _ \"os\""), 1},
		{"dot import", "forbidden imports", "rest", source("package rest\nimport . \"fmt\""), 1},

		{"suite in the server", "test helpers", "catalog", source("package catalog\nimport _ \"moorage/testkit/registrytest\""), 1},
		{"testing in a suite", "test helpers", "testkit/registrytest", source("package registrytest\nimport _ \"testing\""), 0},

		{"no package comment", "package doc", "locks", source("package locks"), 1},
		{"wrong package comment", "package doc", "locks", source("// Locks.\npackage locks"), 1},
		{"package comment", "package doc", "locks", source("// Package locks locks.\npackage locks"), 0},
		{"command comment", "package doc", "cmd/moorage", source("// Command moorage runs.\npackage main"), 0},
		{"two package comments", "package doc", "locks", map[string]string{
			"a.go": "// Package locks locks.\npackage locks", "b.go": "// Package locks locks.\npackage locks"}, 1},

		{"undocumented", "exported doc", "locks", source("package locks\nfunc F() {}\ntype T int\nfunc (*T) M() {}\nvar V = 1\nconst C = 1"), 5},
		{"documented", "exported doc", "locks", source("package locks\n// F does.\nfunc F() {}\n// Both.\nconst (\nA = 1\nB = 2\n)\nvar (\nV = 1 // v\n)"), 0},
		{"hidden", "exported doc", "locks", source("package locks\ntype t int\nfunc (t) M() {}\nfunc f() {}"), 0},

		{"clock", "banned", "locks", source("package locks\nimport \"time\"\nvar _ = time.Now()"), 1},
		{"clock under another name", "banned", "locks", source("package locks\nimport clock \"time\"\nfunc f() { _ = clock.Since(clock.Time{}) }"), 1},
		{"clock as a default", "banned", "locks", source("package locks\nimport \"time\"\nvar now = time.Now"), 0},
		{"clock in cmd", "banned", "cmd/moorage", source("package main\nimport \"time\"\nvar _ = time.Now()"), 0},
		{"a field that is called time", "banned", "locks", source("package locks\nfunc f(time struct{ Now func() int }) { time.Now() }"), 0},
		{"sleep in a test", "banned", "locks", test("package locks\nimport \"time\"\nfunc f() { time.Sleep(1) }"), 1},
		{"sleep by a fake clock", "banned", "locks", test("package locks\nimport (\"time\"; \"testing/synctest\")\nfunc f() { synctest.Test(nil, func() { time.Sleep(1) }) }"), 0},
		{"clock in a suite", "banned", "testkit/locktest", source("package locktest\nimport \"time\"\nvar _ = time.Now()"), 0},
		{"unseeded", "banned", "locks", test("package locks\nimport \"math/rand/v2\"\nfunc f() { _ = rand.IntN(3); _ = rand.New(rand.NewPCG(1, 2)) }"), 1},
		{"environment", "banned", "catalog", source("package catalog\nimport \"os\"\nvar _ = os.Getenv(\"X\")"), 1},
		{"print", "banned", "catalog", source("package catalog\nimport \"fmt\"\nfunc f() { fmt.Println() }"), 1},
		{"global logger", "banned", "catalog", source("package catalog\nimport (\"log\"; \"log/slog\")\nfunc f() { log.Fatal(); slog.Info(\"\") }"), 2},

		{"privilege", "banned", "catalog", source("package catalog\nimport \"moorage/access\"\nvar _ = access.Drop"), 1},
		{"only seen", "banned", "catalog", source("package catalog\nimport \"moorage/access\"\nvar _ = access.See"), 0},
		{"privilege in the table", "banned", "catalog/gate", source("package gate\nimport \"moorage/access\"\nvar _ = access.Drop"), 0},

		{"init", "init", "locks", source("package locks\nfunc init() {}"), 1},
		{"method called init", "init", "locks", source("package locks\ntype t int\nfunc (t) init() {}"), 0},

		{"written variables", "mutable variable", "locks", source("package locks\nvar n = 1\nvar m = map[int]int{}\nvar p = []int{1}\n" +
			"func f() { n++; m[1] = 2; delete(m, 1); g(&n); p[0]++; for p[0] = range 3 {} }\nfunc g(*int) {}"), 6},
		{"variables made to change", "mutable variable", "locks", source("package locks\nimport (\"sync\"; \"sync/atomic\")\nvar mu sync.Mutex\nvar c = new(atomic.Int64)\nvar hook func()"), 4},
		{"embedded files", "mutable variable", "locks", source("package locks\nimport \"embed\"\n//go:embed sql\nvar sql embed.FS"), 0},
		{"pool", "mutable variable", "locks", source("package locks\nimport \"sync\"\nvar pool = sync.Pool{}"), 0},
		{"read variables", "mutable variable", "locks", source("package locks\nimport \"errors\"\nvar ErrX = errors.New(\"x\")\nvar m = map[int]int{1: 2}\n" +
			"var _ error = (*e)(nil)\nfunc f() int { m := m[1]; m = 3; for range 3 {}; return m }\ntype e struct{ error }"), 0},

		{"text of an error", "error text", "locks", source("package locks\nimport \"strings\"\nfunc f(err error) bool { return strings.Contains(err.Error(), \"x\") }"), 1},
		{"other text", "error text", "locks", source("package locks\nimport \"strings\"\nfunc f(s string) bool { return strings.Contains(s, \"x\") }"), 0},

		{"context in a struct", "context field", "locks", source("package locks\nimport \"context\"\ntype t struct{ ctx context.Context }"), 1},
		{"context in a struct of a test", "context field", "locks", test("package locks\nimport \"context\"\ntype t struct{ ctx context.Context }"), 0},
		{"context in an interface", "context field", "locks", source("package locks\nimport \"context\"\ntype t interface{ Context() context.Context }"), 0},

		{"value in a context", "context value", "catalog", source("package catalog\nimport \"context\"\nvar f = context.WithValue\nfunc g() { context.WithValue(nil, 1, 2) }"), 2},
		{"value of a request", "context value", "", map[string]string{"context.go": "package moorage\nimport \"context\"\nvar f = context.WithValue"}, 0},
		{"value in the context of a test", "context value", "catalog", test("package catalog\nimport \"context\"\nvar f = context.WithValue"), 0},

		{"skip", "skip", "locks", test("package locks\nimport \"testing\"\nfunc f(t *testing.T) { t.Skip(); t.Skipf(\"\"); g(t.SkipNow) }"), 3},
		{"other skip", "skip", "locks", source("package locks\nfunc f(d decoder) { d.Skip() }"), 0},

		{"second place for path parameters", "path parameter", "rest", source("package rest\nimport (\"net/http\"; \"github.com/go-chi/chi/v5\")\nfunc f(r *http.Request) { chi.URLParam(r, \"\"); r.PathValue(\"\") }"), 2},
		{"the place for path parameters", "path parameter", "internal/web", map[string]string{
			"params.go": "package web\nimport \"github.com/go-chi/chi/v5\"\nfunc f() { chi.URLParam(nil, \"\") }"}, 0},

		{"unportable statements", "sql", "registry/postgres", source("package postgres\nconst a, b = `WITH x AS (INSERT`, \"INSERT on  conflict DO NOTHING\"\nvar c = \"SELECT pg_try_advisory_lock(1), xmin\"\n"), 4},
		{"portable statements", "sql", "registry/postgres", source("package postgres\nconst a = `CREATE TABLE x (y int) WITH (fillfactor = 50)`"), 0},
		{"no statements", "sql", "rest", source("package rest\nconst a = `ON CONFLICT`"), 0},

		{"todo", "todo", "locks", source("package locks\n// TODO later\n// TODO(#7): later"), 1},

		{"wide comments", "prose", "ledger", source("package ledger\n//" + strings.Repeat(" word", 20) + "\n// " + strings.Repeat("x", 120) +
			"\nfunc f() {\n\t//" + strings.Repeat(" word", 19) + "\n\tg() //" + strings.Repeat(" word", 19) + "\n}"), 2},
		{"wide code", "prose", "ledger", source("package ledger\nvar a = 1 +" + strings.Repeat(" 1 +", 28) + " 1\nvar b = 1 +" + strings.Repeat(" 1 +", 26) + " 1"), 1},
		{"wide code in a test", "prose", "ledger", test("package ledger\nvar a = 1 +" + strings.Repeat(" 1 +", 28) + " 1"), 0},
		{"wide comment in a test", "prose", "ledger", test("package ledger\n//" + strings.Repeat(" word", 20)), 1},
		{"crooked comments", "prose", "ledger", source("package ledger\n// f tells\n// whether it is so, amid all. Whoever asks; Be It so.\nfunc f() {}"), 4},
		{"crooked texts", "prose", "ledger", source("package ledger\nconst a, b = \"made anew\", `all\n\tthe same`"), 2},
		{"crooked text in a test", "prose", "ledger", test("package ledger\nconst a = \"made anew\""), 0},
		{"plain words", "prose", "ledger", source("package ledger\n// f reports whether it may be its own.\nconst a = \"maybe it, butfor, thereof which\""), 0},
		{"long sentence", "prose", "ledger", source("package ledger\n" + strings.Repeat("// one two, three; four\n", 10) + "// forty-one.\nvar a int"), 1},
		{"long sentence in an old comment", "prose", "ledger", source("package ledger\n/*\n" + strings.Repeat("one two three four\n", 11) + "*/\nvar a int"), 1},
		{"sentences of 40 words", "prose", "ledger", source("package ledger\n" + strings.Repeat("// one two three four\n", 10) + "// . Next (one two.) Three\n//\n" +
			strings.Repeat("// one two three four\n", 10) + "//   - item\n" + strings.Repeat("//     one two three four\n", 9) + "//   - item\n//\n//\tcode\nvar a int"), 0},

		{"does not compile", "types", "locks", source("package locks\nimport \"moorage/registry\"\nvar a int = registry.Key{}"), 1},
		{"compiles", "types", "locks", map[string]string{"x.go": "package locks\nimport \"moorage/registry\"\nvar A registry.Key",
			"y.go": "//go:build plan9\n\npackage locks\nvar A int", "x_test.go": "package locks\nvar A int"}, 0},

		{"Apply past the ledger", "one caller of Apply", "catalog", source(stores + "func f(s registry.Store, o own) { s.Apply(nil, registry.Batch{}); g(o.Apply); _ = registry.Store.Apply }\n" +
			"func g(any) {}"), 3},
		{"Apply past the ledger in a method", "one caller of Apply", "catalog", source(stores + "type t struct{ registry.Store }\nfunc (x t) apply() { x.Apply(nil, registry.Batch{}) }"), 1},
		{"Apply in the ledger", "one caller of Apply", "ledger", source(stores + "func f(s registry.Store) { s.Apply(nil, registry.Batch{}) }"), 0},
		{"Apply of the ledger", "one caller of Apply", "catalog", source("package catalog\nimport \"moorage/ledger\"\nfunc f(l *ledger.Ledger) { l.Apply(nil, ledger.Mutation{}) }"), 0},
		{"Apply that decorates", "one caller of Apply", "cmd/moorage", source(stores + "type t struct{ registry.Store }\n" +
			"func (x t) Apply(ctx context.Context, b registry.Batch) ([]registry.ETag, error) { return x.Store.Apply(ctx, b) }"), 0},
		{"Apply in a test", "one caller of Apply", "catalog", test(stores + "func f(s registry.Store) { s.Apply(nil, registry.Batch{}) }"), 0},

		{"deletion past documents", "one caller of deletion", "maintenance/purge", source("package purge\nimport \"moorage/storage\"\nfunc f(s storage.Store) { s.Delete(nil, \"a\") }"), 1},
		{"deletion elsewhere in documents", "one caller of deletion", "catalog/documents", source("package documents\nimport \"moorage/storage\"\nfunc f(s storage.Store) { s.Delete(nil, \"a\") }"), 1},
		{"deletion in its place", "one caller of deletion", "catalog/documents", map[string]string{
			"delete.go": "package documents\nimport \"moorage/storage\"\nfunc f(s storage.Store) { s.Delete(nil, \"a\") }"}, 0},
		{"deletion that decorates", "one caller of deletion", "storage", source("package storage\nimport \"context\"\ntype s struct{ in interface{ Delete(context.Context, ...string) error } }\n" +
			"func (x s) Delete(ctx context.Context, files ...string) error { return x.in.Delete(ctx, files...) }"), 0},
		{"other deletions", "one caller of deletion", "catalog", source("package catalog\nimport (\"moorage/registry\"; \"slices\")\nvar a, b = registry.Delete(registry.Key{}), slices.Delete([]int{1}, 0, 1)"), 0},

		{"system caller in a face", "system caller", "rest", source("package rest\nimport \"moorage\"\nvar a, f, b = moorage.System(\"x\"), moorage.System, moorage.Caller{Name: \"system:x\"}"), 3},
		{"system caller of a job", "system caller", "maintenance/purge", source("package purge\nimport \"moorage\"\nvar a = moorage.System(\"x\")"), 0},
		{"system caller in a test", "system caller", "rest", test("package rest\nimport \"moorage\"\nvar a = moorage.System(\"x\")"), 0},
		{"other callers", "system caller", "identity", source("package identity\nimport \"moorage\"\nvar a, b = moorage.Anonymous(), \"system:serviceaccount:\""), 0},

		{"wrong operations", "operation", "catalog", source("package catalog\nimport \"moorage\"\nfunc F(err error, x string) error {\nconst op = \"catalog.G\"\n_ = moorage.Annotate(op, x, err)\n" +
			"func() { _ = moorage.E(\"read it\", x, 0, err); _ = moorage.E(\"rest.F\", x, 0, err) }()\n" +
			"g(\"catalog.f\")\n_ = moorage.E(x, x, 0, err)\nreturn &moorage.Error{Op: \"catalog.G\"} }\nfunc g(op string) {}"), 6},
		{"operations", "operation", "catalog/documents", source("package documents\nimport \"moorage\"\ntype t int\nfunc (t) F(err error) error {\nconst op = \"documents.F\"\n_ = moorage.Annotate(op, \"\", err)\n" +
			"func() { _ = moorage.E(\"documents.F\", \"\", 0, err) }()\nh(1)\nreturn moorage.Annotate(\"\", \"\", err) }\n" +
			"func g(op string, err error) error { return moorage.E(op, \"\", 0, err) }\nfunc h(op int) {}"), 0},
		{"operation of the command", "operation", "cmd/moorage", source("package main\nimport \"moorage\"\nfunc f() { _ = moorage.E(\"moorage.f\", \"\", 0, nil) }"), 0},

		{"no example", "example", "metadata", source("package metadata"), 2},
		{"example without an output", "example", "ledger", test("package ledger_test\nfunc ExampleLedger() {}"), 1},
		{"examples", "example", "metadata", test("package metadata_test\nfunc ExampleDocument() {\n// Output: 1\n}\nfunc ExampleViewDocument() {\n// Output: 1\n}"), 0},

		{"long file", "file size", "locks", source("package locks\n" + strings.Repeat("\n", 800)), 1},
		{"full file", "file size", "locks", source("package locks\n" + strings.Repeat("\n", 799)), 0},
	}
}

// stores is the beginning of a package catalog that declares interfaces like registry.Store.
const stores = "package catalog\nimport (\"context\"; \"moorage/registry\")\ntype own interface{ Apply(context.Context, registry.Batch) ([]registry.ETag, error) }\n"
