package catalog_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/documents"
	"moorage/storage"
)

// A table or view names a metadata file that cannot be read. That is a fault of the operator or of
// somebody who damaged the file, and not of the client. So the answer is no refusal, and nothing of
// it is stored with a key.
func TestMetadataFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const elsewhere = "file:///elsewhere/t"
	f := newFixture(t)
	f.allow(testWarehouse, "file:///elsewhere")
	table, view := f.createAt("t", elsewhere), f.createView("v")
	f.create("u")
	files := map[string][]byte{table.MetadataLocation: nil, view.MetadataLocation: nil}
	for location := range files {
		body, err := storage.ReadAll(f.ctx, f.files, location, documents.BytesMax)
		must(t, err)
		files[location] = body
	}
	type verb = func(context.Context, catalog.Verbs) error
	all := func() (*instance, map[string]verb) {
		node, err := newInstance(f.config) // which has read none of them
		must(t, err)
		return node, map[string]verb{
			"load":      func(ctx context.Context, c catalog.Verbs) error { _, err := c.LoadTable(ctx, ident("t")); return err },
			"load view": func(ctx context.Context, c catalog.Verbs) error { _, err := c.LoadView(ctx, ident("v")); return err },
			"commit": func(ctx context.Context, c catalog.Verbs) error {
				_, err := c.Commit(ctx, ident("t"), setProperty(t, "a", "b"))
				return err
			},
			"transaction": func(ctx context.Context, c catalog.Verbs) error {
				return c.CommitTransaction(ctx, testWarehouse, []catalog.TableChange{{ident("u"), setProperty(t, "a", "b")}, {ident("t"), setProperty(t, "a", "b")}})
			},
			"unregister": func(ctx context.Context, c catalog.Verbs) error {
				_, err := c.UnregisterTable(ctx, ident("t"))
				return err
			},
		}
	}
	keyed := func(node *instance, do verb) error {
		_, err := node.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, do(ctx, c)
		})
		return err
	}

	for name, body := range map[string]string{"no JSON": "{", "not all that there must be": "{}", "another version": `{"format-version":9}`} {
		for location := range files {
			f.rewrite(location, []byte(body))
		}
		node, verbs := all()
		for operation, do := range verbs {
			t.Log(name, operation)
			wantKind(t, keyed(node, do), moorage.KindInternal)
		}
	}
	for location, body := range files {
		f.rewrite(location, body)
	}
	f.disallow(testWarehouse)
	node, outside := all()
	delete(outside, "load view")
	for operation, do := range outside {
		t.Log("outside", operation)
		wantKind(t, keyed(node, do), moorage.KindForbidden)
	}
	f.allow(testWarehouse, "file:///elsewhere")
	node, verbs := all()
	must(t, keyed(node, verbs["commit"]))
	f.wantClean()
}

// A client that goes away need not wait for the read of another client. Other clients get what it
// had begun to read.
func TestLoadIsNotHeldByAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hook := &hook{}
		f := newFixture(t, hook.onOpen)
		created := f.create("t")
		f.Documents().Forget(created.PointerID(), created.MetadataLocation)
		begun, end := make(chan struct{}), make(chan struct{})
		hook.once(func() {
			close(begun)
			<-end
		})
		load := func(ctx context.Context) (ended chan error) {
			ended = make(chan error, 1)
			go func() {
				_, err := f.LoadTable(ctx, ident("t"))
				ended <- err
			}()
			return ended
		}
		ctx, cancel := context.WithCancel(f.ctx)
		first := load(ctx)
		<-begun
		second, third := load(ctx), load(f.ctx)
		synctest.Wait() // until they wait for the first
		cancel()
		synctest.Wait()
		select {
		case err := <-second:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the client that went away was answered %v", err)
			}
		default:
			t.Error("the client that went away still waits")
		}
		close(end)
		if err := <-third; err != nil {
			t.Errorf("the client that waited was answered %v", err)
		}
		<-first
	})
}
