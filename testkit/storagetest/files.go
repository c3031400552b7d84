package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"moorage/storage"
)

func testCreateThenRead(t *testing.T, store storage.Store, root string) {
	location := storage.Join(root, "a", "b", "c.json")
	mustCreate(t, store, location, "body")
	mustHold(t, store, location, "body")
	_, first, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	second, err := store.Stat(t.Context(), location)
	if err != nil || first != second {
		t.Errorf("Open says %+v, Stat says %+v, %v", first, second, err)
	}
	if first.Modified.IsZero() {
		t.Error("the time of the last change is missing")
	}
}

func testCreateOnly(t *testing.T, store storage.Store, root string) {
	location := storage.Join(root, "a.json")
	mustCreate(t, store, location, "first")
	for _, body := range []string{"second", "first", ""} {
		if err := store.Create(t.Context(), location, []byte(body)); !errors.Is(err, storage.ErrExists) {
			t.Errorf("Create(%q) over a file = %v, want ErrExists", body, err)
		}
	}
	mustHold(t, store, location, "first")
}

// In testCreateRace, many goroutines create one file. One must succeed, and the others must get
// ErrExists. The file must have the content of the successful call. Readers must see the whole file
// or no file.
func testCreateRace(t *testing.T, store storage.Store, root string) {
	const writers = 16
	location := storage.Join(root, "raced", "a.json")
	body := func(writer int) []byte { return bytes.Repeat([]byte{byte('a' + writer)}, 64<<10) }

	done := make(chan struct{})
	reader := make(chan error, 1)
	go func() { reader <- readUntil(t.Context(), store, location, 64<<10, done) }()

	errs := make([]error, writers)
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() { errs[writer] = store.Create(t.Context(), location, body(writer)) })
	}
	group.Wait()
	close(done)
	if err := <-reader; err != nil {
		t.Error(err)
	}
	winner := -1
	for writer, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Errorf("writers %d and %d both created the file", winner, writer)
		case err == nil:
			winner = writer
		case !errors.Is(err, storage.ErrExists):
			t.Errorf("writer %d: %v", writer, err)
		}
	}
	if winner < 0 {
		t.Fatal("no writer created the file")
	}
	mustHold(t, store, location, string(body(winner)))
}

// readUntil reads location repeatedly. Each time it must find size equal bytes.
func readUntil(ctx context.Context, store storage.Store, location string, size int, done <-chan struct{}) error {
	for {
		content, err := storage.ReadAll(ctx, store, location, int64(size))
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return err
		case len(content) != size || bytes.Count(content, content[:1]) != size:
			return fmt.Errorf("a reader saw a torn file of %d bytes", len(content))
		}
		select {
		case <-done:
			return nil
		default:
		}
	}
}

func testCreateInOneNewFolder(t *testing.T, store storage.Store, root string) {
	const writers = 16
	folder := storage.Join(root, "x", "y", "z")
	errs := make([]error, writers)
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			errs[writer] = store.Create(t.Context(), storage.Join(folder, fmt.Sprint(writer)), []byte{byte(writer)})
		})
	}
	group.Wait()
	for writer, err := range errs {
		if err != nil {
			t.Errorf("writer %d: %v", writer, err)
			continue
		}
		mustHold(t, store, storage.Join(folder, fmt.Sprint(writer)), string([]byte{byte(writer)}))
	}
}

func testCreateLeavesTheBody(t *testing.T, store storage.Store, root string) {
	location := storage.Join(root, "a.json")
	body := make([]byte, len("body"), 2*len("body")) // extra capacity, where a store might write
	copy(body, "body")
	if err := store.Create(t.Context(), location, body); err != nil {
		t.Fatal(err)
	}
	if whole := string(body[:cap(body)]); whole != "body\x00\x00\x00\x00" {
		t.Errorf("the body became %q", whole)
	}
	mustHold(t, store, location, "body")
}

func testBodies(t *testing.T, store storage.Store, root string) {
	const seed = 7
	random := rand.NewChaCha8([32]byte{seed})
	for _, size := range []int{0, 1, 4095, 4096, 4097, 1 << 20, 8<<20 + 1} {
		body := make([]byte, size)
		if _, err := io.ReadFull(random, body); err != nil {
			t.Fatal(err)
		}
		location := storage.Join(root, fmt.Sprintf("%d.bin", size))
		mustCreate(t, store, location, string(body))
		mustHold(t, store, location, string(body))
		if size == 0 {
			continue
		}
		if _, err := storage.ReadAll(t.Context(), store, location, int64(size-1)); err == nil {
			t.Errorf("ReadAll of %d bytes with a limit of %d returned no error", size, size-1)
		}
	}
}

// testReadRange reads parts of a file, from its first to its last byte and beyond.
func testReadRange(t *testing.T, store storage.Store, root string) {
	location, body := storage.Join(root, "folder", "parts"), "0123456789"
	mustCreate(t, store, location, body)
	for _, part := range [][2]int64{{0, 1}, {0, 10}, {3, 4}, {9, 1}} {
		got, err := store.ReadRange(t.Context(), location, part[0], part[1])
		if want := body[part[0] : part[0]+part[1]]; err != nil || string(got) != want {
			t.Errorf("ReadRange(%d, %d) = %q, %v; want %q", part[0], part[1], got, err, want)
		}
	}
	for _, part := range [][2]int64{{0, 11}, {9, 2}, {10, 1}, {100, 1}} {
		if got, err := store.ReadRange(t.Context(), location, part[0], part[1]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("ReadRange(%d, %d) = %q, %v; want io.ErrUnexpectedEOF", part[0], part[1], got, err)
		}
	}
	if got, err := store.ReadRange(t.Context(), location+".missing", 0, 1); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a missing file: %q, %v; want ErrNotFound", got, err)
	}
}

func testNames(t *testing.T, store storage.Store, root string) {
	names := []string{
		"a b", "a%20b", "a+b", "a%2Fb", "a%2fb", "100%", "%", "%%", "é", "e\u0301", "日本語", "🦆", "a:b", "a=b", "a&b",
		"a'b", `a"b`,
		"a*b", "[a]", "{a}", "a|b", "a~", "~", "-a", "...", ".a", "..a", "a..", `a\b`, "a,b", "a;b", "a@b", "$a",
		"<a>", "%2E%2E", " a", "a ",
		storage.Escape("../?#\x00"),
	}
	// Storages of some schemes may confuse some of these names.
	names = slices.DeleteFunc(names, func(name string) bool {
		location := storage.Join(root, "names", name, name)
		_, refused := storage.Parse(location)
		if err := store.Create(t.Context(), location, []byte(name)); refused == nil && err != nil {
			t.Errorf("Create(%q): %v", location, err)
		} else if refused != nil && !errors.Is(err, storage.ErrLocation) {
			t.Errorf("Create(%q) = %v, want ErrLocation", location, err)
		}
		return refused != nil
	})
	for _, name := range names {
		mustHold(t, store, storage.Join(root, "names", name, name), name)
	}
	if err := store.Delete(t.Context(), storage.Join(root, "names", "a%20b", "a%20b")); err != nil {
		t.Error(err)
	}
	mustHold(t, store, storage.Join(root, "names", "a b", "a b"), "a b")
	mustMiss(t, store, storage.Join(root, "names", "a%20b", "a%20b"))
}

// testSpellings reads a file at other spellings of its location.
func testSpellings(t *testing.T, store storage.Store, root string) {
	mustCreate(t, store, storage.Join(root, "a", "b"), "body")
	normal, err := storage.Normalise(root)
	if err != nil {
		t.Fatal(err)
	}
	mustHold(t, store, storage.Join(normal, "a", "b"), "body")
	mustHold(t, store, storage.Join(root, "a", "b")+"/", "body")
	parsed, err := storage.Parse(root)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Scheme == storage.SchemeFile {
		for _, prefix := range []string{"", "file:", "file://", "file://localhost", "file:///", "FILE:"} {
			mustHold(t, store, storage.Join(prefix+parsed.Path, "a", ".", "", "b"), "body")
		}
	}
	if err := store.Create(t.Context(), storage.Join(normal, "a", "b")+"/", nil); !errors.Is(err, storage.ErrExists) {
		t.Errorf("Create by another spelling = %v, want ErrExists", err)
	}
}

func mustCreate(t *testing.T, store storage.Store, location, body string) {
	t.Helper()
	if err := store.Create(t.Context(), location, []byte(body)); err != nil {
		t.Errorf("Create(%q): %v", location, err)
	}
}

// mustHold checks that the file at location has the content body.
func mustHold(t *testing.T, store storage.Store, location, body string) {
	t.Helper()
	content, err := storage.ReadAll(t.Context(), store, location, int64(len(body)))
	if err != nil || string(content) != body {
		t.Errorf("%q has %.40q, %v; want %.40q", location, content, err, body)
	}
	if info, err := store.Stat(t.Context(), location); err != nil || info.Bytes != int64(len(body)) {
		t.Errorf("Stat(%q) = %+v, %v; want %d bytes", location, info, err, len(body))
	}
}

func testMayBeGone(t *testing.T, store localStore, root string) {
	location := storage.Join(root, "x", "a")
	for _, missing := range []string{location, storage.Join(root, "x"), root} {
		if !store.MayBeGone(missing) {
			t.Errorf("%q is there before it was made", missing)
		}
	}
	mustCreate(t, store, location, "body")
	if store.MayBeGone(location) {
		t.Errorf("%q may be gone, and was just made", location)
	}
	for _, missing := range []string{storage.Join(root, "x"), storage.Join(location, "below"),
		storage.Join(root, "x", "b")} {
		if !store.MayBeGone(missing) {
			t.Errorf("%q is there, although no file was made", missing)
		}
	}
	if err := store.Delete(t.Context(), location); err != nil {
		t.Fatal(err)
	}
	if !store.MayBeGone(location) {
		t.Errorf("%q is there, and was just deleted", location)
	}
}

// mustMiss checks that there is no file at location.
func mustMiss(t *testing.T, store storage.Store, location string) {
	t.Helper()
	if _, _, err := store.Open(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Open(%q) = %v, want ErrNotFound", location, err)
	}
	if _, err := store.Stat(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat(%q) = %v, want ErrNotFound", location, err)
	}
}
