// Package migrations holds the SQL that creates, and later changes, the tables of the PostgreSQL
// store.
//
// Each file is one step, and its name begins with a number of four digits. Steps only go forward. A
// file never changes once it is released, because each step is recorded with its checksum.
//
// # Migrations while servers run
//
// A step has one of two forms:
//
//   - Statements that take as long on a large table as on an empty one, for example to add a
//     column. They run in one transaction. If the transaction cannot get a lock within a second or
//     two, it is aborted and retried. Commits wait behind a waiting ALTER TABLE.
//   - One CREATE INDEX CONCURRENTLY, in a separate file. It runs outside of a transaction. Commits
//     and reads continue meanwhile.
//
// Any other CREATE INDEX is refused, except in the first file, which creates all tables.
//
// # Binaries that run at the same time
//
// A cluster is upgraded, and rolled back, node by node. So binaries must be able to run and start
// on tables with steps that they do not know. A file begins with two lines that say which binaries
// can do so:
//
//	-- Why: what it is for.
//	-- Oldest binary: step 1; it leaves the new column empty.
//
// The number is the last step that a binary must know to run and start on the tables after this
// step. The ledger stores the number with the step. A binary refuses tables with a step that needs
// more than it knows. A binary that is already running ends.
//
// So a step only adds: a table, an index, or a column that may be null or has a default. Old
// binaries name their columns, so they do not read or write a new one. A step whose number is its
// own oldest binary excludes all older binaries, and then only a backup leads back. So the release
// before such a step must already be able to run on its tables.
//
// The package does not know how the statements reach a server.
package migrations

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

//go:embed *.sql
var files embed.FS

// Step is one migration.
type Step struct {
	Version  int    // from 1, without gaps
	Name     string // of the file
	SQL      string // one or more statements
	Checksum string // SHA-256 of SQL, hexadecimal
	// Oldest is the last step that a binary must know to run, and start, on the tables after this
	// step. It is at most Version, and at least the Oldest of the step before.
	Oldest int
	// Index is the name of the index that SQL creates with CREATE INDEX CONCURRENTLY, and Table is
	// its table. Both are empty if SQL runs in one transaction.
	Index, Table string
}

// Steps returns all migrations in order of their versions. It fails if the numbers have gaps. It
// fails if a file does not define its oldest binary, or creates an index along with other changes.
// A test makes sure that the files of this package do not fail in this way.
func Steps() ([]Step, error) { return read(files) }

func read(files fs.FS) ([]Step, error) {
	names, err := fs.Glob(files, "*.sql") // sorted
	if err != nil {
		return nil, err
	}
	steps := make([]Step, 0, len(names))
	for _, name := range names {
		sql, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(steps)+1 || len(number) != 4 {
			return nil, fmt.Errorf("migration %s: its number should be %04d", name, len(steps)+1)
		}
		oldest, err := oldestOf(version, string(sql))
		if err == nil && len(steps) > 0 && oldest < steps[len(steps)-1].Oldest {
			err = fmt.Errorf("its oldest binary is older than the oldest binary of the step before, on which it builds")
		}
		index, table, indexErr := indexOf(version, string(sql))
		if err = errors.Join(err, indexErr); err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		sum := sha256.Sum256(sql)
		steps = append(steps, Step{version, name, string(sql), hex.EncodeToString(sum[:]), oldest, index, table})
	}
	return steps, nil
}

// oldestOf reads the line of a file with the oldest binary.
func oldestOf(version int, sql string) (int, error) {
	lines := regexp.MustCompile(`(?m)^-- Oldest binary: step ([0-9]+)[.;,] ?`).FindAllStringSubmatch(sql, -1)
	if len(lines) != 1 {
		return 0, fmt.Errorf("it has %d lines like \"-- Oldest binary: step 1; …\", want one", len(lines))
	}
	oldest, err := strconv.Atoi(lines[0][1])
	if err != nil || oldest < 1 || oldest > version {
		return 0, fmt.Errorf("its oldest binary is %s, want a step from 1 to %d", lines[0][1], version)
	}
	return oldest, nil
}

// indexOf returns the index and the table for a file that creates an index. For other files, it
// returns empty names.
func indexOf(version int, sql string) (index, table string, err error) {
	if version == 1 || !regexp.MustCompile(`(?i)create\s+(unique\s+)?index`).MatchString(sql) {
		return "", "", nil
	}
	found := regexp.MustCompile(`^(?:--.*\n|\n)*CREATE INDEX CONCURRENTLY ([a-z_]+) ON ([a-z_]+) [^;]*;\n$`).
		FindStringSubmatch(sql)
	if found == nil {
		return "", "", errors.New("it makes an index: want one CREATE INDEX CONCURRENTLY … ON …; and nothing else")
	}
	return found[1], found[2], nil
}
