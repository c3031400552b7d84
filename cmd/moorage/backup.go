package main

import (
	"context"
	"crypto/rand"
	"errors"
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

// keepFiles keeps a backup from deleting files of the store that it is a copy of.
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

// Why some stores have no backups.
var (
	errMemoryBackup = moorage.Errorf(moorage.KindUnsupported,
		"A store in memory is gone when its server ends; there is nothing to restore a backup to")
	errDatabaseBackup = moorage.Errorf(moorage.KindUnsupported,
		"The store is a PostgreSQL database: back it up with its own tools, pg_dump or pg_basebackup")
)

// newBackups returns the function with which a server makes a backup of store: a folder in the
// folder of --backups, and only there.
func newBackups(c cli.Config, store registry.Store) func(ctx context.Context, name string) (client.Backup, error) {
	return func(ctx context.Context, name string) (made client.Backup, err error) {
		const op = "moorage.newBackups"
		source, ok := store.(backuper)
		switch {
		case c.InDatabase():
			return made, errDatabaseBackup
		case !ok:
			return made, errMemoryBackup
		}
		if err := cli.CheckBackupName(name); err != nil {
			return made, moorage.Errorf(moorage.KindBadRequest, "%w", err)
		}
		folder, err := filepath.Abs(c.BackupsDir())
		if err == nil {
			err = makeFolder(folder)
		}
		if err == nil {
			made.Folder = filepath.Join(folder, name)
			made.Records, err = source.Backup(ctx, made.Folder, cli.StoreFolder, keepFiles)
		}
		switch {
		case err == nil:
			return made, nil
		case errors.Is(err, fs.ErrExist):
			return made, moorage.Errorf(moorage.KindAlreadyExists, "There is a backup already: %s", name)
		}
		err = moorage.Errorf(moorage.KindUnavailable, "There is no new backup: %w", err)
		return made, moorage.E(op, name, moorage.KindUnavailable, err)
	}
}

// makeFolder creates a folder, durably, in one that exists.
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
