package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/storage"
)

// The test binary runs as a child process if childRole is set in its environment: it makes files in
// the folder given in childRoot, and stops before the call given in childStop.
const (
	childRole = "MOORAGE_TEST_CHILD"
	childRoot = "MOORAGE_TEST_CHILD_ROOT"
	childStop = "MOORAGE_TEST_CHILD_STOP"

	roleCreate    = "create"
	roleCreateAll = "create-all"

	stopAtLink   = "link"   // the files are written but have no names
	stopAtRemove = "remove" // they have both names
)

func TestMain(m *testing.M) {
	role := os.Getenv(childRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := runChild(role, os.Getenv(childRoot), os.Getenv(childStop)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1) // the parent should have killed it
}

func runChild(role, root, stop string) error {
	store, err := NewOpener().open([]string{root}, func(folder string) (fileSystem, error) {
		files, err := openRoot(folder)
		return stoppingFS{files, stop}, err
	})
	if err != nil {
		return err
	}
	store.atOnce = len(killedNames) // all files reach the call
	files := make([]storage.File, len(killedNames))
	for i, name := range killedNames {
		files[i] = storage.File{Location: storage.Join(root, name), Body: []byte("body")}
	}
	if role == roleCreateAll {
		return errors.Join(store.CreateAll(context.Background(), files)...)
	}
	return store.Create(context.Background(), files[0].Location, files[0].Body)
}

// killedNames lists the files that a child makes. A Create makes only the first.
var killedNames = []string{"t/metadata/1.json", "t/metadata/2.json", "t/metadata/3.json"}

// stoppingFS is a file system in which a call on a folder reports that it stops, and then blocks
// for ever.
type stoppingFS struct {
	fileSystem
	stop string
}

func (f stoppingFS) Folder(name string) (folderFS, error) {
	folder, err := f.fileSystem.Folder(name)
	return stoppingFolder{folder, f.stop}, err
}

type stoppingFolder struct {
	folderFS
	stop string
}

func (f stoppingFolder) Link(from, to string) error {
	f.stopAt(stopAtLink)
	return f.folderFS.Link(from, to)
}

func (f stoppingFolder) Remove(name string) error {
	f.stopAt(stopAtRemove)
	return f.folderFS.Remove(name)
}

func (f stoppingFolder) stopAt(call string) {
	if call != f.stop {
		return
	}
	fmt.Println("stopped")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
	os.Exit(1)
}

// killWhileCreating makes a child create files in root, and kills the child where it stops.
func killWhileCreating(t *testing.T, root, role, stop string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childRole+"="+role, childRoot+"="+root, childStop+"="+stop)
	var failures strings.Builder
	child.Stderr = &failures
	out, outErr := child.StdoutPipe()
	_, inErr := child.StdinPipe()
	if err := errors.Join(outErr, inErr, child.Start()); err != nil {
		t.Fatal(err)
	}
	stops := 1
	if role == roleCreateAll {
		stops = len(killedNames)
	}
	lines := bufio.NewScanner(out)
	for range stops {
		if !lines.Scan() {
			t.Errorf("the child does not come to %s: %s", stop, failures.String())
			break
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait() // the error is that it was killed
}

// namesIn returns the names in a folder, in order, and how many of them are temporary.
func namesIn(t *testing.T, folder string) (names []string, temporary int) {
	t.Helper()
	found, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range found {
		names = append(names, entry.Name())
		if strings.HasSuffix(entry.Name(), temporarySuffix) {
			temporary++
		}
	}
	return names, temporary
}

// TestKill kills a process between writing and naming a file, and between naming it and removing
// the temporary name. The temporary file stays for as long as it may belong to a live process.
// After that, the next process that creates or deletes a file in the folder removes it.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, role := range []string{roleCreate, roleCreateAll} {
		for _, stop := range []string{stopAtLink, stopAtRemove} {
			for _, next := range []string{"Create", "CreateAll", "Delete"} {
				t.Run(fmt.Sprintf("%s/%s/%s", role, stop, next), func(t *testing.T) {
					t.Parallel()
					testKill(t, role, stop, next)
				})
			}
		}
	}
}

func testKill(t *testing.T, role, stop, next string) {
	root := filepath.Join(t.TempDir(), "w")
	folder := filepath.Join(root, "t", "metadata")
	killWhileCreating(t, root, role, stop)
	made := killedNames
	if role == roleCreate {
		made = made[:1]
	}
	var named []string
	if stop == stopAtRemove {
		for _, name := range made {
			named = append(named, filepath.Base(name))
		}
	}
	left, temporary := namesIn(t, folder)
	if temporary != len(made) || len(left) != len(named)+len(made) {
		t.Fatalf("the killed process leaves %q", left)
	}

	store, err := New([]string{root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	use := func(name string) {
		t.Helper()
		file := storage.File{Location: storage.Join(root, "t/metadata", name), Body: []byte("body")}
		var err error
		switch next {
		case "Create":
			err = store.Create(t.Context(), file.Location, file.Body)
		case "CreateAll":
			err = errors.Join(store.CreateAll(t.Context(), []storage.File{file})...)
		case "Delete":
			err = store.Delete(t.Context(), file.Location)
		}
		if err != nil {
			t.Error(err)
		}
		if next != "Delete" {
			named = append(named, name)
		}
	}
	use("next-1.json")
	if names, n := namesIn(t, folder); n != temporary {
		t.Errorf("what may belong to a process that lives is removed: %q of %q", names, left)
	}
	now := time.Now().Add(2 * leftoverAge)
	store.now = func() time.Time { return now }
	use("next-2.json")
	if names, _ := namesIn(t, folder); !slices.Equal(names, named) {
		t.Errorf("in the folder there is %q, want %q", names, named)
	}
	for _, name := range named {
		content, err := storage.ReadAll(t.Context(), store, storage.Join(root, "t/metadata", name), 10)
		if err != nil || string(content) != "body" {
			t.Errorf("%s has %q, %v", name, content, err)
		}
	}
}
