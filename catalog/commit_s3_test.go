package catalog_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog"
	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
)

// putDelay is what each write of an object takes longer, about as long as a far server needs.
const putDelay = 50 * time.Millisecond

// farServer is a real S3 server behind a long way: each PUT takes putDelay longer. It counts the
// requests. It is safe for concurrent use.
type farServer struct {
	forward http.Handler

	mu   sync.Mutex     // guards the fields below; a leaf
	seen map[string]int // requests by method, those that list as LIST
}

func (s *farServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if r.URL.Query().Has("list-type") {
		method = "LIST"
	}
	s.mu.Lock()
	s.seen[method]++
	s.mu.Unlock()
	if method == http.MethodPut {
		select {
		case <-time.After(putDelay):
		case <-r.Context().Done():
			return
		}
	}
	s.forward.ServeHTTP(w, r)
}

// takeSeen returns the requests since the last call, by method.
func (s *farServer) takeSeen() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = make(map[string]int)
	return seen
}

// newFarCatalog returns a catalog whose warehouse "far" is on a far server, with the table
// far.ns.t.
func newFarCatalog(t *testing.T) (*fixture, *farServer, moorage.Identifier) {
	t.Helper()
	server := fakecloud.StartS3(t)
	target, err := url.Parse(server.Endpoint)
	must(t, err)
	far := &farServer{seen: make(map[string]int), forward: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	}}
	front := httptest.NewServer(far)
	t.Cleanup(front.Close)
	client, err := s3.Connect(t.Context(), s3.Options{
		Endpoint: front.URL, Region: fakecloud.S3Region, AccessKeyID: fakecloud.S3AccessKeyID,
		SecretAccessKey: fakecloud.S3SecretAccessKey, StallTimeout: time.Minute,
	})
	must(t, err)
	f := newFixture(t, func(config *catalog.Config) {
		inner := config.OpenStorage
		config.OpenStorage = func(place storage.Place) (storage.Store, error) {
			if strings.HasPrefix(place.Roots[0], "s3://") {
				return client.Within(place.Roots)
			}
			return inner(place)
		}
	})
	root := "s3://" + server.NewBucket(t) + "/lake"
	if _, err := f.CreateWarehouse(f.ctx, catalog.WarehouseSpec{Name: "far", Location: root}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateNamespace(f.ctx, "far", moorage.Namespace{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	ident := moorage.Identifier{Warehouse: "far", Namespace: moorage.Namespace{"ns"}, Name: "t"}
	if _, err := f.CreateTable(f.ctx, ident, catalog.CreateTableRequest{Schema: []byte(testSchema)}); err != nil {
		t.Fatal(err)
	}
	far.takeSeen()
	return f, far, ident
}

// A commit of a table in S3 is one PUT: it looks for nothing, and lists nothing.
func TestCommitToS3IsOnePut(t *testing.T) {
	t.Parallel()
	f, far, ident := newFarCatalog(t)
	for i := range 3 {
		if _, err := f.Commit(f.ctx, ident, setProperty(t, "p", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		if got, want := far.takeSeen(), map[string]int{"PUT": 1}; !maps.Equal(got, want) {
			t.Errorf("commit %d made the requests %v, want %v", i, got, want)
		}
	}
}

// 32 clients each set a property of their own, on one table in a far S3. They share versions, so
// they commit much faster than one after the other could, which is 20 a second. Each version is one
// PUT, which carries five commits at least: 100 commits a second where nothing but the PUTs takes
// time.
func TestCommitsToFarS3(t *testing.T) {
	t.Parallel()
	const clients, commitsEach, commitsPerPut = 32, 10, 5
	f, far, ident := newFarCatalog(t)
	before, err := f.LoadTable(f.ctx, ident)
	must(t, err)
	began := time.Now()
	var group errgroup.Group
	for i := range clients {
		requests := make([]catalog.CommitRequest, commitsEach)
		for n := range requests {
			requests[n] = setProperty(t, fmt.Sprintf("p%d", i), fmt.Sprint(n))
		}
		group.Go(func() error {
			for _, request := range requests {
				if _, err := f.Commit(f.ctx, ident, request); err != nil {
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
	seen := far.takeSeen()
	after, err := f.LoadTable(f.ctx, ident)
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
