package pebble

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"moorage/registry"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// counting is a source of predictable "random" bytes that never repeats. It is only for golden
// files.
type counting struct{ next uint32 }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 0
	}
	c.next++
	copy(p, fmt.Sprintf("%d", c.next))
	return len(p), nil
}

// dump returns all keys of the engine and their values.
func dump(t *testing.T, s *instance) string {
	t.Helper()
	iter, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for valid := iter.First(); valid; valid = iter.Next() {
		fmt.Fprintf(&text, "%q\n\t%q\n", iter.Key(), iter.Value())
	}
	if err := iter.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestLayout compares the store's content with a golden file. Later versions must be able to read
// it, so a change here requires a new format version.
func TestLayout(t *testing.T) {
	t.Parallel()
	s, err := open(testDir, Options{FS: vfs.NewMem(), Random: new(counting)}, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	entry := registry.EntryKey(registry.ID{15: 7}, "t")
	for n := range 3 {
		records, err := s.Get(t.Context(), entry)
		if err != nil {
			t.Fatal(err)
		}
		required := registry.Absent(entry)
		if n > 0 {
			required = registry.ETagIs(entry, records[0].ETag)
		}
		batch := registry.Batch{Change: testChange(n), Conditions: []registry.Condition{required}, Writes: []registry.Write{
			registry.Put(entry, registry.StateTable, []byte(`{"n":1}`)).Over(records[0]),
			registry.Put(testKey(fmt.Sprint("file:///", n)), registry.StateOwner, nil),
		}}
		if _, err := s.Apply(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	last := registry.Batch{Writes: []registry.Write{
		registry.Delete(registry.ChangeKey(testChange(0).ID)),
		registry.Put(registry.ChangeKey(testChange(9).ID), registry.StateVoid, []byte("{}")),
	}}
	if _, err := s.Apply(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	got := dump(t, s)
	golden := filepath.Join("testdata", fmt.Sprintf("layout-v%d.golden", registry.FormatFirst))
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the store holds\n%s\nwant\n%s", got, want)
	}
}

// rawPut writes a value directly to a key of the engine, bypassing the store.
func rawPut(t *testing.T, fs vfs.FS, key, stored []byte) {
	t.Helper()
	db, err := engine.Open(testDir, &engine.Options{FS: fs, FormatMajorVersion: engineFormat, Logger: engineLogger{slog.New(slog.DiscardHandler), func(error) {}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set(key, stored, engine.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	format := func(version int) []byte {
		return fmt.Appendf(bytes.Repeat([]byte{1}, headerBytes), `{"version":%d}`, version)
	}
	formatKey := appendRecordKey(nil, registry.FormatKey())
	tests := []struct {
		name    string
		prepare func(t *testing.T, fs vfs.FS)
		want    error
		message string
	}{
		{"newer format", func(t *testing.T, fs vfs.FS) { rawPut(t, fs, formatKey, format(registry.FormatVersion+1)) },
			ErrNewerFormat, fmt.Sprintf("open store data/store: the store was written by a newer version of moorage: it has format %d, this one reads up to %d", registry.FormatVersion+1, registry.FormatVersion)},
		{"newer engine", func(t *testing.T, fs vfs.FS) {
			rawPut(t, fs, formatKey, format(registry.FormatFirst))
			if err := fs.Rename(fs.PathJoin(testDir, findMarker(t, fs, formatMarker)), fs.PathJoin(testDir, "marker.format-version.000099.999")); err != nil {
				t.Fatal(err)
			}
		}, ErrNewerFormat, fmt.Sprintf("open store data/store: the store was written by a newer version of moorage: its files have format 999, this one reads up to %d", engine.FormatNewest)},
		{"no store", func(t *testing.T, fs vfs.FS) { rawPut(t, fs, []byte("key"), []byte("value")) },
			ErrForeign, "open store data/store: the directory holds a database that is not a moorage store"},
		{"senseless format", func(t *testing.T, fs vfs.FS) { rawPut(t, fs, formatKey, format(0)) },
			ErrForeign, "open store data/store: the directory holds a database that is not a moorage store: its format is 0"},
		{"half a copy", func(t *testing.T, fs vfs.FS) {
			rawPut(t, fs, formatKey, format(registry.FormatFirst))
			if err := fs.Remove(fs.PathJoin(testDir, findMarker(t, fs, manifestMarker))); err != nil {
				t.Fatal(err)
			}
		}, nil, "open store data/store: it is damaged; replace the store by a backup: marker.manifest.* is missing, as in an incomplete copy"},
		{"damaged position", func(t *testing.T, fs vfs.FS) {
			rawPut(t, fs, formatKey, format(registry.FormatFirst))
			rawPut(t, fs, positionKey(), []byte("short"))
		}, nil, "open store data/store: position is damaged: 5 bytes, want 8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fs := vfs.NewMem()
			tt.prepare(t, fs)
			for range 2 { // the refusal releases the lock
				_, err := open(testDir, Options{FS: fs}, asItIs)
				if err == nil || err.Error() != tt.message || (tt.want != nil && !errors.Is(err, tt.want)) {
					t.Fatalf("open: %v, want %s", err, tt.message)
				}
			}
		})
	}
}

// formatMarker is the prefix of the name of the file that records the format of the engine's files.
const formatMarker = "marker.format-version."

// findMarker returns the name of the file with this prefix.
func findMarker(t *testing.T, fs vfs.FS, prefix string) string {
	t.Helper()
	names, err := fs.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	t.Fatalf("no marker among %q", names)
	return ""
}

func TestLockErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		err    error
		locked bool
	}{
		{"another process has it, as Linux says it", syscall.EAGAIN, true},
		{"another process has it, as others say it", syscall.EACCES, true},
		{"no locks on this file system", syscall.ENOLCK, false},
		{"the file cannot be made", &os.PathError{Op: "open", Path: "LOCK", Err: syscall.EACCES}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind == errorfs.OpLock {
					return tt.err
				}
				return nil
			}))
			if _, err := open(testDir, Options{FS: fs}, asItIs); errors.Is(err, ErrLocked) != tt.locked || err == nil {
				t.Errorf("open: %v, want it to be ErrLocked: %t", err, tt.locked)
			}
		})
	}
}

// TestFatalEndsWrites makes the engine report a fatal error.
func TestFatalEndsWrites(t *testing.T) {
	t.Parallel()
	reports := map[string]func(s *instance){
		"fatal":      func(s *instance) { engineLogger{s.logger, s.fail}.Fatalf("the end: %d", 1) },
		"background": func(s *instance) { s.engineOptions(nil, asItIs).EventListener.BackgroundError(io.ErrShortWrite) },
	}
	for name, report := range reports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, vfs.NewMem(), asItIs)
			defer closeStore(t, s)
			if _, err := s.Apply(t.Context(), testPut("a", "1")); err != nil {
				t.Fatal(err)
			}
			if err := s.Healthy(t.Context()); err != nil {
				t.Fatalf("healthy: %v", err)
			}
			report(s)
			first := s.Healthy(t.Context())
			if !errors.Is(first, registry.ErrFailed) {
				t.Errorf("healthy: %v, want ErrFailed", first)
			}
			s.fail(errors.New("another reason"))
			if err := s.Healthy(t.Context()); err.Error() != first.Error() {
				t.Errorf("healthy: %v, want the first reason, %v", err, first)
			}
			if _, err := s.Apply(t.Context(), testPut("a", "2")); !errors.Is(err, registry.ErrFailed) {
				t.Errorf("apply: %v, want ErrFailed", err)
			}
			if got := value(t, s, "a"); got != "1" {
				t.Errorf("Get answers %q, want 1", got)
			}
		})
	}
}

// TestDamagedRecord reads a value that is too short for a record.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	for _, k := range []registry.Key{testKey("a"), registry.ChangeKey(testChange(1).ID)} {
		fs := vfs.NewMem()
		closeStore(t, openStore(t, fs, asItIs))
		rawPut(t, fs, appendRecordKey(nil, k), make([]byte, valueOffset(k.Table)-1))
		s := openStore(t, fs, asItIs)
		if _, err := s.Get(t.Context(), k); err == nil {
			t.Errorf("get %s: no error", k)
		}
		if _, err := s.List(t.Context(), k.Table, "", "", 1); err == nil {
			t.Errorf("list %s: no error", k)
		}
		batch := registry.Batch{Conditions: []registry.Condition{registry.StateIs(k, registry.StateNone)}}
		if _, err := s.Apply(t.Context(), batch); err == nil || errors.Is(err, registry.ErrUnknown) {
			t.Errorf("apply with a condition on %s: %v", k, err)
		}
		if err := s.Healthy(t.Context()); err != nil {
			t.Errorf("healthy: %v", err)
		}
		closeStore(t, s)
	}
}

// TestDamagedFile opens a store with a file that was changed on the disk. The caller gets an error
// of one line, without the engine's stack traces. Nothing is logged, because there is no open store
// that could refuse writes.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), testPut("a", "1")); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	closeStore(t, reopened(t, dir)) // the log's records are in a table now
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("there are no tables: %v", err)
	}
	for _, table := range tables {
		content, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		content[0] ^= 0xff
		if err := os.WriteFile(table, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	_, err = Open(dir, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err == nil || !strings.Contains(err.Error(), ".sst is damaged; replace the store by a backup: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("open: %v, want one line that names the file", err)
	}
	if log.Len() > 0 {
		t.Errorf("the log has what the caller is told: %s", &log)
	}
}

// reopened opens the store in dir on the real file system.
func reopened(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExists asks whether there is a store where there is none. That must not create one.
func TestExists(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "registry")
	none := func(when string) {
		t.Helper()
		if there, err := Exists(dir); there || err != nil {
			t.Errorf("%s: %t, %v; want no store", when, there, err)
		}
	}
	none("without a directory")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	none("in an empty directory")
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("the directory has %d files afterwards, %v", len(files), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "LOCK"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	none("where the making of one did not end")
	if err := os.WriteFile(filepath.Join(dir, "moorage.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	none("beside a log of somebody else")
	var log bytes.Buffer
	for range 2 { // the log mentions only a new store
		s, err := Open(dir, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
	}
	if there, err := Exists(dir); !there || err != nil {
		t.Errorf("after Open: %t, %v; want a store", there, err)
	}
	if n := strings.Count(log.String(), "made a new store"); n != 1 {
		t.Errorf("the log tells %d times of a new store, want once: %s", n, &log)
	}
	markers, err := filepath.Glob(filepath.Join(dir, manifestMarker+"*"))
	if err != nil || len(markers) != 1 {
		t.Fatalf("markers: %q, %v", markers, err)
	}
	if err := os.Remove(markers[0]); err != nil {
		t.Fatal(err)
	}
	if there, err := Exists(dir); !there || err != nil {
		t.Errorf("half a copy: %t, %v; want a store, which Open finds damaged", there, err)
	}
	if _, err := Exists(filepath.Join(dir, "LOCK")); err == nil {
		t.Error("a file passes for a directory")
	}
}
