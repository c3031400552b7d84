package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/ledger"
	"moorage/management/client"
	"moorage/recovery"
	"moorage/registry"
)

// backuper is a store that can be copied while it is in use.
type backuper interface {
	Backup(ctx context.Context, dir, name string,
		prepare func(context.Context, registry.Store) error) (records int, err error)
}

// keepFiles makes sure that a server that runs on copied, a backup, deletes no files of the
// original store.
func keepFiles(ctx context.Context, copied registry.Store) error {
	_, err := cancelDeletions(ctx, copied)
	return err
}

// cancelDeletions cancels all planned deletions of files in a store that no other process uses.
func cancelDeletions(ctx context.Context, store registry.Store) (recovery.Cancelled, error) {
	deps, err := ledger.New(ledger.Config{
		Store: store, Alone: true, Now: time.Now, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return recovery.Cancelled{}, err
	}
	return recovery.CancelDeletions(ctx, deps.Ledger, deps.Now())
}

// The reasons why some stores have no backups.
var (
	errMemoryBackup = moorage.Errorf(moorage.KindUnsupported,
		"A store in memory is gone when its server ends; there is nothing to restore a backup to")
	errDatabaseBackup = moorage.Errorf(moorage.KindUnsupported,
		"The store is a PostgreSQL database: back it up with its own tools, pg_dump or pg_basebackup")
)

// newBackups returns a function that makes a backup of store for the server. It creates backups
// only in the folder given by --backups.
func newBackups(c cli.Config, store registry.Store) func(ctx context.Context, name string) (client.Backup, error) {
	return func(ctx context.Context, name string) (client.Backup, error) {
		if err := cli.CheckBackupName(name); err != nil {
			return client.Backup{}, moorage.Errorf(moorage.KindBadRequest, "%w", err)
		}
		if _, ok := store.(backuper); ok {
			if err := makeFolder(c.BackupsDir()); err != nil {
				return client.Backup{}, noBackup(name, err)
			}
		}
		return copyStore(ctx, c, store, filepath.Join(c.BackupsDir(), name))
	}
}

// noBackup returns the error of a backup that could not be made.
func noBackup(name string, err error) error {
	err = moorage.Errorf(moorage.KindUnavailable, "There is no new backup: %w", err)
	return moorage.E("moorage.noBackup", name, moorage.KindUnavailable, err)
}

// copyStore copies store to a new folder, whose parent exists.
func copyStore(ctx context.Context, c cli.Config, store registry.Store, folder string) (
	made client.Backup, err error) {
	source, ok := store.(backuper)
	switch {
	case c.InDatabase():
		return made, errDatabaseBackup
	case !ok:
		return made, errMemoryBackup
	}
	if made.Folder, err = filepath.Abs(folder); err == nil {
		made.Records, err = source.Backup(ctx, made.Folder, cli.StoreFolder, keepFiles)
	}
	switch {
	case err == nil:
		return made, nil
	case errors.Is(err, fs.ErrExist):
		return made, moorage.Errorf(moorage.KindAlreadyExists, "There is a backup already: %s", filepath.Base(folder))
	}
	return made, noBackup(folder, err)
}

func backupBody(c cli.Config) (any, error) {
	if c.URI == "" && c.InDatabase() {
		return nil, errDatabaseBackup
	}
	return client.BackupSpec{Name: c.Operand}, nil
}

func printBackup(out io.Writer, _ cli.Config, made client.Backup) error {
	_, err := fmt.Fprintf(out, "%s in %s\nmetadata and data files are not in it; "+
		"to restore it, stop the server and run moorage serve --data %s\n",
		moorage.Counted(made.Records, "record"), made.Folder, made.Folder)
	return err
}

// makeFolder creates a folder durably. The parent folder must exist.
func makeFolder(name string) error {
	// The umask decides which other users may read the folder.
	if err := os.Mkdir(name, 0o777); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}
