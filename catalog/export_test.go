package catalog

import (
	"time"

	"moorage/catalog/directory"
	"moorage/registry"
)

// SetSettleTimeout bounds how long c tries to find the outcome of one Apply. With the default, each
// case of a crash test takes ten seconds.
func SetSettleTimeout(c *Catalog, limit time.Duration) { c.ledger.SettleTimeout = limit }

// DirectoryOf returns the directory of c, with its cache of names. Otherwise only the number of
// reads would show what is cached.
func DirectoryOf(c *Catalog) *directory.Directory { return c.directory }

// PointerID returns the ID of the pointer of t. Tests use it to check that a restored table is the
// dropped one.
func (t *Table) PointerID() registry.ID { return t.pointer }

// PointerID returns the ID of the pointer of v.
func (v *View) PointerID() registry.ID { return v.pointer }
