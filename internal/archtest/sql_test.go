package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"testing"

	"moorage/migrations"
)

// unportableSQL returns patterns of SQL that the package comment of registry/postgres rules out.
// Other servers that speak PostgreSQL's protocol lack these features, implement them differently,
// or pay a high price for them.
func unportableSQL() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?i)\bWITH\s+(RECURSIVE\s+)?\w+\s+AS\s`), // a CTE, as none is known to only read
		regexp.MustCompile(`(?i)\bON\s+CONFLICT\b`),
		regexp.MustCompile(`(?i)\bpg_(try_)?advisory_`),
		regexp.MustCompile(`(?i)\b(txid_|pg_current_xact|pg_snapshot_|xmin\b)`),
		regexp.MustCompile(`(?i)\b(CREATE|REPLACE)\s+(FUNCTION|PROCEDURE|TRIGGER)\b`),
		regexp.MustCompile(`(?i)^\s*(LISTEN|NOTIFY)\b`),
	}
}

// checkSQL finds statements that work as intended only on PostgreSQL itself.
func checkSQL(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.test || f.pkg.dir != "registry/postgres" {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				return true // it does not compile
			}
			for _, unportable := range unportableSQL() {
				if part := unportable.FindString(text); part != "" {
					found = append(found, m.at("sql", f, literal, "%q: see the package comment", part))
				}
			}
			return true
		})
	}
	return found
}

// TestMigrationsArePortable checks the statements in files that are not Go source.
func TestMigrationsArePortable(t *testing.T) {
	t.Parallel()
	steps, err := migrations.Steps()
	if err != nil || len(steps) == 0 {
		t.Fatalf("%d migrations, %v", len(steps), err)
	}
	for _, step := range steps {
		for _, unportable := range unportableSQL() {
			if part := unportable.FindString(step.SQL); part != "" {
				t.Errorf("%s: %q", step.Name, part)
			}
		}
	}
}
