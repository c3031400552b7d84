package documents_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/documents"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// A table or view names an unreadable metadata file. That is not the client's fault: the operator
// or another person has damaged the file. So the error is not a refusal, and it is not stored with
// a key.
func TestMetadataFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const elsewhere = "file:///elsewhere/t"
	f := catalogkit.New(t)
	f.Allow(catalogkit.Warehouse, "file:///elsewhere")
	table, view := f.CreateAt("t", elsewhere), f.MakeView("v")
	f.Create("u")
	files := map[string][]byte{table.MetadataLocation: nil, view.MetadataLocation: nil}
	for location := range files {
		body, err := storage.ReadAll(f.Ctx, f.Files, location, documents.BytesMax)
		must(t, err)
		files[location] = body
	}
	type verb = func(context.Context, catalog.Verbs) error
	all := func() (*catalogkit.Instance, map[string]verb) {
		node, err := catalogkit.NewInstance(f.Config) // with an empty cache
		must(t, err)
		return node, map[string]verb{
			"load":      func(ctx context.Context, c catalog.Verbs) error { _, err := c.LoadTable(ctx, ident("t")); return err },
			"load view": func(ctx context.Context, c catalog.Verbs) error { _, err := c.LoadView(ctx, ident("v")); return err },
			"commit": func(ctx context.Context, c catalog.Verbs) error {
				_, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
				return err
			},
			"transaction": func(ctx context.Context, c catalog.Verbs) error {
				return c.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{
					catalogkit.On("u", catalogkit.SetProperty(t, "a", "b")), catalogkit.On("t", catalogkit.SetProperty(t, "a", "b")),
				})
			},
			"unregister": func(ctx context.Context, c catalog.Verbs) error {
				_, err := c.UnregisterTable(ctx, ident("t"))
				return err
			},
		}
	}
	keyed := func(node *catalogkit.Instance, do verb) error {
		_, err := node.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, do(ctx, c)
		})
		return err
	}

	for name, body := range map[string]string{"no JSON": "{", "not all that there must be": "{}", "another version": `{"format-version":9}`} {
		for location := range files {
			f.Rewrite(location, []byte(body))
		}
		node, verbs := all()
		for operation, do := range verbs {
			t.Log(name, operation)
			catalogkit.WantKind(t, keyed(node, do), moorage.KindInternal)
		}
	}
	for location, body := range files {
		f.Rewrite(location, body)
	}
	f.Disallow(catalogkit.Warehouse)
	node, outside := all()
	delete(outside, "load view")
	for operation, do := range outside {
		t.Log("outside", operation)
		catalogkit.WantKind(t, keyed(node, do), moorage.KindForbidden)
	}
	f.Allow(catalogkit.Warehouse, "file:///elsewhere")
	node, verbs := all()
	must(t, keyed(node, verbs["commit"]))
	f.WantClean()
}

// A client that disconnects does not wait for the read of another client. The read that it has
// begun continues for other clients.
func TestLoadIsNotHeldByAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hook := &catalogkit.Hook{}
		f := catalogkit.New(t, hook.OnOpen)
		created := f.Create("t")
		f.Documents().Forget(f.PointerOf("t").ID, created.MetadataLocation)
		begun, end := make(chan struct{}), make(chan struct{})
		hook.Once(func() {
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
		ctx, cancel := context.WithCancel(f.Ctx)
		first := load(ctx)
		<-begun
		second, third := load(ctx), load(f.Ctx)
		synctest.Wait() // until they wait for the first read
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
