package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"moorage/storage"
)

// leftover is a temporary name of another process.
var leftover = temporaryPrefix + strings.Repeat("A", 26) + "-1" + temporarySuffix

func TestIsForeignTemporary(t *testing.T) {
	t.Parallel()
	store := &Store{temporary: strings.Repeat("B", 26)}
	drawn := strings.Repeat("A", 26)
	for name, want := range map[string]bool{
		leftover:                               true,
		"moorage-" + drawn + "-1234567890.tmp": true,
		store.newTemporary():                   false,
		"moorage-" + drawn + "-.tmp":           false,
		"moorage-" + drawn + ".tmp":            false,
		"moorage-" + drawn + "-1-1.tmp":        false,
		"moorage-" + drawn + "-x.tmp":          false,
		"moorage-" + drawn + "-1":              false,
		"moorage-" + drawn[1:] + "-1.tmp":      false,
		"moorage-1.tmp":                        false,
		drawn + "-1.tmp":                       false,
		"00001-a.metadata.json":                false,
		"":                                     false,
	} {
		if got := store.isForeignTemporary(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

// put puts a file of the given age into a folder of the store's disk.
func (w *witness) put(folder, name string, age time.Duration) *node {
	w.t.Helper()
	found, err := w.disk.root.find("srv/moorage/w/" + folder)
	if err != nil {
		w.t.Fatal(err)
	}
	file := &node{modified: time.Now().Add(-age)}
	found.entries[name] = file
	return file
}

// has reports whether a file is in a folder of the store's disk.
func (w *witness) has(folder, name string) bool {
	_, err := w.disk.root.find(path.Join("srv/moorage/w", folder, name))
	return err == nil
}

// restart opens the store as a new process does.
func (w *witness) restart() {
	w.t.Helper()
	if w.open(); w.store == nil {
		w.t.Fatal("the store does not open")
	}
}

// TestSweep: the first process that creates or deletes a file in a folder removes what killed
// processes left there. Young files stay until they are old, and other files stay. A folder without
// leftovers is not checked again.
func TestSweep(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*witness, int){
		"Create":    func(w *witness, i int) { w.create(fmt.Sprintf("a/%d.json", i)) },
		"CreateAll": func(w *witness, i int) { w.createAll(fmt.Sprintf("a/%d.json", i), fmt.Sprintf("a/%d-too.json", i)) },
		"Delete": func(w *witness, i int) {
			locations := []string{storage.Join(diskRoot, fmt.Sprintf("a/%d.json", i)), storage.Join(diskRoot, "a/other.json")}
			if err := w.store.Delete(context.Background(), locations...); err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
			w.restart()
			w.create("a/first.json")
			lists := 0
			w.disk.before = func(_ int, op string) error {
				if op == "readdir" {
					lists++
				}
				return nil
			}
			young := strings.Replace(leftover, "-1.", "-2.", 1)
			early := strings.Replace(leftover, "-1.", "-3.", 1)
			w.restart()
			w.put("a", leftover, 2*leftoverAge)
			w.put("a", early, -2*leftoverAge)
			w.put("a", young, leftoverAge/2)
			w.put("a", "theirs.tmp", 2*leftoverAge)
			for i := range 2 {
				use(w, i)
				if w.has("a", leftover) || w.has("a", early) || !w.has("a", young) || !w.has("a", "theirs.tmp") {
					t.Errorf("use %d: of leftovers, one from the future, one that is young and another's file, these are there: %t, %t, %t, %t",
						i, w.has("a", leftover), w.has("a", early), w.has("a", young), w.has("a", "theirs.tmp"))
				}
			}
			if name == "Delete" && lists != 4 { // names are read in two parts
				t.Errorf("two Deletes of files of one folder look at it %d times", lists)
			}
			now := time.Now().Add(leftoverAge)
			w.store.now = func() time.Time { return now }
			lists = 0
			use(w, 2)
			if looked := lists; w.has("a", young) || looked == 0 {
				t.Errorf("when it is no longer young, it is there: %t, after %d looks", w.has("a", young), looked)
			}
			lists = 0
			if use(w, 3); lists != 0 {
				t.Errorf("a folder in which nothing is left is looked at %d times", lists)
			}
		})
	}
}

// TestSweepLeavesFolders: something with a temporary name that is not a file was not left by a
// store, and stays.
func TestSweepLeavesFolders(t *testing.T) {
	t.Parallel()
	w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
	w.restart()
	w.create("a/first.json")
	w.restart()
	w.put("a", leftover, 2*leftoverAge).mode = newFolder().mode
	if w.create("a/1.json"); !w.has("a", leftover) || w.owed["a/1.json"] == "" {
		t.Errorf("a folder is left: %t; Create: %q", w.has("a", leftover), w.owed["a/1.json"])
	}
}

// TestSweepFaults makes each call fail in turn, of a Create and of a Delete that find a leftover.
// The Create does not succeed; the Delete succeeds if the file is gone. The next Create or Delete
// removes the leftover, if that is possible.
func TestSweepFaults(t *testing.T) {
	t.Parallel()
	for _, deletes := range []bool{false, true} {
		for k := 0; ; k++ {
			w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
			w.restart()
			w.create("a/first.json")
			w.restart()
			w.put("a", leftover, 2*leftoverAge)
			start, failed := w.disk.calls, ""
			w.disk.before = func(call int, op string) error {
				if call == start+k {
					failed = op
					return syscall.EIO
				}
				return nil
			}
			first := storage.Join(diskRoot, "a/first.json")
			if deletes {
				delete(w.owed, "a/first.json")
				if err := w.store.Delete(t.Context(), first); (err == nil) == w.has("a", "first.json") {
					t.Errorf("%s fails: Delete answers %v", failed, err)
				}
			} else if w.create("a/1.json"); failed != "" && failed != "unlinkat" && w.owed["a/1.json"] != "" {
				t.Errorf("%s fails: Create succeeds", failed)
			}
			if failed == "" {
				break
			}
			if w.create("a/2.json"); w.owed["a/2.json"] == "" {
				t.Errorf("after %s has failed, Create fails", failed)
			}
			w.wantTidy(fmt.Sprintf("deletes: %t, call %d, %s fails", deletes, k, failed), failed != "unlinkat")
		}
	}
}

// TestSweepOfWhoLives removes the temporary files of a live writer before each of its calls, as
// another process with a wrong clock would. The writer begins again.
func TestSweepOfWhoLives(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(*witness){
		"Create":    func(w *witness) { w.create("a/b/new.json") },
		"CreateAll": func(w *witness) { w.createAll("a/b/new.json", "a/b/newer.json", "c.json") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := 0
			for k := 0; ; k++ {
				w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
				w.restart()
				w.create("a/b/old.json")
				other, err := openOn(w.disk)
				if err != nil {
					t.Fatal(err)
				}
				other.now = func() time.Time { return time.Now().Add(time.Hour) }
				start, reached, links := w.disk.calls, false, 0
				w.disk.before = func(call int, op string) error {
					if op == "linkat" {
						links++
					}
					if call == start+k {
						reached = true
						return other.Create(context.Background(), storage.Join(diskRoot, "a/b/other.json"), []byte(bodyOf("a/b/other.json")))
					}
					return nil
				}
				create(w)
				if !reached {
					break
				}
				if w.owed["a/b/new.json"] == "" {
					t.Errorf("temporary files that go before call %d make it fail", k)
				}
				if links > 1 && name == "Create" || links > 3 {
					again++
				}
				w.owed["a/b/other.json"] = "made by another"
				w.checkAll(fmt.Sprintf("temporary files gone before call %d", k), uint64(k))
				w.wantTidy(fmt.Sprintf("temporary files gone before call %d", k), true)
			}
			if again == 0 {
				t.Error("nobody had to begin again")
			}
		})
	}
}

// If a folder is removed during a sweep, the Create makes the folder again.
func TestSweepOfFolderThatGoes(t *testing.T) {
	t.Parallel()
	w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
	w.restart()
	w.create("a/first.json")
	delete(w.owed, "a/first.json")
	w.restart()
	gone := false
	w.disk.before = func(_ int, op string) error {
		if op == "readdir" && !gone {
			gone = true
			root, err := w.disk.root.find("srv/moorage/w")
			root.remove("a")
			return err
		}
		return nil
	}
	w.create("a/1.json")
	if !gone || w.owed["a/1.json"] == "" {
		t.Errorf("the folder went: %t; Create: %q", gone, w.owed["a/1.json"])
	}
	w.checkAll("the folder went", 1)
}

// TestDeleteSweepsNothing: a Delete works even if a folder is missing, or a location is outside the
// roots.
func TestDeleteSweepsNothing(t *testing.T) {
	t.Parallel()
	w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
	w.restart()
	if err := w.store.Delete(t.Context(), storage.Join(diskRoot, "none/1.json"), storage.Join(diskRoot, "1.json")); err != nil {
		t.Error(err)
	}
	if err := w.store.Delete(t.Context(), "s3://bucket/x"); !errors.Is(err, storage.ErrOutside) {
		t.Errorf("delete elsewhere: %v", err)
	}
}
