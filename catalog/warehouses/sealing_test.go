package warehouses_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/secrets"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// theSecret is the secret of a warehouse. It must not occur anywhere in the store.
const theSecret = "aVerySecretAccessKey"

// sealed is a fixture with keys from a file. It records the places that are opened.
type sealed struct {
	*catalogkit.Fixture
	keys *secrets.Keyring
	path string

	mu     sync.Mutex // guards opened; leaf
	opened []storage.Place
}

func newSealed(t *testing.T) *sealed {
	t.Helper()
	s := &sealed{path: filepath.Join(t.TempDir(), "keys.json")}
	_, err := secrets.Init(s.path)
	must(t, err)
	s.keys, err = secrets.Load(s.path)
	must(t, err)
	s.Fixture = catalogkit.New(t, func(config *catalog.Config) {
		config.Sealer, config.AbortPending = s.keys, true
		open := config.OpenStorage
		config.OpenStorage = func(place storage.Place) (storage.Store, error) {
			s.mu.Lock()
			s.opened = append(s.opened, place)
			s.mu.Unlock()
			return open(place)
		}
	})
	return s
}

func secretSpec(name string) warehouses.Spec {
	return warehouses.Spec{
		Name: name, Location: "s3://bucket/" + name,
		Secrets: map[string]map[string]string{storage.SecretServer: {"secret-access-key": theSecret}},
	}
}

// last is the secret of the place that was opened last.
func (s *sealed) last() storage.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened[len(s.opened)-1].Secret
}

// plain returns the opened form of a sealed value.
func (s *sealed) plain(secret storage.Secret) (string, error) {
	plain, err := s.keys.Open(secret.Sealed[storage.SecretServer], warehouses.SecretOwner(secret, storage.SecretServer))
	return string(plain), err
}

func sealedValue(t *testing.T, secret registry.Secret) []byte {
	t.Helper()
	sealed, err := registry.ParseSealed(secret.Sealed[storage.SecretServer])
	must(t, err)
	return sealed
}

// TestSecretIsSealed creates warehouses with secrets. Only the storage gets the secrets. They are
// not in records, so not in backups, and not in answers.
func TestSecretIsSealed(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	made, err := s.Warehouses().Create(s.Ctx, secretSpec("a"))
	must(t, err)
	if made.Secret == nil || made.Secret.Kind != "access-key" {
		t.Errorf("made %+v", made)
	}
	first := s.last()
	if plain, err := s.plain(first); err != nil || plain != `{"secret-access-key":"`+theSecret+`"}` {
		t.Errorf("the storage is opened with %q, %v", plain, err)
	}
	records := 0
	for _, table := range registry.Tables() {
		page, err := s.Store.List(s.Ctx, table, "", "", registry.ListLimitMax)
		must(t, err)
		for _, record := range page {
			if records++; bytes.Contains(record.Value, []byte(theSecret)) {
				t.Errorf("%s holds the secret: %s", record.Key, record.Value)
			}
		}
	}
	if records < 4 {
		t.Errorf("looked at %d records", records)
	}
	// A second process reads the same secret from the store.
	_, err = s.Warehouses().Create(s.Ctx, secretSpec("b"))
	must(t, err)
	second := s.last()
	for name, moved := range map[string]storage.Secret{
		"to another record":    {ID: second.ID, Store: first.Store, Warehouse: first.Warehouse, Sealed: first.Sealed},
		"to another warehouse": {ID: first.ID, Store: first.Store, Warehouse: second.Warehouse, Sealed: first.Sealed},
		"to another store":     {ID: first.ID, Store: first.ID, Warehouse: first.Warehouse, Sealed: first.Sealed},
	} {
		if _, err := s.plain(moved); !errors.Is(err, secrets.ErrOpen) {
			t.Errorf("a value that was moved %s opens: %v", name, err)
		}
	}
}

// TestSecretIsReadFromTheStore opens the storage of a warehouse that another process has created.
func TestSecretIsReadFromTheStore(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	_, err := s.Warehouses().Create(s.Ctx, secretSpec("a"))
	must(t, err)
	later, err := catalogkit.NewInstance(s.Config)
	must(t, err)
	s.opened = nil
	_, err = later.LoadWarehouse(s.Ctx, "a")
	must(t, err)
	if plain, err := s.plain(s.last()); err != nil || !bytes.Contains([]byte(plain), []byte(theSecret)) {
		t.Errorf("the storage is opened with %q, %v", plain, err)
	}
}

// TestSecretIsRefused requests invalid secrets.
func TestSecretIsRefused(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	_, err := f.Warehouses().Create(f.Ctx, secretSpec("a"))
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	s := newSealed(t)
	for _, values := range []map[string]map[string]string{
		{"nobody": {"k": "v"}}, {storage.SecretServer: {}}, {storage.SecretServer: nil},
		{storage.SecretServer: {"k": strings.Repeat("x", secrets.PlainBytesMax)}},
	} {
		spec := secretSpec("a")
		spec.Secrets = values
		_, err := s.Warehouses().Create(s.Ctx, spec)
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
	_, err = s.LoadWarehouse(s.Ctx, "a")
	catalogkit.WantKind(t, err, moorage.KindNoSuchWarehouse)
}

// picky is a sealer that refuses the first value to be sealed again.
type picky struct {
	*secrets.Keyring
	why error // the refusal; nil after it was returned
}

func (p *picky) Rewrap(sealed []byte, owner secrets.Owner) ([]byte, bool, error) {
	if why := p.why; why != nil {
		p.why = nil
		return nil, false, why
	}
	return p.Keyring.Rewrap(sealed, owner)
}

// TestRewrapGoesOn: if one secret cannot be sealed again, the others still get the new key. If the
// keys cannot be reached, rewrapping stops.
func TestRewrapGoesOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why   error
		kind  moorage.Kind
		first int
	}{
		{secrets.ErrTooLong, moorage.KindBadRequest, 2}, {secrets.ErrOpen, moorage.KindInternal, 2},
		{secrets.ErrNoKey, moorage.KindInternal, 2}, {secrets.ErrAway, moorage.KindUnavailable, 0},
	} {
		s := newSealed(t)
		for _, name := range []string{"a", "b", "c"} {
			_, err := s.Warehouses().Create(s.Ctx, secretSpec(name))
			must(t, err)
		}
		_, _, err := secrets.Rotate(s.path)
		must(t, err)
		must(t, s.keys.Reload())
		config := s.Config
		config.Sealer = &picky{s.keys, tt.why}
		later, err := catalogkit.NewInstance(config)
		must(t, err)
		rewrapped, err := later.As(moorage.System("test")).Warehouses().RewrapSecrets(s.Ctx)
		if catalogkit.WantKind(t, err, tt.kind); rewrapped != tt.first {
			t.Errorf("%v: %d secrets were sealed again, want %d", tt.why, rewrapped, tt.first)
		}
		rewrapped, err = later.As(moorage.System("test")).Warehouses().RewrapSecrets(s.Ctx)
		if must(t, err); rewrapped != 3-tt.first {
			t.Errorf("%v: then %d", tt.why, rewrapped)
		}
	}
}

// TestSecretsAreRewrapped rotates the key, and drops warehouses with secrets.
func TestSecretsAreRewrapped(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	for _, name := range []string{"a", "b"} {
		_, err := s.Warehouses().Create(s.Ctx, secretSpec(name))
		must(t, err)
	}
	_, err := s.CreateNamespace(s.Ctx, "b", moorage.Namespace{"ns"}, nil)
	must(t, err)
	table := moorage.Identifier{Warehouse: "b", Namespace: moorage.Namespace{"ns"}, Name: "t"}
	_, err = s.CreateTable(s.Ctx, table, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	must(t, s.DropTable(s.Ctx, table, catalog.DropOptions{}))
	must(t, s.DropNamespace(s.Ctx, "b", moorage.Namespace{"ns"}))
	must(t, s.Warehouses().Drop(s.Ctx, "b"))
	wantSecrets := func(count int, key secrets.KeyID) {
		t.Helper()
		page, err := s.Store.List(s.Ctx, registry.TableSecret, "", "", registry.ListLimitMax)
		must(t, err)
		found := 0
		for _, record := range page {
			if record.Key == registry.SecretStoreKey() {
				continue
			}
			found++
			value, err := registry.Decode[registry.Secret](record)
			must(t, err)
			if id, _ := secrets.KeyOf(sealedValue(t, value)); id != key {
				t.Errorf("%s is sealed with the key %s, want %s", record.Key, id, key)
			}
		}
		if found != count {
			t.Errorf("%d secrets, want %d", found, count)
		}
	}
	wantSecrets(2, s.keys.Primary()) // the dropped table needs the secret of its former warehouse
	now, _, err := secrets.Rotate(s.path)
	must(t, err)
	must(t, s.keys.Reload())
	for _, want := range []int{2, 0} {
		rewrapped, err := s.As(moorage.System("test")).Warehouses().RewrapSecrets(s.Ctx)
		if must(t, err); rewrapped != want {
			t.Errorf("%d secrets were sealed again, want %d", rewrapped, want)
		}
		wantSecrets(2, now)
	}
	must(t, s.Warehouses().Drop(s.Ctx, "a"))
	wantSecrets(1, now)
}

// beforeStore is a store that calls a function once, when an Apply with the record at key begins.
type beforeStore struct {
	registry.Store
	key registry.Key
	do  func()
}

func (s *beforeStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if do := s.do; do != nil && slices.ContainsFunc(batch.Writes, func(w registry.Write) bool { return w.Key == s.key }) {
		s.do = nil
		do()
	}
	return s.Store.Apply(ctx, batch)
}

// TestSecretOfATableDroppedMeanwhile drops a table while the secret of its warehouse is removed.
// The dropped table keeps the secret, which its purge needs once the warehouse is gone.
func TestSecretOfATableDroppedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	s.CreateLake(nil)
	_, err := s.CreateTable(s.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	changeSecret(t, s.Fixture, "lake", "old")
	store := &beforeStore{Store: s.Store, key: registry.WarehouseKey("lake")}
	_, node := twoNodes(t, s.Fixture, store)
	store.do = func() { must(t, s.DropTable(s.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{Purge: true})) }
	_, err = node.Warehouses().Change(s.Ctx, "lake", warehouses.Change{
		Secrets: map[string]map[string]string{storage.SecretServer: nil},
	})
	must(t, err)
	if store.do != nil {
		t.Fatal("no table was dropped meanwhile")
	}
	secrets := func() (count int) {
		page, err := s.Store.List(s.Ctx, registry.TableSecret, "", "", registry.ListLimitMax)
		must(t, err)
		return len(page) - 1 // without the ID of the store
	}
	if secrets() != 1 {
		t.Error("the secret of the dropped table is gone")
	}
	must(t, s.DropNamespace(s.Ctx, "lake", moorage.Namespace{"ns"}))
	must(t, s.Warehouses().Drop(s.Ctx, "lake"))
	s.Clock.Advance(time.Hour)
	must(t, s.PurgeAll(s.Ctx))
	_, err = s.As(moorage.System("test")).Warehouses().RewrapSecrets(s.Ctx)
	if must(t, err); secrets() != 0 {
		t.Error("the secret stays although no table needs it")
	}
	s.WantClean()
}
