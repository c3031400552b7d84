package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"moorage/catalog/warehouses"
	"moorage/internal/cli"
	"moorage/secrets"
	"moorage/storage"
	"moorage/storage/adls"
	"moorage/storage/file"
	"moorage/storage/gcs"
	"moorage/storage/s3"
)

// storages opens the storage of each place, according to the schemes of its roots, and closes the
// storages that it opened. It is safe for concurrent use.
type storages struct {
	s3    s3.Options  // defaults for options that a place does not set
	gcs   gcs.Options // likewise
	adls  adls.Options
	files *file.Opener
	// sealer opens the secrets of warehouses. It is nil if there is no key.
	sealer secrets.Sealer
	watch  *storage.Watch
	// sawFolder is called with each local folder of a warehouse. It may be nil.
	sawFolder func(folder string)

	clients sync.Map // an *s3.Client for each s3.Options, likewise for gcs and adls
	secrets sync.Map // the client options made from each secret when it was last opened, by the secret's id

	// mu guards the fields below. No other lock is taken under it, and it is never held during a
	// call.
	mu     sync.Mutex
	opened []io.Closer
	lent   map[string]*lent // by roots
}

// lent is a file store that several users share for a while. It stays open while its calls hang,
// because a retry with another store would block another thread. Once its calls no longer hang, the
// next giveBack closes it.
type lent struct {
	files lentFiles
	users int
}

// lentFiles is the part of a *file.Store that lent needs.
type lentFiles interface {
	storage.FileStore
	io.Closer
	Busy() bool
}

// azureAccountKey is the variable of the Azure CLI for the key of a storage account. The SDK does
// not read this variable. The key is for emulators, and cannot make credentials for engines.
const azureAccountKey = "AZURE_STORAGE_KEY"

// openStorages returns the storages of a node. seen observes them. sealer may be nil.
func openStorages(c cli.Config, sealer secrets.Sealer, seen *storageHealth, logger *slog.Logger) *storages {
	s := newStorages(s3.Options{Logger: logger}, gcs.Options{Trusted: c.Trusted()},
		adls.Options{Trusted: c.Trusted(), AccountKey: os.Getenv(azureAccountKey)}, sealer, seen.watch)
	s.sawFolder = seen.sawFolder
	return s
}

func newStorages(s3 s3.Options, gcs gcs.Options, adls adls.Options, sealer secrets.Sealer, watch *storage.Watch,
) *storages {
	return &storages{
		s3: s3, gcs: gcs, adls: adls, files: file.NewOpener(), sealer: sealer, watch: watch,
		lent: make(map[string]*lent),
	}
}

// errNoSecretsKey means that the process has no key for the secret of a warehouse.
var errNoSecretsKey = errors.New("the warehouse has a secret, and there is no key for it: say --secrets-key")

// unseal returns the secret values with which the server reaches a place. It returns nil if the
// place has no secret.
func (s *storages) unseal(secret storage.Secret) (values map[string]string, err error) {
	if secret.ID == "" {
		return nil, nil
	}
	if s.sealer == nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrUnavailable, errNoSecretsKey)
	}
	sealed, found := secret.Sealed[storage.SecretServer]
	if !found {
		return nil, nil
	}
	plain, err := s.sealer.Open(sealed, warehouses.SecretOwner(secret, storage.SecretServer))
	if errors.Is(err, secrets.ErrAway) {
		err = fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(plain, &values) != nil {
		return nil, errors.New("the secret of the warehouse is not a JSON object of texts")
	}
	return values, nil
}

// open returns the storage of a place. It stays open until s is closed.
func (s *storages) open(place storage.Place) (storage.Store, error) {
	began := time.Now()
	opened, err := s.openSchemes(place, func(roots []string) (storage.FileStore, error) {
		store, err := s.files.New(roots)
		if err == nil {
			s.keep(store)
		}
		return store, err
	})
	s.watch.Opened(place.Warehouse, began, err)
	return opened, err
}

// borrow is like open, but the storage stays open only until giveBack is called. It creates no
// folders.
func (s *storages) borrow(place storage.Place) (store storage.Store, giveBack func(), err error) {
	giveBack = func() {}
	store, err = s.openSchemes(place, func(roots []string) (files storage.FileStore, err error) {
		files, giveBack, err = s.lend(roots)
		return files, err
	})
	if err != nil {
		giveBack()
		giveBack = func() {}
	}
	return store, giveBack, err
}

// lend returns the files below roots, and a function that gives them back. The caller must call
// that function once.
func (s *storages) lend(roots []string) (storage.FileStore, func(), error) {
	key := strings.Join(roots, "\x00")
	s.mu.Lock()
	shared, ok := s.lent[key]
	if ok {
		shared.users++
	}
	s.mu.Unlock()
	if ok {
		return shared.files, func() { s.giveBack(key, shared) }, nil
	}
	files, err := s.files.NewExisting(roots) // can take some seconds
	if err != nil {
		return nil, func() {}, err
	}
	mine := &lent{files: files, users: 1}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent[key] == nil {
		s.lent[key] = mine
	}
	return files, func() { s.giveBack(key, mine) }, nil
}

// giveBack closes files without users, unless their calls hang.
func (s *storages) giveBack(key string, l *lent) {
	s.mu.Lock()
	l.users--
	var over []io.Closer
	if l.users == 0 && s.lent[key] != l {
		over = append(over, l.files)
	}
	for key, each := range s.lent { // this also closes stores that were hanging when they were given back
		if each.users == 0 && !each.files.Busy() {
			delete(s.lent, key)
			over = append(over, each.files)
		}
	}
	s.mu.Unlock()
	for _, files := range over {
		_ = files.Close() // files were only read, or are already on the disk
	}
}

// keep registers opened, so that close closes it.
func (s *storages) keep(opened io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, opened)
}

// openSchemes opens a place with one storage for each scheme of its roots.
func (s *storages) openSchemes(
	place storage.Place, openFiles func(roots []string) (storage.FileStore, error),
) (storage.Store, error) {
	roots := make(map[string][]string) // by scheme
	for _, root := range place.Roots {
		if err := cli.CheckLocation(root); err != nil {
			return nil, err
		}
		parsed, err := storage.Parse(root)
		if err != nil {
			return nil, err
		}
		roots[parsed.Scheme] = append(roots[parsed.Scheme], root)
	}
	parts := make(storage.Schemes, len(roots))
	for scheme, group := range roots {
		var store storage.Store
		var err error
		part := storage.Place{
			Roots: group, Options: optionsOf(scheme, place.Options, roots), Secret: place.Secret,
			Warehouse: place.Warehouse,
		}
		switch scheme {
		case storage.SchemeFile:
			if place.Secret.ID != "" && len(roots) == 1 {
				return nil, errors.New("files of this machine are reached without a secret")
			}
			store, err = s.openFiles(part, openFiles)
		case storage.SchemeGCS:
			store, err = s.openGCS(part)
		case storage.SchemeAzure:
			store, err = s.openAzure(part)
		default:
			store, err = s.openS3(part)
		}
		if err != nil {
			return nil, err
		}
		parts[scheme] = store
	}
	for _, only := range parts {
		if len(parts) == 1 {
			return only, nil
		}
	}
	return parts, nil
}

// optionPrefixes has the prefixes of option names for each kind of storage.
var optionPrefixes = map[string]string{
	storage.SchemeS3: "s3.", storage.SchemeGCS: "gcs.", storage.SchemeAzure: "adls.",
}

// optionsOf returns the options of a place that apply to its storage of one scheme: all options
// that do not belong to a storage of another scheme of the place.
func optionsOf(scheme string, options map[string]string, roots map[string][]string) map[string]string {
	own := make(map[string]string, len(options))
	for name, value := range options {
		others := false
		for other, prefix := range optionPrefixes {
			others = others || other != scheme && len(roots[other]) > 0 && strings.HasPrefix(name, prefix)
		}
		if !others {
			own[name] = value
		}
	}
	return own
}

// openFiles opens a place whose roots are all folders.
func (s *storages) openFiles(place storage.Place, open func(roots []string) (storage.FileStore, error)) (
	storage.Store, error) {
	store, err := open(place.Roots)
	if err != nil {
		return nil, err
	}
	if place.Warehouse != "" && s.sawFolder != nil {
		s.sawFolder(folderOf(place.Roots[0]))
	}
	return s.watch.Files(place.Warehouse, store), nil
}

// openS3 opens a place whose roots are all in S3.
func (s *storages) openS3(place storage.Place) (storage.Store, error) {
	client, err := clientOf(s, s.s3, place, func(options s3.Options) (*s3.Client, error) {
		return s3.Connect(context.Background(), options) // reads local files, and sends nothing
	})
	if err != nil {
		return nil, err
	}
	store, err := client.Within(place.Roots)
	if err != nil {
		return nil, err
	}
	return s.watch.Signing(place.Warehouse, store), nil
}

// openGCS opens a place whose roots are all in Google Cloud Storage.
func (s *storages) openGCS(place storage.Place) (storage.Store, error) {
	client, err := clientOf(s, s.gcs, place, gcs.Connect)
	if err != nil {
		return nil, err
	}
	store, err := client.Within(place.Roots)
	if err != nil {
		return nil, err
	}
	return s.watch.Cloud(place.Warehouse, store), nil
}

// openAzure opens a place whose roots are all in Azure.
func (s *storages) openAzure(place storage.Place) (storage.Store, error) {
	client, err := clientOf(s, s.adls, place, adls.Connect)
	if err != nil {
		return nil, err
	}
	store, err := client.Within(place.Roots)
	if err != nil {
		return nil, err
	}
	return s.watch.Cloud(place.Warehouse, store), nil
}

// clientOptions are the options for a kind of storage: first the process's options, then the
// options of a place and of its secret.
type clientOptions[O any] interface {
	comparable
	With(place map[string]string) (O, error)
	WithSecret(secret map[string]string) (O, error)
}

// clientOf returns the client for a place. Places with the same options share one client and its
// state, such as a token. A call of connect may hang while it reads local files, so it must not
// block other places.
func clientOf[O clientOptions[O], C any](s *storages, process O, place storage.Place, connect func(O) (C, error)) (
	client C, err error) {
	options, err := process.With(place.Options)
	if err != nil {
		return client, err
	}
	values, err := s.unseal(place.Secret)
	if err == nil && values != nil {
		options, err = options.WithSecret(values)
	}
	if err != nil {
		return client, err
	}
	s.heed(place.Secret, options)
	kept, ok := s.clients.Load(options)
	if !ok {
		if client, err = connect(options); err != nil {
			return client, err
		}
		kept, _ = s.clients.LoadOrStore(options, client)
	}
	return kept.(C), nil
}

// heed records the client options that were made from a secret. If the secret has been replaced,
// heed drops the client with the options of the former secret.
func (s *storages) heed(secret storage.Secret, options any) {
	if secret.ID == "" {
		return
	}
	if before, _ := s.secrets.Swap(secret.ID, options); before != nil && before != options {
		s.clients.Delete(before)
	}
}

// close closes all opened storages at the same time, because each may hang for a while.
func (s *storages) close() error {
	s.mu.Lock()
	opened := s.opened
	for _, lent := range s.lent {
		opened = append(opened, lent.files)
	}
	s.opened, s.lent = nil, make(map[string]*lent)
	s.mu.Unlock()
	faults := make([]error, len(opened))
	var closing sync.WaitGroup
	for i, store := range opened {
		closing.Go(func() {
			// A hanging storage ends with the process
			if err := store.Close(); !errors.Is(err, storage.ErrUnavailable) {
				faults[i] = err
			}
		})
	}
	closing.Wait()
	return errors.Join(faults...)
}

// readSecretFile returns the secret in the file at path, a JSON object of strings. It returns nil
// if path is empty. Its errors quote nothing from the file.
func readSecretFile(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the secret: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, secrets.PlainBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	var values map[string]string
	if len(content) > secrets.PlainBytesMax || json.Unmarshal(content, &values) != nil || len(values) == 0 {
		return nil, fmt.Errorf("%s is not a JSON object of texts of at most %d bytes", path, secrets.PlainBytesMax)
	}
	return values, nil
}

// schemeOf returns the scheme of uri, which must be a checked location.
func schemeOf(uri string) string {
	location, err := storage.Parse(uri)
	if err != nil {
		return ""
	}
	return location.Scheme
}

// folderLocation returns a folder's location in the server's form. It percent-encodes nothing,
// because no engine decodes the part after file://.
func folderLocation(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", dir, err)
	}
	location := storage.Location{Scheme: storage.SchemeFile, Path: filepath.ToSlash(absolute)}.String()
	return location, cli.CheckLocation(location)
}

// localFolders are the folders of this machine that may contain warehouses created over the
// network. They are restricted because an administrator of the catalog is not an administrator of
// the machine, and jobs of the server delete files. A localFolders is safe for concurrent use.
type localFolders struct {
	allowed []string // folders that the settings allow
	usual   string   // the folder warehouse in data
	data    string   // belongs to the server itself, except the folder usual
	own     []string // further folders and files that a warehouse must not touch
}

// newLocalFolders returns the folders for the settings, with all symbolic links resolved.
func newLocalFolders(c cli.Config) *localFolders {
	f := &localFolders{data: endOf(c.Data), usual: endOf(filepath.Join(c.Data, "warehouse"))}
	for _, location := range append(slices.Clone(c.AllowLocations), c.DefaultLocation) {
		if parsed, err := storage.Parse(location); err == nil && parsed.Scheme == storage.SchemeFile {
			f.allowed = append(f.allowed, endOf(parsed.Path))
		}
	}
	own := []string{c.BackupsDir(), c.TLSKey, peerFile(c, peerKey), c.File}
	for _, key := range []string{c.SecretsKey, c.FormerSecretsKey} {
		if address, err := cli.ParseKeyAddress(key); err == nil {
			own = append(own, address.Place, address.TokenFile)
		}
	}
	if !c.InDatabase() && c.Store != cli.StoreMemory {
		own = append(own, c.StoreDir())
	}
	if to := c.AuditTo(); to != cli.AuditOff && to != cli.AuditStderr {
		own = append(own, to)
	}
	for _, path := range own {
		if path != "" && !strings.Contains(path, "://") { // not a key in a service
			f.own = append(f.own, endOf(path))
		}
	}
	return f
}

// check returns an error if a warehouse must not be in the folder.
func (f *localFolders) check(folder string) error {
	folder = endOf(folder)
	isOwn := func(path string) bool { return isWithin(folder, path) || isWithin(path, folder) }
	if slices.ContainsFunc(f.own, isOwn) || isOwn(f.data) && !isWithin(folder, f.usual) {
		return errors.New("the server keeps files of its own there")
	}
	if slices.ContainsFunc(append(f.allowed, f.usual), func(root string) bool { return isWithin(folder, root) }) {
		return nil
	}
	return fmt.Errorf("over the network the server uses only the folders that it was started for. Start it with "+
		"--allow-location file://%s, or stop it and make the warehouse with moorage warehouse create",
		filepath.ToSlash(folder))
}

// holds reports whether the folder is one of the server's own folders, or inside one.
func (f *localFolders) holds(folder string) bool {
	folder = endOf(folder)
	return slices.ContainsFunc(f.own, func(own string) bool { return isWithin(folder, own) }) ||
		isWithin(folder, f.data) && !isWithin(folder, f.usual)
}

// isWithin reports whether path is root, or below it. Both are clean.
func isWithin(path, root string) bool {
	below, err := filepath.Rel(root, path)
	return err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}

// endOf resolves the symbolic links in path, as far as its parts exist.
func endOf(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	for at, rest := absolute, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if end, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(end, rest)
		}
		if at == filepath.Dir(at) {
			return absolute
		}
	}
}
