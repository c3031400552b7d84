package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/storage"
)

// ownedFile is the metadata file of table "t". Its owner rewrites it, and registers it again, as
// often as it likes.
type ownedFile struct {
	*fixture
	contents [][]byte // one version and the next, in which the property n is 0 and 1
}

const ownedLocation = "file:///wh/v.metadata.json"

// newOwnedFile returns a file whose table names it, with its first content.
func newOwnedFile(t *testing.T, change ...func(*catalog.Config)) *ownedFile {
	t.Helper()
	f := &ownedFile{fixture: newFixture(t, change...)}
	f.create("t")
	for n := range 2 {
		version, err := f.Commit(f.ctx, ident("t"), setProperty(t, "n", fmt.Sprint(n)))
		if err != nil {
			t.Fatal(err)
		}
		f.contents = append(f.contents, version.Document.Raw())
	}
	f.rewriteAndRegister(0)
	return f
}

func (f *ownedFile) register() error {
	_, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: ownedLocation, Overwrite: true})
	return err
}

func (f *ownedFile) rewriteAndRegister(n int) {
	f.t.Helper()
	f.rewrite(ownedLocation, f.contents[n])
	if err := f.register(); err != nil {
		f.t.Error(err)
	}
}

// misplace writes the content of another table into the file.
func (f *ownedFile) misplace() {
	f.t.Helper()
	uuid, err := f.ledger.NewUUID()
	if err != nil {
		f.t.Fatal(err)
	}
	table, err := f.LoadTable(f.ctx, ident("t"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.rewrite(ownedLocation, bytes.ReplaceAll(f.contents[0], []byte(table.Document.UUID()), []byte(uuid)))
}

// wantNext fails the test unless node serves the file's second content.
func (f *ownedFile) wantNext(node *instance) {
	f.t.Helper()
	table, err := node.LoadTable(f.ctx, ident("t"))
	if err != nil {
		f.t.Fatal(err)
	}
	if n, _ := table.Document.Property("n"); n != "1" {
		f.t.Errorf("the property is %q, want that of the file's second content", n)
	}
}

// lateReads runs the hook when a file was opened: what is read is what was there before.
type lateReads struct {
	storage.Store
	hook *hook
}

func (f lateReads) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	body, info, err := f.Store.Open(ctx, location)
	f.hook.run()
	return body, info, err
}

func (h *hook) afterOpen(config *catalog.Config) {
	wrapStorage(config, func(inner storage.Store) storage.Store { return lateReads{inner, h} })
}

// The owner of a file rewrites it and registers it again while it is being read. The node serves
// the file as it is then, even if it no longer keeps what was registered.
func TestRegisterMeetsRead(t *testing.T) {
	t.Parallel()
	for name, evict := range map[string]func(*documents.Documents){"kept": func(*documents.Documents) {}, "evicted": (*documents.Documents).ForgetAll} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := &hook{}
			f := newOwnedFile(t, hook.afterOpen)
			f.Documents().ForgetAll()
			hook.once(func() {
				f.rewriteAndRegister(1)
				evict(f.Documents())
			})
			for range 2 { // while it is rewritten, and after that
				f.wantNext(f.instance)
			}
			f.wantClean()
		})
	}
}

// So it is if nobody knows whether it was registered, because it may have been.
func TestRegisterOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	silent := &silentStore{}
	f := newOwnedFile(t, func(c *catalog.Config) {
		silent.Store = c.Store
		c.Store = silent
	})
	f.rewrite(ownedLocation, f.contents[1])
	silent.arm(string(gate.RegisterOver))
	wantKind(t, f.register(), moorage.KindCommitUnknown)
	silent.disarm()
	f.wantNext(f.instance)
	f.wantClean()
}

// A file was by mistake another table's, and a node has read it, or begun to read it, meanwhile.
// Another node registers the file once it is mended. Then no node serves what was read before.
func TestRegisterOfMendedFile(t *testing.T) {
	t.Parallel()
	t.Run("read", func(t *testing.T) {
		t.Parallel()
		f := newOwnedFile(t)
		node := f.other(f.store)
		f.misplace()
		if _, err := node.LoadTable(f.ctx, ident("t")); err != nil {
			t.Fatal(err)
		}
		f.rewriteAndRegister(1)
		f.wantNext(node)
	})
	t.Run("being read", func(t *testing.T) {
		t.Parallel()
		hook := &hook{}
		f := newOwnedFile(t, hook.afterOpen)
		node := f.other(f.store)
		f.misplace()
		hook.once(func() { f.rewriteAndRegister(1) })
		f.wantNext(node)
	})
}

// A file's owner rewrites it and has one node register it. No node serves, or commits on, what it
// has read of the file before.
func TestRegisterAgainOnAnotherNode(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(f *ownedFile){
		"overwritten": func(f *ownedFile) { f.rewriteAndRegister(1) },
		"taken back": func(f *ownedFile) {
			must(f.t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}))
			f.rewriteAndRegister(1)
		},
		"renamed": func(f *ownedFile) {
			f.rewriteAndRegister(1)
			must(f.t, f.RenameTable(f.ctx, ident("t"), ident("u")))
			must(f.t, f.RenameTable(f.ctx, ident("u"), ident("t")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newOwnedFile(t)
			reads, commits := f.other(f.store), f.other(f.store)
			for _, node := range []*instance{reads, commits} {
				if _, err := node.LoadTable(f.ctx, ident("t")); err != nil {
					t.Fatal(err)
				}
			}
			register(f)
			f.wantNext(reads)
			if _, err := commits.Commit(f.ctx, ident("t"), setProperty(t, "m", "1")); err != nil {
				t.Fatal(err)
			}
			for _, node := range []*instance{f.instance, reads, commits} {
				f.wantNext(node)
			}
			f.wantClean()
		})
	}
}
