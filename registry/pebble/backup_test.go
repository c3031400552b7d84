package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"moorage/registry"
)

// The locations of the backups in these tests.
const (
	backupDir  = "data/backup"
	backupName = "registry"
)

// inBackup reports whether op concerns a backup, finished or not.
func inBackup(op errorfs.Op) bool { return strings.HasPrefix(op.Path, backupDir) }

// readBackup opens a backup, checks that its parts agree, and returns its content.
func readBackup(t *testing.T, files vfs.FS, dir string) *witness {
	t.Helper()
	s, err := open(files.PathJoin(dir, backupName), Options{FS: files}, smallTables)
	if err != nil {
		t.Fatalf("open the backup: %v", err)
	}
	defer closeStore(t, s)
	w := &witness{changes: make(map[registry.Position]string)}
	if err := w.read(t.Context(), s); err != nil {
		t.Fatalf("read the backup: %v", err)
	}
	return w
}

// leftovers returns the names in data, without the names of the store and of the wanted backups.
func leftovers(t *testing.T, files vfs.FS, wanted ...string) []string {
	t.Helper()
	names, err := files.List(path.Dir(testDir))
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, name := range names {
		if name != path.Base(testDir) && !strings.Contains(strings.Join(wanted, " "), name) {
			left = append(left, name)
		}
	}
	return left
}

// TestBackupUnderLoad makes backups while writers commit in groups. Each backup has all earlier
// acknowledged commits, no partial commits, and no commit that a power cut at the moment of the
// copy would have undone.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	const backups = 8
	random := rand.New(rand.NewPCG(testSeed(t), 1))
	files := vfs.NewCrashableMem()
	var left *vfs.MemFS // the files left by a power cut when a backup begins to copy the log
	s := openStore(t, hooked(files, func(op errorfs.Op) error {
		if inBackup(op) && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".log") && left == nil {
			left = files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: random})
		}
		return nil
	}), smallTables)
	defer closeStore(t, s)

	w := &witness{changes: make(map[registry.Position]string)}
	var done atomic.Bool
	var writers sync.WaitGroup
	defer writers.Wait()
	defer done.Store(true)
	for i := range powerWriters {
		writers.Go(func() {
			for step := 1; step < 1<<8 && !done.Load(); step++ {
				if _, err := s.Apply(t.Context(), powerBatch(i, step)); err != nil {
					t.Errorf("apply: %v", err)
					return
				}
				w.saw(i, step)
			}
		})
	}
	for n := range backups {
		dir := fmt.Sprint(backupDir, n)
		left = nil
		acknowledged := w.copy().steps
		records, err := s.Backup(t.Context(), dir, backupName, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, durable := readBackup(t, files, dir), readDurable(t, left)
		changes := 0
		for writer, step := range got.steps {
			changes += step
			if step < acknowledged[writer] || step > durable.steps[writer] {
				t.Errorf("backup %d: writer %d is at step %d; acknowledged was %d, durable %d", n, writer, step, acknowledged[writer], durable.steps[writer])
			}
		}
		// The format, up to two records of each writer, and the changes.
		if most := 1 + 2*powerWriters + changes; records > most || records < 1+changes {
			t.Errorf("backup %d: %d records, want at most %d", n, records, most)
		}
	}
}

// readDurable returns the content of a store after a power cut.
func readDurable(t *testing.T, files vfs.FS) *witness {
	t.Helper()
	s := openStore(t, files, smallTables)
	defer closeStore(t, s)
	w := &witness{changes: make(map[registry.Position]string)}
	if err := w.read(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestBackupWaitsForTheGroup delays the sync of a group. A backup that begins in the meantime must
// wait, and then has the group.
func TestBackupWaitsForTheGroup(t *testing.T) {
	t.Parallel()
	files := vfs.NewMem()
	g := newGate(isLogSync)
	var copying atomic.Bool
	s := openStore(t, hooked(files, func(op errorfs.Op) error {
		if inBackup(op) {
			copying.Store(true)
			return nil
		}
		return g.hook(op)
	}), asItIs)
	defer closeStore(t, s)
	g.close()
	var callers sync.WaitGroup
	callers.Go(func() {
		if _, err := s.Apply(t.Context(), powerBatch(0, 1)); err != nil {
			t.Error(err)
		}
	})
	<-g.arrived
	callers.Go(func() {
		if _, err := s.Backup(t.Context(), backupDir, backupName, nil); err != nil {
			t.Error(err)
		}
	})
	for s.queue.waiting() == 0 && !copying.Load() {
		runtime.Gosched()
	}
	if copying.Load() {
		t.Error("the backup did not wait for the group to be synced")
	}
	g.open()
	callers.Wait()
	if got := readBackup(t, files, backupDir).steps[0]; got != 1 {
		t.Errorf("the backup is at step %d, want 1", got)
	}
}

// waiting returns the number of requests that the committer has not taken yet.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.requests)
}

// TestBackupFullDisk makes each change of the file system by a backup fail in turn. The backup
// returns an error and leaves nothing, and the store continues.
func TestBackupFullDisk(t *testing.T) {
	t.Parallel()
	task := registry.TaskKey(registry.ID{1})
	forget := func(ctx context.Context, copied registry.Store) error {
		_, err := copied.Apply(ctx, registry.Batch{Writes: []registry.Write{registry.Delete(task)}})
		return err
	}
	for name, fault := range map[string]struct {
		once    bool
		prepare func(context.Context, registry.Store) error
	}{
		"once": {once: true}, "from then on": {}, "once, prepared": {once: true, prepare: forget}, "from then on, prepared": {prepare: forget},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := vfs.NewMem()
			var calls, failing atomic.Int64
			var arm atomic.Bool
			s := openStore(t, hooked(files, func(op errorfs.Op) error {
				removes := op.Kind == errorfs.OpRemove || op.Kind == errorfs.OpRemoveAll
				if !arm.Load() || removes || !(inBackup(op) || op.Path == path.Dir(backupDir)) {
					return nil
				}
				if call := calls.Add(1) - 1; call == failing.Load() || (call > failing.Load() && !fault.once) {
					return &vfsError{op, syscall.ENOSPC}
				}
				return nil
			}), smallTables)
			defer closeStore(t, s)
			for step := range 20 {
				if _, err := s.Apply(t.Context(), powerBatch(0, step+1)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(task, registry.StateNone, nil)}}); err != nil {
				t.Fatal(err)
			}
			for k := int64(0); ; k++ {
				calls.Store(0)
				failing.Store(k)
				arm.Store(true)
				_, err := s.Backup(t.Context(), backupDir, backupName, fault.prepare)
				arm.Store(false)
				if calls.Load() <= k {
					if err != nil {
						t.Fatalf("without a fault: %v", err)
					}
					break
				}
				// The syncs of some folders are not essential, and a file that cannot be linked is
				// copied.
				if err != nil && (!errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "back up to "+backupDir)) {
					t.Errorf("fault %d: %v, want ENOSPC and what was done", k, err)
				}
				if err == nil {
					if exists := isInBackup(t, files, task); exists != (fault.prepare == nil) {
						t.Errorf("fault %d was survived, but that the backup holds the task is %t", k, exists)
					}
					if got := readBackup(t, files, backupDir).steps[0]; got != 20+int(k) {
						t.Errorf("fault %d was survived, but the backup is at step %d, want %d", k, got, 20+k)
					}
					if err := files.RemoveAll(backupDir); err != nil {
						t.Fatal(err)
					}
				}
				if left := leftovers(t, files); left != nil {
					t.Fatalf("fault %d left %q after %v", k, left, err)
				}
				if err := s.Healthy(t.Context()); err != nil {
					t.Fatalf("fault %d: %v", k, err)
				}
				if _, err := s.Apply(t.Context(), powerBatch(0, 21+int(k))); err != nil {
					t.Fatalf("apply after fault %d: %v", k, err)
				}
			}
			if left := leftovers(t, files, path.Base(backupDir)); left != nil {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// isInBackup reports whether a backup contains a record.
func isInBackup(t *testing.T, files vfs.FS, key registry.Key) bool {
	t.Helper()
	s, err := Open(files.PathJoin(backupDir, backupName), Options{FS: files})
	if err != nil {
		t.Fatalf("open the backup: %v", err)
	}
	defer closeStore(t, s)
	records, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return records[0].Exists()
}

// TestBackupPrepared changes the copy before it becomes a backup. After a power cut, the changes
// are in the backup, and not in the store. If a change fails, there is no backup.
func TestBackupPrepared(t *testing.T) {
	t.Parallel()
	files := vfs.NewCrashableMem()
	s := openStore(t, files, asItIs)
	defer closeStore(t, s)
	if _, err := s.Apply(t.Context(), powerBatch(0, 1)); err != nil {
		t.Fatal(err)
	}
	task, refused := registry.TaskKey(registry.ID{1}), errors.New("refused")
	prepare := func(answer error) func(context.Context, registry.Store) error {
		return func(ctx context.Context, copied registry.Store) error {
			_, err := copied.Apply(ctx, registry.Batch{Writes: []registry.Write{registry.Put(task, registry.StateNone, nil)}})
			return errors.Join(err, answer)
		}
	}
	if _, err := s.Backup(t.Context(), backupDir, backupName, prepare(refused)); !errors.Is(err, refused) {
		t.Errorf("got %v, want what prepare answered", err)
	}
	if left := leftovers(t, files); left != nil {
		t.Errorf("left: %q", left)
	}
	if records, err := s.Backup(t.Context(), backupDir, backupName, prepare(nil)); err != nil || records != 5 {
		t.Errorf("%d records, error %v; want the format, two of the writer, a change and the task", records, err)
	}
	left := files.CrashClone(vfs.CrashCloneCfg{})
	removeLogs(t, left, left.PathJoin(backupDir, backupName)) // the backup must not need them
	if !isInBackup(t, left, task) {
		t.Error("what was done to the copy is not in the backup, or in its log only")
	}
	if got := readBackup(t, left, backupDir).steps[0]; got != 1 {
		t.Errorf("the backup is at step %d, want 1", got)
	}
	if records, err := s.Get(t.Context(), task); err != nil || records[0].Exists() {
		t.Errorf("the store has %v, error %v; want nothing of what was done to the copy", records, err)
	}
}

// removeLogs removes the engine's logs from the folder dir.
func removeLogs(t *testing.T, files vfs.FS, dir string) {
	t.Helper()
	names, err := files.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			if err := files.Remove(files.PathJoin(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestBackupOverSomething requests backups in places that already exist, and in places that are not
// possible.
func TestBackupOverSomething(t *testing.T) {
	t.Parallel()
	files := vfs.NewMem()
	s := openStore(t, files, asItIs)
	defer closeStore(t, s)
	if _, err := s.Backup(t.Context(), backupDir, backupName, nil); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]error{
		backupDir:               fs.ErrExist,
		testDir:                 fs.ErrExist,
		"elsewhere/backups":     fs.ErrNotExist,
		testDir + "/000099.log": errWithin, // the next opening would take it for a log of the engine
		testDir + "/a/b":        errWithin,
	} {
		if _, err := s.Backup(t.Context(), dir, backupName, nil); !errors.Is(err, want) {
			t.Errorf("back up to %s: %v, want %v", dir, err, want)
		}
	}
	if left := leftovers(t, files, path.Base(backupDir)); left != nil {
		t.Errorf("left: %q", left)
	}
}

// TestBackupOfAFailedStore requests backups of a failed store and of a closed one.
func TestBackupOfAFailedStore(t *testing.T) {
	t.Parallel()
	files := vfs.NewMem()
	s := openStore(t, files, asItIs)
	s.fail(syscall.EIO)
	if _, err := s.Backup(t.Context(), backupDir, backupName, nil); !errors.Is(err, registry.ErrFailed) {
		t.Errorf("failed: %v, want ErrFailed", err)
	}
	closeStore(t, s)
	if _, err := s.Backup(t.Context(), backupDir, backupName, nil); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("closed: %v, want ErrClosed", err)
	}
	if left := leftovers(t, files); left != nil {
		t.Errorf("left: %q", left)
	}
}

// TestBackupOfDamage damages a table of the store. A backup reads its copy, so it detects the
// damage.
func TestBackupOfDamage(t *testing.T) {
	t.Parallel()
	files := vfs.NewMem()
	s := openStore(t, files, smallTables)
	if _, err := s.Apply(t.Context(), powerBatch(0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	names, err := files.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, name := range names {
		if filepath.Ext(name) != ".sst" {
			continue
		}
		file, err := files.OpenReadWrite(files.PathJoin(testDir, name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt([]byte("damaged"), 20); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		damaged++
	}
	if damaged == 0 {
		t.Fatalf("no table among %q", names)
	}
	if _, err := s.Backup(t.Context(), backupDir, backupName, nil); err == nil || !strings.Contains(err.Error(), "read the copy") {
		t.Errorf("backup: %v, want an error about the copy", err)
	}
	if left := leftovers(t, files); left != nil {
		t.Errorf("left: %q", left)
	}
	_ = s.Close() // other effects of the damage do not matter here
}
