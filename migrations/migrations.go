// Package migrations holds the SQL that makes, and later changes, the tables of the PostgreSQL store.
//
// Each file is one step, named by a number of four digits and carried out in one transaction. Steps only
// go forward and a file is never changed once it is released: each is recorded with its
// checksum. A file says why it is there and whether the previous binary can run beside it.
//
// It must not know: how the statements reach a server.
package migrations

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed *.sql
var files embed.FS

// Step is one migration.
type Step struct {
	Version  int    // from 1, without gaps
	Name     string // of the file
	SQL      string // one or more statements, to be carried out in one transaction
	Checksum string // SHA-256 of SQL, hexadecimal
}

// Steps returns all migrations in order of their versions. It fails if the numbers have
// gaps, which a test rules out for the files of this package.
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
		sum := sha256.Sum256(sql)
		steps = append(steps, Step{version, name, string(sql), hex.EncodeToString(sum[:])})
	}
	return steps, nil
}
