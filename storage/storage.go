// Package storage is the port to the places where files are. The catalog writes metadata files
// there once, under names never used before. It reads and deletes the files of tables when it
// purges a table. Its sub-packages file, gcs, memory and s3 keep the contract of Store; storagetest
// checks that they do.
//
// It also owns how a location is spelled (Location): what clients may send, what the server
// answers, and the normalised form in which locations are compared.
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

// Store reads and writes files at locations, which are URIs in any spelling that
// ParseFile accepts. All methods are safe for concurrent use. A location outside the
// store's allowed roots is ErrOutside, whatever the method, links in the path included.
type Store interface {
	// Create writes body as a new file and makes it durable, with the folders that lead to it,
	// before it returns. A file that exists is ErrExists and stays as it is. ErrNotFound: no file
	// can have that name here. After any other error the file may be there, whole, or not at all.
	// The store may keep body: nobody may write to it any more.
	Create(ctx context.Context, location string, body []byte) error

	// Open returns the content of a file, for the caller to close. ErrNotFound if there is none.
	Open(ctx context.Context, location string) (io.ReadCloser, Info, error)

	// Stat describes a file without reading it. ErrNotFound if there is none.
	Stat(ctx context.Context, location string) (Info, error)

	// Delete removes files; those that do not exist are not an error. It goes on
	// after a failure and returns all failures joined.
	Delete(ctx context.Context, locations ...string) error
}

// File is the name and the content of a file that is to be made. A caller that hands one over does
// not write to its body any more.
type File struct {
	Location string
	Body     []byte
}

// Batcher is implemented by stores that make several files durable together sooner than each alone.
// Stores that are one compare equal: so it is seen which files can be made together.
type Batcher interface {
	// CreateAll is Create of each of files. It returns the errors in their order, nil for a file
	// that was made; the failure of one does not keep others from being made. Of two with the same
	// location only one is made; if that fails, so does the other, likewise.
	CreateAll(ctx context.Context, files []File) []error
}

// Folders is implemented by stores in which a folder must exist before an engine can
// write into it. A store of objects has none.
type Folders interface {
	// MakeFolder creates the folder at location, and those that lead to it. ErrNotFound: no folder
	// can have that name.
	MakeFolder(ctx context.Context, location string) error
	// RemoveEmptyFolder removes the folder at location if it is empty and older than age, and
	// reports whether it did. It leaves a folder that is missing or not empty, without an error.
	RemoveEmptyFolder(ctx context.Context, location string, age time.Duration) (bool, error)
}

// Local is implemented by stores in which looking for a file costs next to nothing, so that each
// load of a table can afford it.
type Local interface {
	// MayBeGone reports whether a file that was at location may be gone. If it says yes, Stat knows
	// whether it is; where looking is not cheap, it says no.
	MayBeGone(location string) bool
}

// Prober is implemented by stores that can be asked whether they answer.
type Prober interface {
	// Probe checks that all that the store is to reach can be reached, and ends with ctx.
	Probe(ctx context.Context) error
}

// Feature is something that not every storage of a kind can do.
type Feature struct {
	// Name says what it is about, such as "bulk deletes".
	Name string
	// Value says what the storage does about it, for people.
	Value string
}

// Featured is implemented by stores that find out what their storage can do.
type Featured interface {
	// Features returns what was found out so far, in the same order each time. It sends nothing.
	Features() []Feature
}

// Remote is implemented by stores behind a network.
type Remote interface {
	// Probe checks that all that the store is to reach can be reached and written to, and finds out
	// what the server there can do. ErrNotFound if what should hold the files, such as a bucket, is
	// missing.
	Prober
	// ClientConfig returns what an engine must know to reach the same files, by the names that
	// Iceberg's clients have for it. It holds no secrets, is the same each time, and must not be
	// changed; nil for nothing.
	ClientConfig() map[string]string
}

// Place says which locations a Store is to reach, and how.
type Place struct {
	// Roots are locations. Every location that is not at or below one of them is outside.
	Roots []string
	// Options say how the storage is reached, by the names of ClientConfig. They hold no secrets.
	// The settings of the process fill in what they leave open.
	Options map[string]string
	// Secret is what it is reached with besides. Zero: what the process has.
	Secret Secret
	// Warehouse is the name of the warehouse whose place it is, for metrics and the log; empty: of
	// none, or of one that is only tried. It makes no other place.
	Warehouse string
}

// Secret names what a place is reached with, and has it in a sealed form. Who opens a Store opens
// the values too; nobody else sees them.
type Secret struct {
	// ID, Store and Warehouse are what the values are sealed for.
	ID, Store, Warehouse string
	// Version differs for values that differ.
	Version uint64
	// Sealed are the values by name, see SecretServer. Nil: they were not read yet.
	Sealed map[string][]byte
}

// SecretServer names the value of a Secret that the server reaches the storage with: a JSON object
// of texts.
const SecretServer = "server"

// Errors that a Store returns. Callers distinguish them with errors.Is.
var (
	ErrExists   = errors.New("storage: file exists")
	ErrNotFound = errors.New("storage: no such file")
	ErrOutside  = errors.New("storage: outside the allowed locations")
	ErrLocation = errors.New("storage: malformed location")
	// ErrUnavailable: the storage did not answer in time. The call may still take effect: a file
	// that was to be made may appear, whole, and one that was to be deleted may go.
	ErrUnavailable = errors.New("storage: no answer")
	// ErrNoCredentials: the process has nothing to reach the storage with, so nothing was sent.
	ErrNoCredentials = errors.New("storage: no credentials")
	// ErrSlowDown: the storage asks for fewer requests, and did so until the tries were over.
	ErrSlowDown = errors.New("storage: too many requests")
)

// ReadAll reads the whole file at location, at most bytesMax of it; a longer file is an error.
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
