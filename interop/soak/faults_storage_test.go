package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"moorage/testkit/servers"
)

const (
	// hangingLoads is the number of pending loads on each node of a table whose storage hangs.
	hangingLoads = 64
	// hangingClient is the timeout of the clients of these loads.
	hangingClient = 2 * time.Second
	// startsWithin bounds the start of a node while the storage of a warehouse hangs.
	startsWithin = 20 * time.Second
	// purgedWithin bounds the time until files are purged after the obstacle is gone: a purge round
	// starts every minute.
	purgedWithin = 3 * time.Minute
	// longBytes is the length of a property that makes metadata long: 6 MB compressed.
	longBytes = 8_000_000
	// slowLoads is the number of loads of long metadata that wait for the storage on a node.
	slowLoads = 6
)

// newWarehouse creates a warehouse in a folder.
func (w *world) newWarehouse(ctx context.Context, name, folder string) error {
	return w.command(ctx, []string{"warehouse", "create", name}, "--location", "file://"+folder, "--property", purgeAtOnce)
}

// dropWarehouse drops an empty warehouse.
func (w *world) dropWarehouse(ctx context.Context, name string) error {
	return w.command(ctx, []string{"warehouse", "drop", name})
}

// mount is a file system over a folder that never answers: each system call on it blocks. It
// simulates a network file system whose server is unreachable. It requires root and /dev/fuse.
type mount struct {
	folder string
	device int
}

// newMount mounts the file system over a folder.
func newMount(folder string) (*mount, error) {
	device, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/fuse, which takes root: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device)
	if err := syscall.Mount("soak", folder, "fuse", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return nil, errors.Join(fmt.Errorf("mount over %s, which takes root: %w", folder, err), syscall.Close(device))
	}
	return &mount{folder, device}, nil
}

// heal unmounts it. Blocked calls return an error.
func (m *mount) heal() error {
	return errors.Join(syscall.Unmount(m.folder, syscall.MNT_DETACH), syscall.Close(m.device))
}

// storageHangs (4): hanging storage of one warehouse does not affect the others, and a node can
// start meanwhile.
func storageHangs(ctx context.Context, w *world) (func(context.Context) error, error) {
	warehouse := w.name("hanging")
	folder := filepath.Join(w.hanging, warehouse)
	if err := w.newWarehouse(ctx, warehouse, folder); err != nil {
		return nil, err
	}
	beside, err := w.makeTable(ctx, "beside")
	if err != nil {
		return nil, err
	}
	t, err := w.makeTableIn(ctx, warehouse, "hangs", nil)
	if err != nil {
		return nil, err
	}
	stuck, err := newMount(filepath.Join(folder, t.namespace))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var loads sync.WaitGroup
	for _, n := range w.nodes {
		client := servers.NewClient(n.uri, hangingClient)
		defer client.CloseIdle()
		for range hangingLoads {
			loads.Go(func() { client.Send(ctx, http.MethodGet, warehouse+"/"+servers.TablePath(t.namespace, t.name), nil) })
		}
	}
	loads.Wait() // waits for the clients; the nodes may still be busy
	if took := time.Since(began); took < hangingClient/2 {
		err = fmt.Errorf("loads of what hangs ended after %s: nothing hangs", took)
	}
	err = errors.Join(err, w.allAnswer(ctx, beside), w.restart(ctx, w.nodes[nodesCount-1], startsWithin), w.allAnswer(ctx, beside), stuck.heal())
	return func(ctx context.Context) error {
		err := await(ctx, answerTimeout, func(ctx context.Context) error {
			for i, n := range w.nodes {
				if a := n.client.Send(ctx, http.MethodGet, warehouse+"/"+servers.TablePath(t.namespace, t.name), nil); a.Outcome != servers.Acknowledged {
					return fmt.Errorf("node %d: load what hung: %d %s", i, a.Status, a.Text)
				}
			}
			return nil
		})
		return errors.Join(err, w.clearIn(ctx, warehouse, t.namespace), w.dropTable(ctx, beside), w.dropWarehouse(ctx, warehouse))
	}, err
}

// clearIn is like clear for a warehouse's namespace with the single table t.
func (w *world) clearIn(ctx context.Context, warehouse, namespace string) error {
	return await(ctx, answerTimeout, func(ctx context.Context) error {
		client := w.nodes[0].client
		for _, path := range []string{servers.TablePath(namespace, "t") + "?purgeRequested=true", "namespaces/" + namespace} {
			a := client.Send(ctx, http.MethodDelete, warehouse+"/"+path, nil)
			if a.Outcome != servers.Acknowledged && a.Status != http.StatusNotFound {
				return fmt.Errorf("drop %s of %s: %d %s", path, warehouse, a.Status, a.Text)
			}
		}
		return nil
	})
}

// slowLongMetadata (7): long files on hanging storage leave memory for long files on other storage.
func slowLongMetadata(ctx context.Context, w *world) (func(context.Context) error, error) {
	warehouse := w.name("slow")
	bucket, err := w.s3.MakeBucket(ctx)
	if err != nil {
		return nil, err
	}
	err = w.command(ctx, []string{"warehouse", "create", warehouse}, "--location", "s3://"+bucket+"/lake",
		"--storage-option", "s3.endpoint=http://"+w.slowS3.Addr(), "--property", purgeAtOnce)
	if err != nil {
		return nil, err
	}
	// Each load is of a different table: loads of one table share a read.
	var slow []table
	for range slowLoads {
		t, err := w.makeTableIn(ctx, warehouse, "slow", map[string]string{"x": noise(w.random, longBytes), "write.metadata.compression-codec": "gzip"})
		if err != nil {
			return nil, err
		}
		slow = append(slow, t)
	}
	long, err := w.makeTableIn(ctx, "", "long", map[string]string{"x": noise(w.random, longBytes)})
	if err != nil {
		return nil, err
	}
	reader := w.nodes[1] // has none of them in its cache
	w.slowS3.Mute()
	var loads sync.WaitGroup
	client := servers.NewClient(reader.uri, 3*hangingClient)
	defer client.CloseIdle()
	for _, t := range slow {
		loads.Go(func() { client.Send(ctx, http.MethodGet, warehouse+"/"+servers.TablePath(t.namespace, t.name), nil) })
	}
	_ = pause(ctx, hangingClient) // until all of them wait
	err = answersInTime("a load of long metadata beside it", func() servers.Answer {
		return reader.client.Load(ctx, long.namespace, long.name)
	})
	loads.Wait()
	w.slowS3.Restore()
	return func(ctx context.Context) error {
		var err error
		for _, t := range slow {
			err = errors.Join(err, w.clearIn(ctx, warehouse, t.namespace))
		}
		return errors.Join(err, w.dropTable(ctx, long), w.dropWarehouse(ctx, warehouse))
	}, err
}

// noise returns text that hardly compresses.
func noise(random *rand.Rand, length int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	text := make([]byte, length)
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}

// warehouseElsewhere (8): a purge uses its table's original storage, even if another warehouse has
// the name by then.
func warehouseElsewhere(ctx context.Context, w *world) (func(context.Context) error, error) {
	warehouse := w.name("moved")
	before, after := filepath.Join(w.hanging, warehouse+"-before"), filepath.Join(w.hanging, warehouse+"-after")
	if err := w.newWarehouse(ctx, warehouse, before); err != nil {
		return nil, err
	}
	t, err := w.makeTableIn(ctx, warehouse, "moved", nil)
	if err != nil {
		return nil, err
	}
	stuck, err := newMount(filepath.Join(before, t.namespace)) // so that the purge waits
	if err != nil {
		return nil, err
	}
	err = w.clearIn(ctx, warehouse, t.namespace)
	if err == nil {
		err = errors.Join(w.dropWarehouse(ctx, warehouse), w.newWarehouse(ctx, warehouse, after))
	}
	err = errors.Join(err, w.pending(ctx, t), stuck.heal())
	path := strings.TrimPrefix(t.location, "file://")
	return func(ctx context.Context) error {
		err := await(ctx, purgedWithin, func(context.Context) error { return gone(path) })
		return errors.Join(err, w.dropWarehouse(ctx, warehouse))
	}, err
}

// pending returns an error unless a dropped table has a pending purge.
func (w *world) pending(ctx context.Context, t table) error {
	var pointers int
	const sql = "SELECT count(*) FROM moorage_pointer WHERE convert_from(value, 'UTF8')::jsonb->>'table-uuid' = $1"
	err := w.sql.QueryRow(ctx, sql, t.uuid).Scan(&pointers)
	if err == nil && pointers != 1 {
		err = fmt.Errorf("the purge of %s.%s was not held up", t.namespace, t.name)
	}
	return err
}

// gone returns an error if the file exists.
func gone(path string) error {
	_, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(fmt.Errorf("%s is there still", path), err)
}
