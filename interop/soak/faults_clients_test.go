package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"moorage/testkit/servers"
)

const (
	// slowConnections is the number of connections that slowly send a body whose declared length is
	// slowBody.
	slowConnections = 500
	slowBody        = 1 << 20
	// hugeConnections declare hugeBody each, which together is the whole memory limit for long
	// bodies.
	hugeConnections = 4
	hugeBody        = 64 << 20
	// trickleEvery is the time between two bytes, and trickleFor the duration of the fault.
	trickleEvery = 250 * time.Millisecond
	trickleFor   = 4 * time.Second
	// slowMemory bounds the growth of a node's resident memory from all these connections.
	slowMemory = 100 << 20
	// longCommit is the length of a commit whose body counts against the limit for long bodies.
	longCommit = 2 << 20

	// largeCount namespaces have largeProperties bytes of properties each. tooLarge exceeds the
	// limit for one namespace.
	largeCount      = 20
	largeProperties = 900 << 10
	tooLarge        = 3 << 20
	// listMemory bounds a node's allocations for so many lists of these namespaces. A node that
	// reads all properties allocates a multiple of their size for each list.
	listMemory = 200 << 20
	listsCount = 30

	// checksCount is the number of checks that are requested at once. Together they may allocate as
	// much as checksRuns separate checks, plus checkMemory for the node's other work.
	checksCount = 24
	checksRuns  = 6
	checkMemory = 64 << 20
)

// metric returns a metric of a node.
func (w *world) metric(ctx context.Context, n *node, name string) (float64, error) {
	status, body, err := w.get(ctx, n.uri+"/metrics")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/metrics: %d", status)
	}
	return parseMetrics(body)[name], err
}

// grows returns an error if a metric of a node grows by more than most during do.
func (w *world) grows(ctx context.Context, n *node, metric string, most float64, do func() error) error {
	before, err := w.metric(ctx, n, metric)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := w.metric(ctx, n, metric)
	if err == nil && after > before+most {
		err = fmt.Errorf("%s grew from %.0f to %.0f MiB", metric, before/(1<<20), after/(1<<20))
	}
	return err
}

// slowBodies (5): a client uses only the memory of the bytes that it has sent, and long commits of
// others succeed.
func slowBodies(ctx context.Context, w *world) (func(context.Context) error, error) {
	t, err := w.makeTable(ctx, "bodies")
	if err != nil {
		return nil, err
	}
	n := w.nodes[0]
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var slow sync.WaitGroup
	err = w.grows(ctx, n, "process_resident_memory_bytes", slowMemory, func() error {
		for i := range slowConnections + hugeConnections {
			claimed := slowBody
			if i < hugeConnections {
				claimed = hugeBody
			}
			conn, err := net.Dial("tcp", n.address)
			if err != nil {
				return err
			}
			slow.Go(func() { trickle(ctx, conn, claimed) })
		}
		_ = pause(ctx, trickleFor/2)
		err := answersInTime("a long commit beside slow ones", func() servers.Answer {
			return n.client.Set(ctx, t.namespace, t.name, map[string]string{"long": strings.Repeat("x", longCommit)})
		})
		if err != nil {
			return err
		}
		_ = pause(ctx, trickleFor/2)
		return w.allAnswer(ctx, t)
	})
	cancel()
	slow.Wait()
	return func(ctx context.Context) error { return w.dropTable(ctx, t) }, err
}

// trickle sends a header that declares a body, and then single bytes at intervals, until ctx ends
// or the server closes the connection.
func trickle(ctx context.Context, conn net.Conn, claimed int) {
	defer conn.Close()
	header := "POST /v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{"
	_, err := fmt.Fprintf(conn, header, claimed)
	for err == nil && pause(ctx, trickleEvery) == nil {
		_, err = io.WriteString(conn, " ")
	}
}

// largeNamespaces (6): listing names reads only names, and the size of properties is bounded.
func largeNamespaces(ctx context.Context, w *world) (func(context.Context) error, error) {
	client := w.nodes[0].client
	make := func(size int) servers.Answer {
		return client.Send(ctx, http.MethodPost, "namespaces", servers.Object{
			"namespace": []string{w.name("large")}, "properties": map[string]string{"x": strings.Repeat("x", size)},
		})
	}
	var names []string
	for range largeCount {
		a := make(largeProperties)
		if a.Outcome != servers.Acknowledged {
			return nil, fmt.Errorf("make a namespace with large properties: %d %.200s", a.Status, a.Text)
		}
		names = append(names, fmt.Sprintf("large%d", w.serial))
	}
	var err error
	if a := make(tooLarge); a.Status != http.StatusRequestEntityTooLarge {
		err = fmt.Errorf("a namespace with too large properties: %d %.200s", a.Status, a.Text)
	}
	n := w.nodes[0]
	listed := w.grows(ctx, n, allocated, listMemory, func() error {
		for range listsCount {
			if a := n.client.Send(ctx, http.MethodGet, "namespaces", nil); a.Outcome != servers.Acknowledged {
				return fmt.Errorf("list namespaces: %d %s", a.Status, a.Text)
			}
		}
		return nil
	})
	return func(ctx context.Context) (err error) {
		for _, name := range names {
			err = errors.Join(err, w.clear(ctx, name))
		}
		return err
	}, errors.Join(err, listed)
}

// allocated is the metric of the total bytes that a node has allocated.
const allocated = "go_memstats_alloc_bytes_total"

// manyChecks (13): simultaneous requests for a check share one check.
func manyChecks(ctx context.Context, w *world) (func(context.Context) error, error) {
	n := w.nodes[0]
	before, err := w.metric(ctx, n, allocated)
	if err == nil {
		err = w.check(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	after, err := w.metric(ctx, n, allocated)
	if err != nil {
		return nil, err
	}
	return nil, w.grows(ctx, n, allocated, checksRuns*(after-before)+checkMemory, func() error {
		errs := make([]error, checksCount)
		var group sync.WaitGroup
		for i := range checksCount {
			group.Go(func() { errs[i] = w.check(ctx, n) })
		}
		group.Wait()
		return errors.Join(errs...)
	})
}

// check has a node run a full check.
func (w *world) check(ctx context.Context, n *node) error {
	status, body, err := w.get(ctx, n.uri+"/management/v1/doctor?deep=true")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("check: %d %.200s", status, body)
	}
	return err
}
