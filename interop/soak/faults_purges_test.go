package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"moorage/testkit/servers"
)

const (
	// purgesCount is the number of tables that are dropped at once with their files. versionsCount
	// is the number of metadata files of each.
	purgesCount, versionsCount = 24, 3
	// deletionsMax bounds the average number of deletions of a file. One node does each purge; lost
	// responses and lost claims cause few repetitions.
	deletionsMax = 1.25
)

// countedS3 is a proxy to an S3 server that counts the objects in delete requests.
type countedS3 struct {
	*httptest.Server
	deleted atomic.Int64
}

func newCountedS3(t *testing.T, endpoint string) *countedS3 {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c := &countedS3{}
	// It keeps the Host header, which is part of the signature.
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Query().Has("delete") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client has disconnected
			}
			c.deleted.Add(int64(bytes.Count(body, []byte("<Key>"))))
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		if r.Method == http.MethodDelete {
			c.deleted.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// purgeAtOnce is the property of a warehouse that purges without delay.
const purgeAtOnce = "moorage.purge-delay=0"

// manyPurges (11): many purges complete, and each file is deleted about once, by one node.
func manyPurges(ctx context.Context, w *world) (func(context.Context) error, error) {
	warehouse, namespace := w.name("purged"), "purged"
	bucket, err := w.s3.MakeBucket(ctx)
	if err == nil {
		err = w.command(ctx, []string{"warehouse", "create", warehouse}, "--location", "s3://"+bucket+"/lake",
			"--storage-option", "s3.endpoint="+w.countedS3.URL, "--property", purgeAtOnce)
	}
	if err != nil {
		return nil, err
	}
	a := w.nodes[0].client.Send(ctx, http.MethodPost, warehouse+"/namespaces", servers.Object{"namespace": []string{namespace}})
	if a.Outcome != servers.Acknowledged {
		return nil, fmt.Errorf("create %s: %d %s", namespace, a.Status, a.Text)
	}
	each := func(do func(n int, client *servers.Client) error) error {
		errs := make([]error, purgesCount)
		var group sync.WaitGroup
		for n := range purgesCount {
			group.Go(func() { errs[n] = do(n, w.nodes[n%nodesCount].client) })
		}
		group.Wait()
		return errors.Join(errs...)
	}
	err = each(func(n int, client *servers.Client) error {
		return makeVersions(ctx, client, warehouse, namespace, fmt.Sprintf("t%d", n))
	})
	files, listed := w.s3.ListKeys(ctx, bucket)
	if err = errors.Join(err, listed); err != nil {
		return nil, err
	}
	before := w.countedS3.deleted.Load()
	err = each(func(n int, client *servers.Client) error {
		a := client.Send(ctx, http.MethodDelete, fmt.Sprintf("%s/%s?purgeRequested=true", warehouse, servers.TablePath(namespace, fmt.Sprintf("t%d", n))), nil)
		if a.Outcome != servers.Acknowledged {
			return fmt.Errorf("drop a table: %d %s", a.Status, a.Text)
		}
		return nil
	})
	return func(ctx context.Context) error {
		err := await(ctx, purgedWithin, func(ctx context.Context) error {
			left, err := w.s3.ListKeys(ctx, bucket)
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("%d files of %d dropped tables are there still", len(left), purgesCount)
			}
			return err
		})
		deleted := w.countedS3.deleted.Load() - before
		if len(files) < purgesCount*versionsCount || float64(deleted) > deletionsMax*float64(len(files)) {
			err = errors.Join(err, fmt.Errorf("%d files were deleted %d times", len(files), deleted))
		}
		return errors.Join(err, w.clearIn(ctx, warehouse, namespace), w.dropWarehouse(ctx, warehouse))
	}, err
}

// makeVersions creates a table with some versions in a warehouse.
func makeVersions(ctx context.Context, client *servers.Client, warehouse, namespace, name string) error {
	a := client.Send(ctx, http.MethodPost, warehouse+"/"+servers.TablesPath(namespace), servers.Object{
		"name": name, "schema": servers.Object{"type": "struct", "schema-id": 0, "fields": []any{}},
	})
	for version := 1; version < versionsCount && a.Outcome == servers.Acknowledged; version++ {
		a = client.Send(ctx, http.MethodPost, warehouse+"/"+servers.TablePath(namespace, name), servers.Object{
			"requirements": []any{}, "updates": []servers.Object{{"action": "set-properties", "updates": map[string]string{fmt.Sprint(version): "x"}}},
		})
	}
	if a.Outcome != servers.Acknowledged {
		return fmt.Errorf("make %s: %d %s", name, a.Status, a.Text)
	}
	return nil
}
