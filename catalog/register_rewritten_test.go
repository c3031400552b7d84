package catalog_test

import (
	"bytes"
	"fmt"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/testkit/catalogkit"
)

// ownedFile is the metadata file of table "t". Its owner can rewrite and register it again and
// again.
type ownedFile struct {
	*catalogkit.Fixture
	contents [][]byte // two successive contents, with 0 and 1 as the property n
}

const ownedLocation = "file:///wh/v.metadata.json"

// newOwnedFile returns a file with its first content. The file is registered as a table.
func newOwnedFile(t *testing.T, change ...func(*catalog.Config)) *ownedFile {
	t.Helper()
	f := &ownedFile{Fixture: catalogkit.New(t, change...)}
	f.Create("t")
	for n := range 2 {
		version, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "n", fmt.Sprint(n)))
		if err != nil {
			t.Fatal(err)
		}
		f.contents = append(f.contents, version.Document.Raw())
	}
	f.rewriteAndRegister(0)
	return f
}

func (f *ownedFile) register() error {
	_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: ownedLocation, Overwrite: true})
	return err
}

func (f *ownedFile) rewriteAndRegister(n int) {
	f.T.Helper()
	f.Rewrite(ownedLocation, f.contents[n])
	if err := f.register(); err != nil {
		f.T.Error(err)
	}
}

// misplace writes the content of another table into the file.
func (f *ownedFile) misplace() {
	f.T.Helper()
	uuid, err := f.Ledger.NewUUID()
	if err != nil {
		f.T.Fatal(err)
	}
	table, err := f.LoadTable(f.Ctx, ident("t"))
	if err != nil {
		f.T.Fatal(err)
	}
	f.Rewrite(ownedLocation, bytes.ReplaceAll(f.contents[0], []byte(table.Document.UUID()), []byte(uuid)))
}

// wantNext fails the test unless node serves the file's second content.
func (f *ownedFile) wantNext(node *catalogkit.Instance) {
	f.T.Helper()
	table, err := node.LoadTable(f.Ctx, ident("t"))
	if err != nil {
		f.T.Fatal(err)
	}
	if n, _ := table.Document.Property("n"); n != "1" {
		f.T.Errorf("the property is %q, want that of the file's second content", n)
	}
}

// The owner of a file rewrites and registers it again while a node reads it. The node then serves
// the new content, even if it no longer has the registered document in its cache.
func TestRegisterMeetsRead(t *testing.T) {
	t.Parallel()
	for name, evict := range map[string]func(*documents.Documents){"kept": func(*documents.Documents) {}, "evicted": (*documents.Documents).ForgetAll} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := &catalogkit.Hook{}
			f := newOwnedFile(t, hook.AfterOpen)
			f.Documents().ForgetAll()
			hook.Once(func() {
				f.rewriteAndRegister(1)
				evict(f.Documents())
			})
			for range 2 { // during the rewrite, and after it
				f.wantNext(f.Instance)
			}
			f.WantClean()
		})
	}
}

// The same holds if the outcome of the register is unknown, because it may have succeeded.
func TestRegisterOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	silent := &silentStore{}
	f := newOwnedFile(t, func(c *catalog.Config) {
		silent.Store = c.Store
		c.Store = silent
	})
	f.Rewrite(ownedLocation, f.contents[1])
	silent.arm(string(gate.RegisterOver))
	catalogkit.WantKind(t, f.register(), moorage.KindCommitUnknown)
	silent.disarm()
	f.wantNext(f.Instance)
	f.WantClean()
}

// By mistake, a file had the content of another table, and a node has read it or begun to read it.
// After the file was corrected, another node registers it. From then on, no node serves the old
// content.
func TestRegisterOfMendedFile(t *testing.T) {
	t.Parallel()
	t.Run("read", func(t *testing.T) {
		t.Parallel()
		f := newOwnedFile(t)
		node := f.Other(f.Store)
		f.misplace()
		if _, err := node.LoadTable(f.Ctx, ident("t")); err != nil {
			t.Fatal(err)
		}
		f.rewriteAndRegister(1)
		f.wantNext(node)
	})
	t.Run("being read", func(t *testing.T) {
		t.Parallel()
		hook := &catalogkit.Hook{}
		f := newOwnedFile(t, hook.AfterOpen)
		node := f.Other(f.Store)
		f.misplace()
		hook.Once(func() { f.rewriteAndRegister(1) })
		f.wantNext(node)
	})
}

// The owner of a file rewrites it, and one node registers it. No node serves the old content any
// more, or commits on top of it.
func TestRegisterAgainOnAnotherNode(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(f *ownedFile){
		"overwritten": func(f *ownedFile) { f.rewriteAndRegister(1) },
		"taken back": func(f *ownedFile) {
			must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
			f.rewriteAndRegister(1)
		},
		"renamed": func(f *ownedFile) {
			f.rewriteAndRegister(1)
			must(f.T, f.RenameTable(f.Ctx, ident("t"), ident("u")))
			must(f.T, f.RenameTable(f.Ctx, ident("u"), ident("t")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newOwnedFile(t)
			reads, commits := f.Other(f.Store), f.Other(f.Store)
			for _, node := range []*catalogkit.Instance{reads, commits} {
				if _, err := node.LoadTable(f.Ctx, ident("t")); err != nil {
					t.Fatal(err)
				}
			}
			register(f)
			f.wantNext(reads)
			if _, err := commits.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "m", "1")); err != nil {
				t.Fatal(err)
			}
			for _, node := range []*catalogkit.Instance{f.Instance, reads, commits} {
				f.wantNext(node)
			}
			f.WantClean()
		})
	}
}
