package archtest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// everything in a row of the import table allows the package to import all others.
const everything = "*"

// importTable returns which packages of this module each package may import. Tests are exempt. Each
// package may also import the root package and internal/worker. A package that is missing here is a
// fault.
func importTable() map[string][]string {
	return map[string][]string{
		"":                      {}, // the root
		"internal/worker":       {},
		"internal/archtest":     {},
		"internal/loopback":     {},
		"internal/jsontext":     {},
		"internal/trace":        {},
		"manifests":             {},
		"internal/term":         {},
		"demo":                  {"catalog", "internal/jsontext", "manifests", "metadata", "storage"},
		"migrations":            {},
		"access":                {},
		"metadata":              {"internal/jsontext", "metadata/schema"},
		"metadata/schema":       {"internal/jsontext"},
		"secrets":               {},
		"locks":                 {},
		"storage":               {},
		"secrets/keyservice":    {"internal/loopback", "secrets"},
		"storage/cloud":         {"storage"},
		"storage/file":          {"storage"},
		"storage/memory":        {"storage"},
		"storage/adls":          {"storage", "storage/cloud"},
		"storage/gcs":           {"storage", "storage/cloud"},
		"storage/s3":            {"storage", "storage/cloud"},
		"registry":              {"internal/jsontext"},
		"registry/memory":       {"registry"},
		"registry/pebble":       {"registry"},
		"registry/postgres":     {"registry", "migrations"},
		"ledger":                {"internal/trace", "registry"},
		"txlog":                 {"ledger", "registry"},
		"cluster":               {"internal/trace"},
		"audit":                 {"internal/jsontext"},
		"catalog/gate":          {"access", "locks", "registry"},
		"catalog/activity":      {"registry"},
		"catalog/directory":     {"access", "catalog/gate", "ledger", "registry", "storage"},
		"catalog/claims":        {"ledger", "registry", "storage"},
		"catalog/documents":     {"catalog/directory", "ledger", "registry", "storage", "metadata"},
		"catalog/rebase":        {"catalog/directory", "catalog/documents", "registry", "storage", "metadata", "manifests"},
		"catalog/commit":        {"internal/trace", "access", "catalog/activity", "catalog/gate", "catalog/directory", "catalog/claims", "catalog/documents", "ledger", "txlog", "registry", "locks", "storage", "metadata"},
		"catalog/grants":        {"access", "catalog/commit", "catalog/directory", "catalog/gate", "ledger", "registry"},
		"catalog/history":       {"access", "catalog/directory", "catalog/gate", "ledger", "registry"},
		"catalog/vending":       {"catalog/claims", "catalog/directory", "catalog/documents", "catalog/gate", "metadata", "registry", "storage"},
		"catalog/rows/parquet":  {},
		"catalog/rows":          {"catalog/rows/parquet", "internal/jsontext", "manifests", "metadata", "metadata/schema", "storage"},
		"catalog/browse":        {"access", "catalog/activity", "catalog/directory", "catalog/documents", "catalog/gate", "ledger", "manifests", "metadata", "registry", "storage"},
		"catalog/warehouses":    {"access", "catalog/claims", "catalog/commit", "catalog/directory", "catalog/documents", "catalog/gate", "catalog/rebase", "catalog/vending", "ledger", "metadata", "registry", "secrets", "storage"},
		"catalog":               {"access", "catalog/activity", "catalog/browse", "catalog/gate", "catalog/grants", "catalog/history", "catalog/directory", "catalog/claims", "catalog/documents", "catalog/rebase", "catalog/commit", "catalog/rows", "catalog/vending", "catalog/warehouses", "ledger", "txlog", "registry", "locks", "secrets", "storage", "metadata"},
		"maintenance/purge":     {"catalog/claims", "catalog/documents", "ledger", "maintenance/jobs", "txlog", "registry", "storage", "metadata", "manifests"},
		"maintenance/jobs":      {"internal/trace", "catalog", "catalog/documents", "catalog/gate", "ledger", "manifests", "metadata", "registry", "storage", "txlog"},
		"maintenance/leases":    {"catalog", "ledger", "maintenance/due", "maintenance/jobs", "maintenance/policy", "metadata", "registry"},
		"maintenance/policy":    {"catalog", "catalog/gate", "ledger", "registry"},
		"maintenance/due":       {"catalog", "catalog/gate", "ledger", "maintenance/jobs", "maintenance/policy", "metadata", "registry", "storage"},
		"maintenance/retention": {"catalog/claims", "ledger", "registry", "storage"},
		"check":                 {"ledger", "txlog", "registry", "storage"},
		"recovery":              {"ledger", "txlog", "registry", "locks"},
		"identity":              {"internal/loopback"},
		"internal/web":          {"internal/loopback", "internal/jsontext", "internal/trace"},
		"rest":                  {"catalog", "catalog/vending", "catalog/warehouses", "catalog/gate", "cluster", "identity", "metadata", "internal/jsontext", "internal/web"},
		"internal/cli": {"access", "catalog", "identity", "internal/loopback", "internal/term", "management/client", "registry", "storage",
			"secrets/keyservice", "storage/adls", "storage/gcs", "storage/s3"},
		"management":          {"access", "audit", "catalog", "catalog/activity", "catalog/browse", "catalog/vending", "catalog/warehouses", "catalog/gate", "catalog/grants", "catalog/history", "check", "maintenance/jobs", "maintenance/leases", "maintenance/policy", "maintenance/purge", "maintenance/due", "recovery", "registry", "internal/jsontext", "internal/web", "management/client"},
		"management/client":   {},
		"ascode":              {"access"},
		"ascode/live":         {"ascode", "management/client"},
		"console":             {"internal/loopback", "internal/term", "internal/web", "management/client"},
		"transfer":            {"management/client"},
		"transfer/sqlcatalog": {"transfer"},
		"cmd/moorage":         {everything},
		// Packages for tests.
		"testkit":         {},
		"testkit/answers": {},
		"testkit/catalogkit": {"access", "catalog", "catalog/claims", "catalog/directory", "catalog/documents", "catalog/gate", "catalog/grants",
			"catalog/vending", "catalog/warehouses", "check", "internal/jsontext", "ledger", "locks", "maintenance/purge", "maintenance/retention", "metadata",
			"recovery", "registry", "registry/memory", "storage", "storage/memory", "testkit", "testkit/locktest", "testkit/registrytest", "testkit/storetest", "txlog"},
		"testkit/fakecloud":    {},
		"testkit/histories":    {"metadata"},
		"testkit/locktest":     {"locks"},
		"testkit/manytables":   {"registry", "testkit"},
		"testkit/loopback":     {},
		"testkit/openid":       {},
		"testkit/pgserver":     {"testkit/loopback"},
		"testkit/registrytest": {"ledger", "registry"},
		"testkit/scale":        {},
		"testkit/sealers":      {"secrets", "testkit/fakecloud"},
		"testkit/servers":      {},
		"testkit/storagetest":  {"storage", "testkit/fakecloud"},
		"testkit/storetest":    {"registry", "registry/memory", "registry/pebble", "registry/postgres", "testkit/pgserver"},
		"testkit/tablefiles":   {"storage"},
		"testkit/transfers":    {"testkit/servers"},
		"interop/answers":      {"testkit/answers"},
		"interop/catalogtest":  {everything}, // tests only
		"interop/chaos":        {everything}, // tests only
		"interop/cluster":      {everything}, // tests only
		"interop/soak":         {everything}, // tests only
		"interop/torture":      {everything}, // tests only
	}
}

// checkImports compares every import of a package of this module with the table.
func checkImports(m *module) (found []violation) {
	table := importTable()
	for _, p := range m.packages {
		allowed, known := table[p.dir]
		if !known {
			found = append(found, violation{rule: "imports", at: p.dir, text: "the import table does not know this package"})
			continue
		}
		for _, f := range p.files {
			if f.test {
				continue // a test may use whatever it needs
			}
			for _, spec := range f.ast.Imports {
				target, ours := ownPackage(importPath(spec))
				if !ours || mayImport(p.dir, allowed, target) {
					continue
				}
				found = append(found, m.at("imports", f, spec, "%s may not import %s", packageName(p.dir), target))
			}
		}
	}
	return found
}

// mayImport reports whether the package in dir may import the package in target.
func mayImport(dir string, allowed []string, target string) bool {
	if dir == "" {
		return false // the root imports no package of this module
	}
	return target == "" || target == "internal/worker" ||
		slices.Contains(allowed, target) || slices.Contains(allowed, everything)
}

// ownPackage returns the folder of an import path within this module.
func ownPackage(importPath string) (string, bool) {
	if importPath == modulePath {
		return "", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

func packageName(dir string) string {
	if dir == "" {
		return "the root package"
	}
	return dir
}

// driver is a library that only certain packages may import.
type driver struct {
	prefix string // of import paths
	owners []string
}

func drivers() []driver {
	return []driver{
		{"github.com/cockroachdb/pebble", []string{"registry/pebble", "testkit/storetest"}},
		{"github.com/jackc/", []string{"registry/postgres", "testkit/pgserver", "transfer/sqlcatalog"}},
		{"database/sql", []string{"transfer/sqlcatalog"}},
		{"modernc.org/sqlite", []string{"transfer/sqlcatalog"}},
		{"github.com/tink-crypto/", []string{"secrets"}},
		{"github.com/aws/", []string{"storage/s3", "testkit/fakecloud", "secrets/keyservice"}},
		{"github.com/Azure/", []string{"storage/adls", "testkit/fakecloud"}},
		{"github.com/minio/", []string{"storage/s3"}},
		{"cloud.google.com/", nil},
		{"golang.org/x/oauth2", []string{"identity", "storage/gcs", "secrets/keyservice"}},
		{"cel.dev/cel-go", []string{"testkit/fakecloud"}}, // tests only
		{"github.com/go-chi/", []string{"internal/web"}},
		{"net/http", []string{
			"internal/web", "rest", "cluster", "management", "management/client", "cmd/moorage", "storage/s3",
			"storage/adls", "storage/gcs", "storage/cloud", "testkit/fakecloud", "testkit/answers", "interop/answers", "testkit/sealers",
			"testkit/openid", "testkit/servers", "testkit/transfers", "identity",
			"secrets/keyservice", "console", "internal/trace", "transfer", "ascode/live",
		}},
		{"maragu.dev/gomponents", []string{"console"}},
		{"github.com/twmb/avro", []string{"manifests"}},
		{"go.yaml.in/", []string{"internal/cli", "ascode", "testkit/answers"}},
		{"github.com/go-jose/", []string{"identity"}},
		{"github.com/spf13/", []string{"internal/cli"}},
		{"go.opentelemetry.io/", []string{"internal/trace", "cmd/moorage"}},
		{"github.com/apache/iceberg-go", []string{"manifests", "metadata/schema", "testkit/tablefiles"}},
	}
}

// checkDrivers finds imports of such libraries in other packages.
func checkDrivers(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.test {
			continue
		}
		for _, spec := range f.ast.Imports {
			for _, d := range drivers() {
				if strings.HasPrefix(importPath(spec), d.prefix) && !slices.Contains(d.owners, f.pkg.dir) {
					found = append(found, m.at("drivers", f, spec, "%s belongs to %q", importPath(spec), d.owners))
				}
			}
		}
	}
	return found
}

// forbidden is a list of packages that one package must not import.
type forbidden struct {
	dir    string
	prefix string
	reason string
}

func forbiddenImports() []forbidden {
	const pure = "packages metadata, manifests and parquet are pure: no I/O, no context"
	var rows []forbidden
	for _, dir := range []string{"metadata", "metadata/schema", "manifests", "catalog/rows/parquet"} {
		for _, prefix := range []string{"os", "io/fs", "net", "context", "log"} {
			rows = append(rows, forbidden{dir, prefix, pure})
		}
	}
	return append(rows, []forbidden{
		{"catalog", "os", "the catalog reaches files through package storage"},
		{"catalog", "github.com/prometheus/", "the catalog knows no exporter"},
		{"registry", "os", "the port knows no files"},
		{"", "os", "the vocabulary does no I/O"}, {"", "net", "the vocabulary does no I/O"},
	}...)
}

// checkForbiddenImports finds forbidden imports.
func checkForbiddenImports(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.test {
			continue
		}
		for _, spec := range f.ast.Imports {
			name := importPath(spec)
			for _, rule := range forbiddenImports() {
				covers := name == rule.prefix || strings.HasPrefix(name, strings.TrimSuffix(rule.prefix, "/")+"/")
				if f.pkg.dir == rule.dir && covers {
					found = append(found, m.at("forbidden imports", f, spec, "%s: %s", name, rule.reason))
				}
			}
			if spec.Name != nil && spec.Name.Name == "." {
				found = append(found, m.at("forbidden imports", f, spec, "%s: a dot import hides where names come from", name))
			}
		}
	}
	return found
}

// checkTestHelpers finds production code that imports a test suite or package testing.
func checkTestHelpers(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.test || f.suite || strings.HasPrefix(f.pkg.dir, "interop/") {
			continue
		}
		for _, spec := range f.ast.Imports {
			name := importPath(spec)
			if name == "testing" || strings.HasPrefix(name, "testing/") || strings.HasPrefix(name, modulePath+"/testkit") {
				found = append(found, m.at("test helpers", f, spec, "%s is for tests", name))
			}
		}
	}
	return found
}

// unwantedDependencies returns prefixes of the paths of packages that must not be in the binary.
func unwantedDependencies() []string {
	const iceberg, arrow = "github.com/apache/iceberg-go/", "github.com/apache/arrow-go/v18/"
	return []string{
		iceberg + "table", iceberg + "view", iceberg + "catalog", // four times the size of the binary
		"cloud.google.com/go/storage", // 12 MB and more
		"cel.dev/cel-go",              // tests only
		// Package catalog/rows/parquet reads rows instead. The readers below trust the sizes that
		// files declare.
		arrow + "arrow/compute", arrow + "arrow/ipc", arrow + "parquet/file", arrow + "parquet/pqarrow",
		arrow + "parquet/metadata", arrow + "parquet/internal/encoding", arrow + "parquet/compress",
		"github.com/parquet-go/",
		"testing",
	}
}

// TestBinaryDependencies asks the go command which packages are linked into the server.
func TestBinaryDependencies(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath", "./cmd/moorage")
	command.Dir = filepath.Join("..", "..")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", command, exitText(err))
	}
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	count := 0
	for decoder.More() {
		var listed struct{ ImportPath string }
		if err := decoder.Decode(&listed); err != nil {
			t.Fatal(err)
		}
		count++
		for _, unwanted := range unwantedDependencies() {
			if listed.ImportPath == unwanted || strings.HasPrefix(listed.ImportPath, strings.TrimSuffix(unwanted, "/")+"/") {
				t.Errorf("the binary holds %s", listed.ImportPath)
			}
		}
	}
	if count < 100 {
		t.Errorf("go list named only %d packages", count)
	}
}

func exitText(err error) string {
	if exit, ok := err.(*exec.ExitError); ok {
		return string(exit.Stderr)
	}
	return ""
}
