package file

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"moorage/storage"
	"moorage/testkit/scale"
)

// errCut is the error of all calls after the power is cut.
var errCut = errors.New("the power is cut")

// witness remembers what a store acknowledged, and what a reader saw in the store.
type witness struct {
	t     *testing.T
	disk  *disk
	store *Store // nil until it is open
	owed  map[string]string
	// created is called after each Create with its result. It may be nil.
	created  func(name string, err error)
	creating string // name of the file that a running Create makes
}

const diskRoot = "file:///srv/moorage/w"

// bodyOf returns the content for the file called name.
func bodyOf(name string) string { return strings.Repeat("body of "+name+"\n", 3) }

// openOn opens a store on a disk. The store makes one call at a time, because a disk serves one
// goroutine.
func openOn(d *disk) (*Store, error) {
	store, err := NewOpener().open([]string{diskRoot}, d.open)
	if err == nil {
		store.atOnce = 1
	}
	return store, err
}

func (w *witness) open() {
	if store, err := openOn(w.disk); err == nil {
		w.store = store
	}
}

// create creates a file, and remembers it if the Create is acknowledged.
func (w *witness) create(name string) {
	if w.store == nil {
		return
	}
	w.creating = name
	err := w.store.Create(context.Background(), storage.Join(diskRoot, name), []byte(bodyOf(name)))
	w.creating = ""
	w.answered(name, err)
}

// createAll does the same for several files, with one CreateAll.
func (w *witness) createAll(names ...string) {
	if w.store == nil {
		return
	}
	files := make([]storage.File, len(names))
	for i, name := range names {
		files[i] = storage.File{Location: storage.Join(diskRoot, name), Body: []byte(bodyOf(name))}
	}
	for i, err := range w.store.CreateAll(context.Background(), files) {
		w.answered(names[i], err)
	}
}

// answered remembers the result of a Create of name.
func (w *witness) answered(name string, err error) {
	if err == nil {
		w.owed[name] = "acknowledged"
	}
	if errors.Is(err, storage.ErrExists) {
		w.owed[name] = "said to exist"
	}
	if w.created != nil {
		w.created(name, err)
	}
}

// read looks for the files called names, and remembers the files that it finds.
func (w *witness) read(names ...string) {
	if w.store == nil {
		return
	}
	for _, name := range names {
		_, statErr := w.store.Stat(context.Background(), storage.Join(diskRoot, name))
		body, _, openErr := w.store.Open(context.Background(), storage.Join(diskRoot, name))
		if statErr == nil || openErr == nil {
			w.owed[name] = "seen by a reader"
		}
		if w.owed[name] != "" && (statErr != nil || openErr != nil) {
			w.t.Errorf("%s was %s, and is gone: %v, %v", name, w.owed[name], statErr, openErr)
		}
		if openErr == nil {
			body.Close()
		}
	}
}

// check compares a disk after a power cut with what the witness remembers. Every file with a final
// name must be complete.
func (w *witness) check(after *disk, what string) {
	w.t.Helper()
	store, err := openOn(after)
	if err != nil {
		w.t.Fatalf("%s: open: %v", what, err)
	}
	for name, why := range w.owed {
		content, err := storage.ReadAll(context.Background(), store, storage.Join(diskRoot, name), 1<<20)
		if err != nil || string(content) != bodyOf(name) {
			w.t.Errorf("%s: %s, which was %s, has %q, %v", what, name, why, content, err)
		}
	}
	after.root.walk("", func(name string, file *node) {
		name = strings.TrimPrefix(name, "srv/moorage/w/")
		if path.Ext(name) != ".tmp" && string(file.data) != bodyOf(name) {
			w.t.Errorf("%s: %s is torn: %q", what, name, file.data)
		}
	})
}

// history opens a store and uses it in every way that makes something durable.
func (w *witness) history() {
	w.open()
	w.create("a/b/metadata/1.json")
	w.create("a/b/metadata/2.json")
	w.engineMakes("e/data")
	w.create("e/metadata/1.json")
	w.create("top.json")
	w.create("a/b/metadata/1.json")
	if w.store == nil {
		return
	}
	ctx, staged := context.Background(), storage.Join(diskRoot, "s/metadata")
	// The results of these calls do not matter, only their leftovers.
	_ = w.store.MakeFolder(ctx, staged)
	_, _ = w.store.RemoveEmptyFolder(ctx, staged, 0)
	w.engineMakes("s/metadata")
	w.create("s/metadata/1.json")
	_ = w.store.Delete(ctx, storage.Join(diskRoot, "s/metadata/none.json"))
	w.create("s/metadata/2.json")
	w.createAll("b/2.json", "a/b/metadata/4.json", "n/metadata/1.json", "a/b/metadata/2.json", "b/1.json")
}

var historyNames = []string{
	"a/b/metadata/1.json", "a/b/metadata/2.json", "e/metadata/1.json", "top.json", "s/metadata/1.json", "s/metadata/2.json",
	"b/1.json", "b/2.json", "a/b/metadata/4.json", "n/metadata/1.json",
}

// engineMakes makes folders as an engine does, which syncs nothing.
func (w *witness) engineMakes(folder string) {
	files, err := w.disk.open("/srv/moorage/w")
	if err != nil {
		return
	}
	for i, c := range folder + "/" {
		if c == '/' {
			_ = files.Mkdir(folder[:i], folderMode)
		}
	}
}

// TestPowerCut cuts the power before each call in turn. A reader reads after each call.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for k := 0; ; k++ {
		w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
		isCut := false
		w.disk.before = func(call int, _ string) error {
			if isCut = isCut || call == k; isCut {
				return errCut
			}
			return nil
		}
		w.disk.after = func() { w.read(historyNames...) }
		w.history()
		w.checkAll(fmt.Sprintf("cut before call %d", k), uint64(k))
		if !isCut {
			if len(w.owed) != len(historyNames) {
				t.Errorf("with no cut, this was acknowledged: %v", w.owed)
			}
			w.wantTidy("with no cut", true)
			t.Logf("%d calls", k)
			return
		}
	}
}

// checkAll checks the disk after a power cut now: once with everything lost that was not synced,
// and once with a random part of it kept.
func (w *witness) checkAll(what string, seed uint64) {
	w.t.Helper()
	w.check(w.disk.cutPower(nil), what)
	for n := range uint64(3) {
		w.check(w.disk.cutPower(rand.New(rand.NewPCG(seed, n))), fmt.Sprintf("%s, seed (%d,%d)", what, seed, n))
	}
}

// wantTidy checks that nothing stays open. If removes is true, it also checks that no temporary
// file is left.
func (w *witness) wantTidy(what string, removes bool) {
	w.t.Helper()
	if w.disk.held != 0 {
		w.t.Errorf("%s: %d files and folders are still open", what, w.disk.held)
	}
	if !removes {
		return
	}
	w.disk.root.walk("", func(name string, _ *node) {
		if path.Ext(name) == ".tmp" {
			w.t.Errorf("%s: %s is left", what, name)
		}
	})
}

// TestFaults makes each call fail in turn, after which the store continues. The Create in progress
// must not succeed. The power is cut after each Create in turn.
func TestFaults(t *testing.T) {
	t.Parallel()
	first, stride := scale.Steps(t)
	for _, fault := range []error{syscall.ENOSPC, syscall.EACCES} {
		for k := first; ; k += stride {
			failed, during := "", ""
			w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
			w.disk.before = func(call int, op string) error {
				if call == k {
					failed, during = op, w.creating
					return fault
				}
				return nil
			}
			w.disk.after = func() { w.read(historyNames...) }
			w.created = func(name string, err error) {
				if failed == "" {
					return
				}
				if name == during && failed != "unlinkat" && err == nil {
					t.Errorf("%v at call %d, %s: Create of %s succeeded", fault, k, failed, name)
				}
				during = ""
				what := fmt.Sprintf("%v at call %d, %s, power cut after Create of %s", fault, k, failed, name)
				w.disk.quietly(func() { w.read(name) })
				w.checkAll(what, uint64(k))
			}
			w.history()
			if failed == "" {
				break
			}
			w.wantTidy(fmt.Sprintf("%v at call %d, %s", fault, k, failed), failed != "unlinkat")
			if w.store == nil {
				w.open()
			}
			for _, name := range []string{"a/b/metadata/3.json", "e/metadata/3.json", "s/metadata/3.json"} {
				w.create(name)
				if w.owed[name] == "" {
					t.Errorf("after %v at call %d, %s, the store does not work", fault, k, failed)
				}
			}
		}
	}
}

// A Create waits for another one that makes the same file. If its context ends, it returns the
// error of the context, and not that the file exists.
func TestCreateStopsWaiting(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(context.Context, *Store, storage.File) error{
		"Create": func(ctx context.Context, store *Store, file storage.File) error {
			return store.Create(ctx, file.Location, file.Body)
		},
		"CreateAll": func(ctx context.Context, store *Store, file storage.File) error {
			return store.CreateAll(ctx, []storage.File{file})[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
				w.open()
				file, waited := filesIn(1)[0], false
				w.disk.before = func(_ int, op string) error {
					if op != "write" {
						return nil
					}
					waited = true
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if err := create(ctx, w.store, file); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("who waited heard %v", err)
					}
					return syscall.ENOSPC
				}
				if err := w.store.Create(t.Context(), file.Location, file.Body); !errors.Is(err, syscall.ENOSPC) || !waited {
					t.Errorf("the first heard %v; another waited: %t", err, waited)
				}
			})
		})
	}
}

// TestPowerCutAmongWriters makes a second writer create a file in the same new folder before each
// call of the first. It cuts the power once the second Create is acknowledged.
func TestPowerCutAmongWriters(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"a/b/metadata/2.json", "a/c/metadata/1.json", "a/x.json"} {
		for k := 0; ; k++ {
			w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
			w.open()
			start, isCut := w.disk.calls, false
			w.disk.before = func(call int, _ string) error {
				if call == start+k {
					w.create(second)
					isCut = true
				}
				if isCut {
					return errCut
				}
				return nil
			}
			w.create("a/b/metadata/1.json")
			if !isCut {
				break
			}
			if w.owed[second] == "" {
				t.Fatalf("the second writer failed before call %d", k)
			}
			w.checkAll(fmt.Sprintf("%s created before call %d", second, k), uint64(k))
		}
	}
}

// TestRemovedFolderIsMadeAgain removes the folders of a store, as an engine may, before each call
// of a Create or CreateAll. The Create then succeeds in new folders, which are durable.
func TestRemovedFolderIsMadeAgain(t *testing.T) {
	t.Parallel()
	t.Run("Create", func(t *testing.T) {
		removeFolders(t, func(w *witness) { w.create("a/b/new.json") })
	})
	t.Run("CreateAll", func(t *testing.T) {
		removeFolders(t, func(w *witness) { w.createAll("a/b/new.json", "a/b/newer.json", "c.json") })
	})
}

func removeFolders(t *testing.T, create func(*witness)) {
	for k := 0; ; k++ {
		w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
		w.open()
		w.create("a/b/old.json")
		start, reached, linked := w.disk.calls, false, false
		w.disk.before = func(call int, op string) error {
			linked = linked || op == "linkat" && !reached && call != start+k
			if call == start+k {
				reached = true
				root, err := w.disk.root.find("srv/moorage/w")
				if err != nil {
					t.Error(err)
				}
				root.remove("a")
			}
			return nil
		}
		delete(w.owed, "a/b/old.json")
		create(w)
		if !reached {
			return
		}
		if w.owed["a/b/new.json"] == "" {
			t.Errorf("folders that are removed before call %d make it fail", k)
		}
		_, err := w.disk.root.find("srv/moorage/w/a/b/new.json")
		switch {
		case err == nil:
			w.checkAll(fmt.Sprintf("folders removed before call %d", k), uint64(k))
		case !linked:
			t.Errorf("folders that are removed before call %d, before the file has its name, keep it from being found", k)
		}
	}
}

// TestRemovedFolderIsMadeAgainByOthers is the same, but before the next call, an engine makes the
// folders again without syncing them. If the store has noticed that the folders were gone, it syncs
// them.
func TestRemovedFolderIsMadeAgainByOthers(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(*witness){
		"Create":    func(w *witness) { w.create("a/b/new.json") },
		"CreateAll": func(w *witness) { w.createAll("a/b/new.json", "a/b/newer.json", "c.json") },
	} {
		t.Run(name, func(t *testing.T) {
			heard := 0
			for k := 0; ; k++ {
				w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
				w.open()
				w.create("a/b/old.json")
				delete(w.owed, "a/b/old.json")
				start, hears, reached := w.disk.calls, false, false
				w.disk.before = func(call int, op string) error {
					switch call {
					case start + k:
						reached, hears = true, op == "opendir" || op == "linkat"
						root, err := w.disk.root.find("srv/moorage/w")
						if err != nil {
							t.Error(err)
						}
						root.remove("a")
					case start + k + 1:
						w.engineMakes("a/b")
					}
					return nil
				}
				create(w)
				if !reached {
					break
				}
				_, err := w.disk.root.find("srv/moorage/w/a/b/new.json")
				if !hears || err != nil {
					continue
				}
				heard++
				w.checkAll(fmt.Sprintf("folders removed before call %d", k), uint64(k))
			}
			if heard < 2 {
				t.Errorf("the store heard %d times that its folder was gone", heard)
			}
		})
	}
}

// TestExistsIsDurable creates a file that already exists: another store made it in unsynced
// folders, and then died. A caller that gets ErrExists may rely on the file.
func TestExistsIsDurable(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(*witness){
		"Create":    func(w *witness) { w.create("a/b/1.json") },
		"CreateAll": func(w *witness) { w.createAll("a/b/1.json", "c.json") },
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
			w.open()
			w.engineMakes("a/b")
			folder, err := w.disk.root.find("srv/moorage/w/a/b")
			if err != nil {
				t.Fatal(err)
			}
			content := []byte(bodyOf("a/b/1.json"))
			folder.entries["1.json"] = &node{data: content, synced: content}
			folder.durable["1.json"] = folder.entries["1.json"]
			create(w)
			if w.owed["a/b/1.json"] != "said to exist" {
				t.Errorf("it was %q", w.owed["a/b/1.json"])
			}
			w.checkAll("after it was said to exist", 0)
		})
	}
}

// TestSyncs counts the syncs of a Create. In a known folder, it syncs the file and the folder. Each
// file of a CreateAll needs the same number.
func TestSyncs(t *testing.T) {
	t.Parallel()
	w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
	w.open()
	for _, row := range []struct {
		names []string
		want  int
	}{
		{[]string{"a/b/1.json"}, 4},
		{[]string{"a/b/2.json"}, 2},
		{[]string{"a/c/1.json"}, 3},
		{[]string{"2.json"}, 2},
		{[]string{"a/b/3.json", "a/c/3.json", "a/b/4.json"}, 6},
		{[]string{"a/b/5.json", "a/b/6.json", "a/d/1.json"}, 7},
	} {
		syncs := 0
		w.disk.before = func(_ int, op string) error {
			if op == "fsync" {
				syncs++
			}
			return nil
		}
		if len(row.names) == 1 {
			w.create(row.names[0])
		} else {
			w.createAll(row.names...)
		}
		if syncs != row.want {
			t.Errorf("to create %s syncs %d times, want %d", row.names, syncs, row.want)
		}
	}
}
