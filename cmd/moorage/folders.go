package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"moorage/internal/cli"
	"moorage/storage"
)

// localFolders are the folders of this machine that may contain warehouses created over the
// network. An administrator of the catalog is not an administrator of the machine, and jobs of the
// server delete files. It is safe for concurrent use.
type localFolders struct {
	allowed []string // folders in the settings
	usual   string   // the folder warehouse in data
	data    string   // all of it is the server's own, except usual
	own     []string // further folders and files that a warehouse must not touch
}

// newLocalFolders returns the folders that the settings allow, with all symbolic links resolved.
func newLocalFolders(c cli.Config) *localFolders {
	f := &localFolders{data: endOf(c.Data), usual: endOf(filepath.Join(c.Data, "warehouse"))}
	for _, location := range append(slices.Clone(c.AllowLocations), c.DefaultLocation) {
		if parsed, err := storage.Parse(location); err == nil && parsed.Scheme == storage.SchemeFile {
			f.allowed = append(f.allowed, endOf(parsed.Path))
		}
	}
	own := []string{c.BackupsDir(), c.TLSKey, c.PeerKey, c.SecretsKey, c.FormerSecretsKey, c.VaultTokenFile, c.File}
	if !c.InDatabase() && c.Store != cli.StoreMemory {
		own = append(own, c.StoreDir())
	}
	if to := c.AuditTo(c.Authenticates()); to != cli.AuditOff && to != cli.AuditStderr {
		own = append(own, to)
	}
	for _, path := range own {
		if path != "" && !strings.Contains(path, "://") { // not a key in a service
			f.own = append(f.own, endOf(path))
		}
	}
	return f
}

// check returns why a warehouse must not be in the folder, and nil if it may.
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

// isWithin reports whether path is root, or below it. Both are clean.
func isWithin(path, root string) bool {
	below, err := filepath.Rel(root, path)
	return err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}

// endOf resolves the symbolic links of path, as far as the files exist.
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
