package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"moorage/storage"
)

// mount is a file system whose calls can be made to hang. They hang in read(2) of a pipe and hold
// their threads, even if their contexts end.
type mount struct {
	t       *testing.T
	hangs   atomic.Pointer[func(op string) bool] // which calls hang; nil if none do
	hanging atomic.Int64                         // number of calls that hang
	pipe    [2]int
	release func()
}

func newMount(t *testing.T) *mount {
	m := &mount{t: t}
	if err := syscall.Pipe2(m.pipe[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	m.release = sync.OnceFunc(func() {
		m.hangs.Store(nil)
		_ = syscall.Close(m.pipe[1]) // ends every read(2)
	})
	t.Cleanup(func() {
		m.release()
		m.settle(0)
		_ = syscall.Close(m.pipe[0])
	})
	return m
}

// hang makes every call hang for which the function which returns true.
func (m *mount) hang(which func(op string) bool) { m.hangs.Store(&which) }

func all(string) bool { return true }

// settle waits until the given number of calls hang.
func (m *mount) settle(count int64) {
	m.t.Helper()
	await(m.t, &m.hanging, count)
}

// awaitIdle waits until no call of a Store is in progress.
func awaitIdle(t *testing.T, store *Store) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); store.Busy(); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatal("a Store is still busy")
		}
	}
}

// await waits until a number of calls is as wanted.
func await(t *testing.T, calls *atomic.Int64, want int64) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); calls.Load() != want; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%d calls, want %d", calls.Load(), want)
		}
	}
}

func (m *mount) call(op string) {
	if which := m.hangs.Load(); which != nil && (*which)(op) {
		m.hanging.Add(1)
		defer m.hanging.Add(-1)
		_, _ = syscall.Read(m.pipe[0], make([]byte, 1))
	}
}

// open does the work of openRoot for a folder on m.
func (m *mount) open(folder string) (fileSystem, error) {
	m.call("openroot")
	files, err := openRoot(folder)
	return mountFS{files, m}, err
}

type mountFS struct {
	fileSystem
	m *mount
}

func (f mountFS) OpenFile(name string, flag int, mode fs.FileMode) (handle, error) {
	f.m.call("open")
	return f.fileSystem.OpenFile(name, flag, mode)
}

func (f mountFS) Stat(name string) (fs.FileInfo, error) {
	f.m.call("stat")
	return f.fileSystem.Stat(name)
}

func (f mountFS) Seen(name string) bool {
	f.m.call("seen")
	return f.fileSystem.Seen(name)
}

func (f mountFS) Mkdir(name string, mode fs.FileMode) error {
	f.m.call("mkdir")
	return f.fileSystem.Mkdir(name, mode)
}

func (f mountFS) Remove(name string) error {
	f.m.call("remove")
	return f.fileSystem.Remove(name)
}

func (f mountFS) Folder(name string) (folderFS, error) {
	f.m.call("folder")
	folder, err := f.fileSystem.Folder(name)
	return mountFolder{folder, f.m}, err
}

type mountFolder struct {
	folderFS
	m *mount
}

func (f mountFolder) OpenFile(name string, flag int, mode fs.FileMode) (handle, error) {
	f.m.call("open")
	content, err := f.folderFS.OpenFile(name, flag, mode)
	return mountFile{content, f.m}, err
}

func (f mountFolder) Link(from, to string) error {
	f.m.call("link")
	return f.folderFS.Link(from, to)
}

func (f mountFolder) Remove(name string) error {
	f.m.call("remove")
	return f.folderFS.Remove(name)
}

func (f mountFolder) Lstat(name string) (fs.FileInfo, error) {
	f.m.call("lstat")
	return f.folderFS.Lstat(name)
}

func (f mountFolder) Sync() error {
	f.m.call("sync")
	return f.folderFS.Sync()
}

type mountFile struct {
	handle
	m *mount
}

func (f mountFile) Write(p []byte) (int, error) {
	f.m.call("write")
	return f.handle.Write(p)
}

func (f mountFile) Sync() error {
	f.m.call("sync")
	return f.handle.Sync()
}

// whileHanging calls do with a context that ends as soon as a call hangs. It returns the result of
// do.
func (m *mount) whileHanging(do func(ctx context.Context) error) error {
	m.t.Helper()
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- do(ctx) }()
	m.settle(1)
	cancel()
	return <-answered
}

// onMount returns a store whose only root is on m, and the folder.
func (m *mount) onMount() (*Store, string) {
	m.t.Helper()
	folder := m.t.TempDir()
	store, err := NewOpener().open([]string{"file://" + folder}, m.open)
	if err != nil {
		m.t.Fatal(err)
	}
	return store, folder
}

func create(t *testing.T, s *Store, location string) {
	t.Helper()
	if err := s.Create(t.Context(), location, []byte("content")); err != nil {
		t.Fatal(err)
	}
}

// threads returns how many threads the process has.
func threads(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "\nThreads:\t")
	var n int
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Callers whose calls hang continue when their contexts end. No more than callsMax calls, with
// their threads, are abandoned, however many callers come and give up.
func TestHangingCallsAreBounded(t *testing.T) {
	m := newMount(t)
	store, folder := m.onMount()
	location := "file://" + folder + "/f"
	create(t, store, location)
	m.hang(all)
	before := threads(t)
	var callers sync.WaitGroup
	for i := range 3000 {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(2*i)*time.Millisecond)
			defer cancel()
			var err error
			if i%2 == 0 {
				_, err = store.Stat(ctx, location)
			} else {
				_, _, err = store.Open(ctx, location)
			}
			if !errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("answered %v", err)
			}
		})
	}
	callers.Wait()
	m.settle(callsMax)
	if more := threads(t) - before; more > callsMax+20 {
		t.Errorf("%d threads more than before, want about %d", more, callsMax)
	}
	if !store.calls.stuck.Load() {
		t.Error("the callers have left no sign that the calls are stuck")
	}
	// A caller that waits for a slot would get the error of its context, which has ended.
	ended, end := context.WithCancel(t.Context())
	end()
	look := aLook()
	if err := store.calls.enter(ended, &look); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.Canceled) {
		t.Errorf("entered with %v, want a refusal at once", err)
	}
	if _, err := store.Stat(t.Context(), location); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("answered %v", err)
	}
	if store.MayBeGone(location) || store.MayBeGone(location+"-absent") {
		t.Error("what does not answer is said to be gone")
	}
	m.release()
	m.settle(0)
	if info, err := store.Stat(t.Context(), location); err != nil || info.Bytes != 7 {
		t.Errorf("when nothing hangs any more: %v", err)
	}
	if !store.MayBeGone(location + "-absent") {
		t.Error("what is not there is not missed")
	}
}

// Stores that hang together hold no more threads than their Opener allows, plus a few for each
// Store.
func TestHangingStoresAreBounded(t *testing.T) {
	t.Parallel()
	m := newMount(t)
	opener := NewOpener()
	opener.calls = semaphore.NewWeighted(2 * callsFew)
	var stores []*Store
	folder := t.TempDir()
	for range 6 {
		store, err := opener.open([]string{"file://" + folder}, m.open)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, store)
	}
	m.hang(all)
	for i, store := range stores {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var callers sync.WaitGroup
		for range 2 * callsFew {
			callers.Go(func() { _, _ = store.Stat(ctx, "file://"+folder+"/f") })
		}
		want := int64(callsFew)
		if i == 0 {
			want = 2 * callsFew // the first takes all that the Stores share
		}
		await(t, &store.calls.inside, want)
		cancel()
		callers.Wait()
	}
	var more sync.WaitGroup
	for _, store := range stores[2:] {
		more.Go(func() {
			if _, err := store.Stat(t.Context(), "file://"+folder+"/f"); !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("answered %v", err)
			}
		})
	}
	more.Wait()
	var inside int64
	for _, store := range stores {
		inside += store.calls.inside.Load()
	}
	if inside != 2*callsFew+5*callsFew {
		t.Errorf("%d calls hang", inside)
	}
	m.release()
	for _, store := range stores {
		awaitIdle(t, store)
	}
	for _, store := range stores {
		if _, err := store.Stat(t.Context(), "file://"+folder+"/f"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("when nothing hangs any more: %v", err)
		}
	}
}

// hangingContent is a file whose second piece hangs.
type hangingContent struct {
	io.Reader
	m     *mount
	reads *int
}

func (c hangingContent) Read(p []byte) (int, error) {
	if *c.reads++; *c.reads > 1 {
		c.m.call("read")
	}
	return c.Reader.Read(p)
}
func (hangingContent) Write([]byte) (int, error)          { panic("not called") }
func (hangingContent) ReadAt([]byte, int64) (int, error)  { panic("not called") }
func (hangingContent) Stat() (fs.FileInfo, error)         { panic("not called") }
func (hangingContent) Readdirnames(int) ([]string, error) { panic("not called") }
func (hangingContent) Sync() error                        { panic("not called") }
func (hangingContent) Close() error                       { return nil }

// A read that hangs ends with its context, and never writes to the caller's buffer after that.
func TestReadThatIsLeftBehind(t *testing.T) {
	t.Parallel()
	m := newMount(t)
	m.hang(func(op string) bool { return op == "read" })
	content := bytes.Repeat([]byte{1}, 3*pieceBytes)
	b := newBody(hangingContent{bytes.NewReader(content), m, new(int)}, int64(len(content)))
	into, n := make([]byte, len(content)), 0
	err := m.whileHanging(func(ctx context.Context) (err error) {
		b.countAs(ctx, newCalls(semaphore.NewWeighted(openerCallsMax)))
		n, err = io.ReadFull(b, into)
		return err
	})
	if n != pieceBytes || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("read %d, %v", n, err)
	}
	m.release()
	m.settle(0)
	if bytes.ContainsAny(into[n:], "\x01") {
		t.Error("the read wrote to what it was given after it had returned")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// A root that hangs while it is opened does not block other roots. It is usable as soon as it
// answers.
func TestRootThatHangs(t *testing.T) {
	t.Parallel()
	m := newMount(t)
	m.hang(all)
	there, stuck := t.TempDir(), t.TempDir()
	store, err := NewOpener().open([]string{"file://" + there, "file://" + stuck}, func(folder string) (fileSystem, error) {
		if folder == stuck {
			return m.open(folder)
		}
		return openRoot(folder)
	})
	if err != nil {
		t.Fatal(err)
	}
	create(t, store, "file://"+there+"/f")
	if err := store.Create(t.Context(), "file://"+stuck+"/f", nil); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("create: %v", err)
	}
	if err := store.Probe(t.Context()); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), stuck) || strings.Contains(err.Error(), there) {
		t.Errorf("probe: %v", err)
	}
	if store.MayBeGone("file://" + stuck + "/f") {
		t.Error("what does not answer is said to be gone")
	}
	m.settle(1) // one call for all callers
	m.release()
	awaitIdle(t, store)
	if err := store.Probe(t.Context()); err != nil {
		t.Errorf("probe, when nothing hangs any more: %v", err)
	}
	create(t, store, "file://"+stuck+"/f")
}

// If a store fails to open, callers try again, and each time the root that hangs takes a thread. So
// the number of roots being opened is limited.
func TestOpeningsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMount(t)
	m.hang(all)
	opener := NewOpener()
	const most = 3
	opener.openings = semaphore.NewWeighted(most + 1) // one for the root that fails
	missing := errors.New("not allowed")
	stuck := t.TempDir()
	open := func(folder string) (fileSystem, error) {
		if folder == stuck {
			return m.open(folder)
		}
		return nil, missing
	}
	for range most {
		if _, err := opener.open([]string{"file://" + stuck, "file://" + t.TempDir()}, open); !errors.Is(err, missing) {
			t.Fatalf("open beside a root that fails: %v", err)
		}
	}
	if _, err := opener.open([]string{"file://" + stuck}, open); err != nil {
		t.Errorf("as many as may be opened: %v", err)
	}
	if _, err := opener.open([]string{"file://" + stuck}, open); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("one more than may be opened: %v", err)
	}
	m.settle(most + 1)
	m.release()
	for {
		store, err := opener.open([]string{"file://" + stuck}, openRoot)
		if err == nil {
			create(t, store, "file://"+stuck+"/f")
			return
		}
		if !errors.Is(err, storage.ErrUnavailable) {
			t.Fatalf("when nothing hangs any more: %v", err)
		}
		runtime.Gosched()
	}
}
