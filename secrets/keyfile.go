package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/aesgcm"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

const (
	// fileBytesMax is the maximum size of the key file. A key takes about 250 bytes, so there is
	// room for thousands.
	fileBytesMax = 1 << 20
	// keyBytes is the size of an AES-256 key.
	keyBytes = 32
	// fileMode lets only the owner read the keys.
	fileMode = 0o600
	// newSuffix is the suffix of the temporary file that replaces the key file.
	newSuffix = ".new"
)

// Init creates a key file with one key, and returns the id of the key. If the file exists, Init
// returns an error and leaves it unchanged. The new file is durable when Init returns.
func Init(path string) (KeyID, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return 0, fmt.Errorf("secrets: draw a key: %w", err)
	}
	if err := writeNew(path, handle); err != nil {
		return 0, fmt.Errorf("secrets: make the key file: %w", err)
	}
	if err := syncFolder(path); err != nil {
		return 0, err
	}
	info, err := newKeys(handle)
	if err != nil {
		return 0, err
	}
	return info.primary, nil
}

// Rotate adds a key to the file at path and makes it the primary one. It returns the ids of the new
// and the previous primary key. All other keys stay.
func Rotate(path string) (now, before KeyID, err error) {
	err = change(path, func(old *keys, manager *keyset.Manager) error {
		id, err := manager.Add(aead.AES256GCMKeyTemplate())
		if err != nil {
			return err
		}
		now, before = KeyID(id), old.primary
		return manager.SetPrimary(id)
	})
	return now, before, err
}

// change reads the keys of the file at path, lets edit change them, and atomically replaces the
// file. If two processes change the file at the same time, one of them gets an error.
func change(path string, edit func(old *keys, manager *keyset.Manager) error) error {
	// Replace the target of a symbolic link, not the link.
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("secrets: find the key file: %w", err)
	}
	// Create the new file before reading the old one. Its existence keeps other processes from
	// changing the old file.
	replacement := path + newSuffix
	file, err := os.OpenFile(replacement, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("secrets: another process is changing %s; if none is, remove %s", path, replacement)
	}
	if err != nil {
		return fmt.Errorf("secrets: change the key file: %w", err)
	}
	if err := edited(path, file, edit); err != nil {
		return errors.Join(fmt.Errorf("secrets: change the key file: %w", err), file.Close(), os.Remove(replacement))
	}
	if err := file.Close(); err != nil {
		return errors.Join(fmt.Errorf("secrets: change the key file: %w", err), os.Remove(replacement))
	}
	if err := os.Rename(replacement, path); err != nil {
		return errors.Join(fmt.Errorf("secrets: change the key file: %w", err), os.Remove(replacement))
	}
	return syncFolder(path)
}

// edited reads the keys at path, lets edit change them, and writes them to file.
func edited(path string, file *os.File, edit func(old *keys, manager *keyset.Manager) error) error {
	old, err := read(path)
	if err != nil {
		return err
	}
	manager := keyset.NewManagerFromHandle(old.handle)
	if err := edit(old, manager); err != nil {
		return err
	}
	handle, err := manager.Handle()
	if err != nil {
		return err
	}
	return write(file, handle)
}

// read returns the keys of the file at path.
func read(path string) (*keys, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("secrets: open the key file (moorage secrets init makes one): %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("secrets: check the key file: %w", err)
	}
	if err := checkMode(path, info); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, fileBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("secrets: read the key file: %w", err)
	}
	keys, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("secrets: %s is not a key file: %w", path, err)
	}
	return keys, nil
}

// parse reads the content of a key file. Its errors contain no part of the content.
func parse(content []byte) (*keys, error) {
	if len(content) > fileBytesMax {
		return nil, fmt.Errorf("it has more than %d bytes", fileBytesMax)
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return nil, errors.New("it does not hold a keyset in JSON")
	}
	return newKeys(handle)
}

// isOurs reports whether a key is for AES-256-GCM and adds its id to sealed values.
func isOurs(entry *keyset.Entry) bool {
	key, ok := entry.Key().(*aesgcm.Key)
	if !ok {
		return false
	}
	parameters, ok := key.Parameters().(*aesgcm.Parameters)
	return ok && parameters.KeySizeInBytes() == keyBytes && parameters.Variant() == aesgcm.VariantTink
}

// writeNew writes a key file that must not exist.
func writeNew(path string, handle *keyset.Handle) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	err = errors.Join(write(file, handle), file.Close())
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// write writes the keys and syncs the file.
func write(file *os.File, handle *keyset.Handle) error {
	var content bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&content)); err != nil {
		return err
	}
	content.WriteByte('\n')
	if _, err := file.Write(content.Bytes()); err != nil {
		return err
	}
	return file.Sync()
}

// syncFolder makes the name of a file durable.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("secrets: open the folder of the key file: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("secrets: sync the folder of the key file: %w", err)
	}
	return nil
}
