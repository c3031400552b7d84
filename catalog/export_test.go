package catalog

import (
	"time"

	"moorage/catalog/directory"
	"moorage/registry"
)

// SetSettleTimeout bounds how long c looks for the outcome of one Apply. Otherwise each case of a
// crash test takes ten seconds.
func SetSettleTimeout(c *Catalog, limit time.Duration) { c.ledger.SettleTimeout = limit }

// DirectoryOf returns what c remembers of names. Only the number of reads would show it.
func DirectoryOf(c *Catalog) *directory.Directory { return c.directory }

// PointerID returns the pointer of t, which shows that a table is the one that was dropped.
func (t *Table) PointerID() registry.ID { return t.pointer }

// PointerID returns the pointer of v.
func (v *View) PointerID() registry.ID { return v.pointer }
