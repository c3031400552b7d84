// Package storage defines the interface to file storage. The catalog writes each metadata file
// once, under a name never used before. When it purges a table, it reads and deletes the table's
// files. Its sub-packages adls, file, gcs, memory and s3 implement the contract of Store, and
// testkit/storagetest tests it.
//
// It also defines the spelling of locations (Location): the forms that clients may send, the form
// in answers, and the normalised form in which locations are compared.
package storage

import (
	"context"
	"errors"
	"io"
	"time"
)

// Info describes a file.
type Info struct {
	Bytes    int64
	Modified time.Time
}

// Store reads and writes files at locations, which are URIs in any spelling that ParseFile accepts.
// All methods are safe for concurrent use. Every method returns ErrOutside for a location outside
// the store's allowed roots, even if a link in the path leads there.
type Store interface {
	// Create writes body as a new file and makes it durable, with the folders that lead to it,
	// before it returns. If the file exists, Create returns ErrExists and leaves it unchanged.
	// ErrNotFound means that no file can have that name here. After any other error the complete
	// file may exist, or no file. The store may keep body, so the caller must not modify it.
	Create(ctx context.Context, location string, body []byte) error

	// Open returns the content of a file, which the caller must close. It returns ErrNotFound if
	// there is no file.
	Open(ctx context.Context, location string) (io.ReadCloser, Info, error)

	// ReadRange returns length bytes of a file, from offset on. It sends one request, and more only
	// if the answer breaks off. It returns ErrNotFound if there is no file, and io.ErrUnexpectedEOF
	// if the file has fewer bytes. offset must not be negative, and length must be above 0.
	ReadRange(ctx context.Context, location string, offset, length int64) ([]byte, error)

	// Stat describes a file without reading it. It returns ErrNotFound if there is no file.
	Stat(ctx context.Context, location string) (Info, error)

	// Delete removes files. A missing file is not an error. Delete continues after a failure, and
	// returns all failures joined.
	Delete(ctx context.Context, locations ...string) error
}

// File is the name and the content of a file to create. Once a caller has passed a File to a store,
// it must not modify Body.
type File struct {
	Location string
	Body     []byte
}

// Batcher is implemented by stores that make several files durable together faster than separately.
// Files can be created together if their Stores compare equal.
type Batcher interface {
	// CreateAll does the work of Create for each of files. It returns one error for each, in the
	// order of files, which is nil if the file was created. The failure of one file does not stop
	// the others. If two files have the same location, only one is created. If that fails, both
	// have the error.
	CreateAll(ctx context.Context, files []File) []error
}

// Folders is implemented by stores in which a folder must exist before an engine can write into it.
// Object stores have no folders.
type Folders interface {
	// MakeFolder creates the folder at location, and the folders that lead to it. ErrNotFound means
	// that no folder can have that name.
	MakeFolder(ctx context.Context, location string) error
	// RemoveEmptyFolder removes the folder at location if it is empty and older than age. It
	// reports whether it has removed the folder. If the folder is missing or not empty, it returns
	// false and no error.
	RemoveEmptyFolder(ctx context.Context, location string, age time.Duration) (bool, error)
}

// Local is implemented by stores in which checking for a file is so cheap that each load of a table
// can do it.
type Local interface {
	// MayBeGone reports whether a file that was at location may be gone. If it returns true, only
	// Stat gives a reliable answer. If the check is not cheap at the moment, it returns false.
	MayBeGone(location string) bool
}

// Prober is implemented by stores that can check whether their storage answers.
type Prober interface {
	// Probe checks that all the store's roots can be reached. It returns when ctx ends.
	Probe(ctx context.Context) error
}

// Feature is a capability that only some storages of a kind have.
type Feature struct {
	// Name is the name of the capability, such as "bulk deletes".
	Name string
	// Value describes the storage's behaviour, for humans.
	Value string
}

// Featured is implemented by stores that detect the capabilities of their storage.
type Featured interface {
	// Features returns the features detected so far, in the same order each time. It sends nothing.
	Features() []Feature
}

// Remote is implemented by stores behind a network.
type Remote interface {
	// Probe checks that all the store's roots can be reached and written to, and detects the
	// server's capabilities. It returns ErrNotFound if the container of the files, such as a
	// bucket, is missing.
	Prober
	// ClientConfig returns the settings that an engine needs to reach the same files, under the
	// names that Iceberg's clients use. The map contains no secrets, is the same for each call, and
	// must not be modified. It is nil if there are no settings.
	ClientConfig() map[string]string
}

// Place is a set of locations for a Store, and how to reach them.
type Place struct {
	// Roots are locations. The store returns ErrOutside for every location that is neither at nor
	// below one of them.
	Roots []string
	// Options are the access settings of the storage, under the names of ClientConfig. They contain
	// no secrets. The settings of the process are the defaults.
	Options map[string]string
	// Secret holds the credentials. If it is zero, the process's own credentials are used.
	Secret Secret
	// Warehouse is the name of the warehouse that owns the place, for metrics and the log. It is
	// empty for a place without a warehouse, and for a place that is only being tested. Places that
	// differ only in Warehouse count as the same.
	Warehouse string
}

// Secret identifies the credentials of a place, and holds them in sealed (encrypted) form. Only the
// code that opens a Store decrypts them.
type Secret struct {
	// The values are sealed for ID, Store and Warehouse.
	ID, Store, Warehouse string
	// Version changes when the values change.
	Version uint64
	// Sealed holds the sealed values by name; see SecretServer. It is nil if they have not been
	// read yet.
	Sealed map[string][]byte
}

// SecretServer is the name of the value with the server's own credentials for the storage: a JSON
// object of strings.
const SecretServer = "server"

// Errors that a Store returns. Callers distinguish them with errors.Is.
var (
	ErrExists   = errors.New("storage: file exists")
	ErrNotFound = errors.New("storage: no such file")
	ErrOutside  = errors.New("storage: outside the allowed locations")
	ErrLocation = errors.New("storage: malformed location")
	// ErrUnavailable: the storage did not answer in time. The call may still take effect: a file
	// that was being created may appear, complete, and a file that was being deleted may disappear.
	ErrUnavailable = errors.New("storage: no answer")
	// ErrNoCredentials: the process has no credentials for the storage, so nothing was sent.
	ErrNoCredentials = errors.New("storage: no credentials")
	// ErrSlowDown: the storage demanded fewer requests, even after all retries.
	ErrSlowDown = errors.New("storage: too many requests")
)

// ReadAll reads the whole file at location. A file longer than bytesMax is an error.
func ReadAll(ctx context.Context, store Store, location string, bytesMax int64) ([]byte, error) {
	body, info, err := store.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if info.Bytes > bytesMax {
		return nil, errTooLong(location, info.Bytes, bytesMax)
	}
	content := make([]byte, 0, info.Bytes+1)
	return readInto(content, location, body, bytesMax)
}
