package secrets_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"moorage/secrets"
	"moorage/testkit/sealers"
)

var owner = secrets.Owner{Store: "5a", Secret: "01", Warehouse: "77"}

// ring makes a key file and returns its keys and its path.
func ring(t *testing.T) (*secrets.Keyring, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	if _, err := secrets.Init(path); err != nil {
		t.Fatal(err)
	}
	return load(t, path), path
}

func load(t *testing.T, path string) *secrets.Keyring {
	t.Helper()
	keys, err := secrets.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func mustSeal(t *testing.T, keys *secrets.Keyring, plain string) []byte {
	t.Helper()
	sealed, err := keys.Seal([]byte(plain), owner)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func mustOpen(t *testing.T, keys *secrets.Keyring, sealed []byte, want string) {
	t.Helper()
	plain, err := keys.Open(sealed, owner)
	if err != nil || string(plain) != want {
		t.Errorf("Open = %q, %v; want %q", plain, err, want)
	}
}

func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	keys, path := ring(t)
	for _, plain := range []string{"", "a", "hunter2", strings.Repeat("x", secrets.PlainBytesMax)} {
		sealed := mustSeal(t, keys, plain)
		if len(plain) > 4 && bytes.Contains(sealed, []byte(plain[:5])) {
			t.Errorf("the sealed value of %.10q shows it", plain)
		}
		mustOpen(t, keys, sealed, plain)
		mustOpen(t, load(t, path), sealed, plain)
		if id, ok := secrets.KeyOf(sealed); !ok || id != keys.Primary() {
			t.Errorf("KeyOf = %s, %t; want %s", id, ok, keys.Primary())
		}
	}
	if bytes.Equal(mustSeal(t, keys, "a"), mustSeal(t, keys, "a")) {
		t.Error("the same secret, sealed twice, is the same")
	}
	if _, err := keys.Seal(make([]byte, secrets.PlainBytesMax+1), owner); err == nil {
		t.Error("a secret that is too long was sealed")
	}
}

// TestMovedValueDoesNotOpen moves a sealed value to every other kind of place.
func TestMovedValueDoesNotOpen(t *testing.T) {
	t.Parallel()
	keys, _ := ring(t)
	sealed := mustSeal(t, keys, "hunter2")
	for name, other := range map[string]secrets.Owner{
		"store":     {Store: "5b", Secret: "01", Warehouse: "77"},
		"secret":    {Store: "5a", Secret: "02", Warehouse: "77"},
		"warehouse": {Store: "5a", Secret: "01", Warehouse: "78"},
		"turned":    {Store: "5a", Secret: "77", Warehouse: "01"},
	} {
		if plain, err := keys.Open(sealed, other); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("another %s: Open = %q, %v; want ErrOpen", name, plain, err)
		}
		if _, _, err := keys.Rewrap(sealed, other); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("another %s: Rewrap = %v; want ErrOpen", name, err)
		}
	}
	for name, none := range map[string]secrets.Owner{
		"no store": {Secret: "01", Warehouse: "77"}, "no secret": {Store: "5a", Warehouse: "77"},
		"no warehouse": {Store: "5a", Secret: "01"}, "a slash": {Store: "5a/01", Secret: "77", Warehouse: "1"},
	} {
		if _, err := keys.Seal(nil, none); err == nil {
			t.Errorf("sealed for %s", name)
		}
		if _, err := keys.Open(sealed, none); err == nil {
			t.Errorf("opened for %s", name)
		}
	}
}

// TestChangedValueDoesNotOpen flips every bit of a sealed value, and cuts the value at every
// length.
func TestChangedValueDoesNotOpen(t *testing.T) {
	t.Parallel()
	keys, _ := ring(t)
	sealed := mustSeal(t, keys, "hunter2")
	for bit := range 8 * len(sealed) {
		changed := bytes.Clone(sealed)
		changed[bit/8] ^= 1 << (bit % 8)
		if plain, err := keys.Open(changed, owner); err == nil {
			t.Errorf("bit %d was turned over, and it opens as %q", bit, plain)
		}
	}
	for length := range sealed {
		if plain, err := keys.Open(sealed[:length], owner); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("cut to %d bytes: Open = %q, %v; want ErrOpen", length, plain, err)
		}
	}
	other, _ := ring(t)
	if _, err := other.Open(sealed, owner); !errors.Is(err, secrets.ErrNoKey) {
		t.Errorf("Open with other keys = %v; want ErrNoKey", err)
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	running, path := ring(t) // a node that has already read the file
	old := mustSeal(t, running, "hunter2")
	first := running.Primary()

	now, before, err := secrets.Rotate(path)
	if err != nil || before != first || now == first {
		t.Fatalf("Rotate = %s, %s, %v; the first key is %s", now, before, err, first)
	}
	keys := load(t, path)
	mustOpen(t, keys, old, "hunter2")
	fresh, changed, err := keys.Rewrap(old, owner)
	if id, _ := secrets.KeyOf(fresh); err != nil || !changed || id != now {
		t.Fatalf("Rewrap = key %s, %t, %v; want key %s", id, changed, err, now)
	}
	if again, changed, err := keys.Rewrap(fresh, owner); err != nil || changed || !bytes.Equal(again, fresh) {
		t.Errorf("a second Rewrap changed the value: %t, %v", changed, err)
	}
	mustOpen(t, running, fresh, "hunter2") // it reads the file again
	if running.Primary() != now {
		t.Errorf("the running node still seals with %s", running.Primary())
	}
}

// TestRotateAtOnce changes one file concurrently. Every change reported as successful is in the
// file.
func TestRotateAtOnce(t *testing.T) {
	t.Parallel()
	keys, path := ring(t)
	values := [][]byte{mustSeal(t, keys, "hunter2")}
	var mu sync.Mutex // guards values
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, _, err := secrets.Rotate(path); err != nil {
				return // refused, because another change is in progress
			}
			keys, err := secrets.Load(path)
			if err != nil {
				t.Error(err)
				return
			}
			sealed, err := keys.Seal([]byte("hunter2"), owner)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			values = append(values, sealed)
		})
	}
	group.Wait()
	if len(values) < 2 {
		t.Error("no rotation succeeded")
	}
	for _, sealed := range values {
		mustOpen(t, load(t, path), sealed, "hunter2")
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a temporary file is left: %v", err)
	}
}

func TestInit(t *testing.T) {
	t.Parallel()
	keys, path := ring(t)
	sealed := mustSeal(t, keys, "hunter2")
	if _, err := secrets.Init(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("Init over a key file = %v, want ErrExist", err)
	}
	mustOpen(t, load(t, path), sealed, "hunter2")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file has the mode %v, %v", info.Mode(), err)
	}
	if _, err := secrets.Init(filepath.Join(path, "below")); err == nil {
		t.Error("a key file below a file")
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	good := func(t *testing.T) string { _, path := ring(t); return path }
	holding := func(content string) func(t *testing.T) string {
		return func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "keys.json")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	for name, file := range map[string]func(t *testing.T) string{
		"missing": func(t *testing.T) string { return filepath.Join(t.TempDir(), "none") },
		"folder":  func(t *testing.T) string { return t.TempDir() },
		"readable by all": func(t *testing.T) string {
			path := good(t)
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			return path
		},
		"writable by the group": func(t *testing.T) string {
			path := good(t)
			if err := os.Chmod(path, 0o660); err != nil {
				t.Fatal(err)
			}
			return path
		},
		"empty":       holding(""),
		"not JSON":    holding("hunter2"),
		"no keys":     holding(`{"primaryKeyId":1,"key":[]}`),
		"too long":    holding(strings.Repeat(" ", 1<<20+1)),
		"no material": holding(`{"primaryKeyId":1,"key":[{"keyId":1,"status":"ENABLED","outputPrefixType":"TINK"}]}`),
		"a MAC key": holding(`{"primaryKeyId":1,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.HmacKey",` +
			`"value":"EgQIAxAgGiDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD=","keyMaterialType":"SYMMETRIC"},` +
			`"status":"ENABLED","keyId":1,"outputPrefixType":"TINK"}]}`),
		// AES-128-GCM.
		"a short key": holding(`{"primaryKeyId":1,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmKey",` +
			`"value":"GhAAAAAAAAAAAAAAAAAAAAAA","keyMaterialType":"SYMMETRIC"},` +
			`"status":"ENABLED","keyId":1,"outputPrefixType":"TINK"}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t)
			if _, err := secrets.Load(path); err == nil {
				t.Error("Load is no error")
			} else if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the content: %v", err)
			}
			if _, _, err := secrets.Rotate(path); err == nil {
				t.Error("Rotate is no error")
			}
			if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a temporary file is left: %v", err)
			}
		})
	}
}

// TestRotateThroughLink rotates a key file through a symbolic link. The link stays.
func TestRotateThroughLink(t *testing.T) {
	t.Parallel()
	keys, path := ring(t)
	sealed := mustSeal(t, keys, "hunter2")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := secrets.Rotate(link); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(link); err != nil || target != path {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	mustOpen(t, load(t, path), sealed, "hunter2")
}

// FuzzOpen opens values that were not sealed for this owner.
func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "keys.json")
	if _, err := secrets.Init(path); err != nil {
		f.Fatal(err)
	}
	keys, err := secrets.Load(path)
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := keys.Seal([]byte("hunter2"), owner)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed, "5b", "01", "77")
	f.Add(sealed[:20], "5a", "01", "77")
	f.Add([]byte("\x01\x00\x00\x00\x01 too short"), "5a", "01", "77")
	f.Fuzz(func(t *testing.T, value []byte, store, secret, warehouse string) {
		for _, id := range []uint32{uint32(keys.Primary()), 0} {
			if len(value) >= 5 && id != 0 { // let it reach the cipher
				value = append([]byte{1, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}, value[5:]...)
			}
			as := secrets.Owner{Store: store, Secret: secret, Warehouse: warehouse}
			plain, err := keys.Open(value, as)
			if err == nil && (as != owner || !bytes.Equal(value, sealed)) {
				t.Errorf("Open(%x) for %+v = %q", value, as, plain)
			}
		}
	})
}

// FuzzLoad reads key files with arbitrary content.
func FuzzLoad(f *testing.F) {
	path := filepath.Join(f.TempDir(), "keys.json")
	if _, err := secrets.Init(path); err != nil {
		f.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(`{"primaryKeyId":1,"key":[null]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "keys.json")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := secrets.Load(path)
		if err != nil {
			return
		}
		sealed, err := keys.Seal([]byte("hunter2"), owner)
		if err != nil {
			t.Fatalf("the file was taken, and does not seal: %v", err)
		}
		if plain, err := keys.Open(sealed, owner); err != nil || string(plain) != "hunter2" {
			t.Fatalf("what was sealed opens as %q, %v", plain, err)
		}
	})
}

func TestContract(t *testing.T) {
	t.Parallel()
	sealers.Run(t, func(t *testing.T) sealers.Fixture {
		keys, _ := ring(t)
		other, _ := ring(t)
		return sealers.Fixture{
			Source: keys, Other: other, Refused: secrets.ErrNoKey, PlainBytesMax: secrets.PlainBytesMax,
			Turn: func(t *testing.T) {
				if _, _, err := keys.Turn(t.Context()); err != nil {
					t.Error(err)
				}
			},
		}
	})
}
