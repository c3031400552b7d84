package catalog_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/catalogkit"
	"moorage/testkit/fakecloud"
)

// putDelay is the added latency of each write of an object, about that of a distant server.
const putDelay = 50 * time.Millisecond

// farStorage returns a proxy to a real S3 server, with the delays of way. change makes a catalog
// keep the files of warehouses below root on that server.
func farStorage(tb testing.TB, way fakecloud.Way) (far *fakecloud.Far, change func(*catalog.Config), root string) {
	tb.Helper()
	server := fakecloud.StartS3(tb)
	far = fakecloud.NewFar(tb, server.Endpoint, way)
	client, err := s3.Connect(tb.Context(), s3.Options{
		Endpoint: far.URL, Region: fakecloud.S3Region, AccessKeyID: fakecloud.S3AccessKeyID,
		SecretAccessKey: fakecloud.S3SecretAccessKey, StallTimeout: time.Minute,
	})
	must(tb, err)
	change = func(config *catalog.Config) {
		inner := config.OpenStorage
		config.OpenStorage = func(place storage.Place) (storage.Store, error) {
			if strings.HasPrefix(place.Roots[0], "s3://") {
				return client.Within(place.Roots)
			}
			return inner(place)
		}
	}
	return far, change, "s3://" + server.NewBucket(tb) + "/lake"
}

// farIdent returns the identifier of a table in the warehouse "far".
func farIdent(name string) moorage.Identifier {
	return moorage.Identifier{Warehouse: "far", Namespace: moorage.Namespace{"ns"}, Name: name}
}

// newFarCatalog returns a catalog with the table far.ns.t, whose warehouse "far" is on a distant
// server.
func newFarCatalog(t *testing.T) (*catalogkit.Fixture, *fakecloud.Far, moorage.Identifier) {
	t.Helper()
	far, change, root := farStorage(t, fakecloud.Way{Delay: putDelay, Methods: []string{http.MethodPut}})
	f := catalogkit.New(t, change)
	makeFar(f, root)
	createFar(f, "t")
	far.TakeSeen()
	return f, far, farIdent("t")
}

// makeFar creates the warehouse "far" at root.
func makeFar(f *catalogkit.Fixture, root string) {
	f.T.Helper()
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "far", Location: root})
	must(f.T, err)
	_, err = f.CreateNamespace(f.Ctx, "far", moorage.Namespace{"ns"}, nil)
	must(f.T, err)
}

func createFar(f *catalogkit.Fixture, name string) {
	f.T.Helper()
	_, err := f.CreateTable(f.Ctx, farIdent(name), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(f.T, err)
}

// A commit of a table in S3 makes one PUT, and no other request.
func TestCommitToS3IsOnePut(t *testing.T) {
	t.Parallel()
	f, far, ident := newFarCatalog(t)
	for i := range 3 {
		if _, err := f.Commit(f.Ctx, ident, catalogkit.SetProperty(t, "p", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		if got, want := far.TakeSeen(), map[string]int{"PUT": 1}; !maps.Equal(got, want) {
			t.Errorf("commit %d made the requests %v, want %v", i, got, want)
		}
	}
}

// A load of a table in S3 makes one GET if the document is not in memory.
func TestColdLoadFromS3IsOneGet(t *testing.T) {
	t.Parallel()
	f, far, ident := newFarCatalog(t)
	cold := must1(catalogkit.NewInstance(f.Config))(t)
	if _, err := cold.LoadTable(f.Ctx, ident); err != nil {
		t.Fatal(err)
	}
	if got, want := far.TakeSeen(), map[string]int{"GET": 1}; !maps.Equal(got, want) {
		t.Errorf("the load made the requests %v, want %v", got, want)
	}
}

// 32 clients each set their own property on one table in a distant S3. They share versions, so they
// commit much faster than the 20 commits a second that are possible one by one. Each version is one
// PUT for at least five commits. That makes 100 commits a second if only the PUTs take time.
func TestCommitsToFarS3(t *testing.T) {
	t.Parallel()
	const clients, commitsEach, commitsPerPut = 32, 10, 5
	f, far, ident := newFarCatalog(t)
	before, err := f.LoadTable(f.Ctx, ident)
	must(t, err)
	began := time.Now()
	var group errgroup.Group
	for i := range clients {
		requests := make([]catalog.CommitRequest, commitsEach)
		for n := range requests {
			requests[n] = catalogkit.SetProperty(t, fmt.Sprintf("p%d", i), fmt.Sprint(n))
		}
		group.Go(func() error {
			for _, request := range requests {
				if _, err := f.Commit(f.Ctx, ident, request); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	seen := far.TakeSeen()
	after, err := f.LoadTable(f.Ctx, ident)
	must(t, err)
	versions := len(after.Document.MetadataLog()) - len(before.Document.MetadataLog())
	if want := map[string]int{"PUT": versions}; !maps.Equal(seen, want) {
		t.Errorf("%d versions made the requests %v, want %v", versions, seen, want)
	}
	for i := range clients {
		if value, _ := after.Document.Property(fmt.Sprintf("p%d", i)); value != fmt.Sprint(commitsEach-1) {
			t.Errorf("p%d is %q, want its last value", i, value)
		}
	}
	rate := clients * commitsEach / took.Seconds()
	t.Logf("%d commits in %v by %d PUTs: %.0f a second", clients*commitsEach, took, versions, rate)
	if versions*commitsPerPut > clients*commitsEach {
		t.Errorf("%d PUTs for %d commits, want one for %d", versions, clients*commitsEach, commitsPerPut)
	}
}
