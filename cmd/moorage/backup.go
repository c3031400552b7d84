package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/management/client"
	"moorage/registry"
	"moorage/registry/pebble"
)

// storeFolder is the folder of the embedded store in --data, and in a backup, so that one can be served.
const storeFolder = "registry"

func backupCommand() command {
	return command{
		name:    "backup",
		operand: "DIR",
		summary: "copy the embedded store, also while its server runs",
		text: "Copies the records of the embedded store to DIR, which must not exist yet; the folder that it is in must. The copy is whole and " +
			"on the disk when the command ends, or there is none. It holds every commit that was acknowledged before.\n\n" +
			"Without --uri it opens the store itself, whose server must be stopped. With --uri it asks the server that runs there, which must be on this " +
			"machine; DIR is then a name, and the server makes a folder of that name in the folder that its --backups says.\n\n" +
			"A backup holds records only; metadata and data files stay where they are. To restore it, stop the server and run moorage serve --data DIR, which goes on in DIR itself, or " +
			"put the folder registry of DIR in the place of that in --data. The catalog is then as it was: commits made since are forgotten, their files left over, and " +
			"files that were purged or trimmed since are gone, which moorage check tells. Of files that were about to be deleted a backup knows nothing: transactions under way are not in it, and tables that " +
			"were to be purged are in it as dropped without. So what was put aside can be gone back to. moorage serve warns that the warehouse default was made in another folder, where its tables are. Never serve a backup while another server serves the same tables.\n",
		settings: append(storeSettings(), uriSetting("Ask the server that runs at this address, on this machine, to make the backup.")),
		validate: func(c config, faults *usageError) {
			if c.URI != "" && !backupName.MatchString(c.Operand) {
				faults.addf("backup --uri: %s; the server chooses the folder that it goes to", badBackupName(c.Operand))
			}
		},
		run: backup,
	}
}

func backup(ctx context.Context, c config, env environment) error {
	back := backupStopped
	if c.URI != "" {
		back = func(ctx context.Context, c config, _ environment) (client.Backup, error) {
			return client.New(c.URI).Backup(ctx, c.Operand)
		}
	}
	made, err := back(ctx, c, env)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s in %s\nmetadata and data files are not in it; to restore it, stop the server and run moorage serve --data %s\n",
		counted(made.Records, "record"), made.Folder, made.Folder)
	return nil
}

// backupStopped opens the store, which nobody else may have open, and copies it.
func backupStopped(ctx context.Context, c config, env environment) (made client.Backup, err error) {
	dir, err := filepath.Abs(c.Operand)
	if err != nil {
		return made, fmt.Errorf("find %s: %w", c.Operand, err)
	}
	if c.inDatabase() {
		return made, errDatabaseBackup
	}
	store, err := openStoppedStore(ctx, c, env)
	if errors.Is(err, pebble.ErrLocked) {
		err = fmt.Errorf("%w, or ask it with --uri", err)
	}
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	records, err := store.(backuper).Backup(ctx, dir, storeFolder, callOffDeletions)
	return client.Backup{Folder: dir, Records: records}, err
}

// backuper is a store that can be copied while it is in use.
type backuper interface {
	Backup(ctx context.Context, dir, name string, prepare func(context.Context, registry.Store) error) (records int, err error)
}

// callOffDeletions keeps a backup from deleting files of the store that it is a copy of.
func callOffDeletions(ctx context.Context, copied registry.Store) error {
	_, err := catalog.CallOffDeletions(ctx, copied, time.Now())
	return err
}

// Why some stores have no backups.
var (
	errMemoryBackup   = moorage.Errorf(moorage.KindUnsupported, "A store in memory is gone when its server ends; there is nothing to restore a backup to")
	errDatabaseBackup = moorage.Errorf(moorage.KindUnsupported, "The store is a PostgreSQL database: back it up with its own tools, pg_dump or pg_basebackup")
)

// backupName is what a client may call a backup: the name of one folder, not hidden and not the folder above.
var backupName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func badBackupName(name string) string {
	return fmt.Sprintf("%q is not a name of up to 100 letters, digits, dots, dashes and underscores that begins with a letter or a digit", name)
}

// newBackups returns what a server does to make a backup of store: a folder in the folder that --backups says, and nowhere else.
func newBackups(c config, store registry.Store) func(ctx context.Context, name string) (client.Backup, error) {
	return func(ctx context.Context, name string) (made client.Backup, err error) {
		const op = "backup"
		source, ok := store.(backuper)
		switch {
		case c.inDatabase():
			return made, errDatabaseBackup
		case !ok:
			return made, errMemoryBackup
		case !backupName.MatchString(name):
			return made, moorage.Errorf(moorage.KindBadRequest, "%s", badBackupName(name))
		}
		folder, err := filepath.Abs(c.backupsDir())
		if err == nil {
			err = makeFolder(folder)
		}
		if err == nil {
			made.Folder = filepath.Join(folder, name)
			made.Records, err = source.Backup(ctx, made.Folder, storeFolder, callOffDeletions)
		}
		switch {
		case err == nil:
			return made, nil
		case errors.Is(err, fs.ErrExist):
			return made, moorage.Errorf(moorage.KindAlreadyExists, "There is a backup already: %s", name)
		}
		return made, moorage.E(op, name, moorage.KindUnavailable, moorage.Errorf(moorage.KindUnavailable, "There is no new backup: %w", err))
	}
}

// makeFolder makes a folder, durably, in one that exists.
func makeFolder(name string) error {
	// Who else may look into it is for the umask to say.
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
