package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"moorage/storage"
)

// ProbePrefix is the prefix of the names of objects and folders that a probe makes and deletes.
const ProbePrefix = "moorage-probe-"

// ProbeEndTimeout is the time in which a probe tries to delete the objects that it wrote.
const ProbeEndTimeout = 5 * time.Second

// Names of objects below the folders of a probe: an existing object and a missing one.
const (
	ProbeData = "/data"
	ProbeNew  = "/new"
)

// Engine sends requests for objects in one bucket, which are given by name. It has the credentials
// of an engine, or the server's own. It is safe for concurrent use.
type Engine interface {
	Read(ctx context.Context, name string) error
	// Write makes an object with some content, or replaces it.
	Write(ctx context.Context, name string) error
	// List requests objects whose names begin with prefix.
	List(ctx context.Context, prefix string) error
	Delete(ctx context.Context, name string) error
}

// Trial is a request for an object or a prefix that is sent with credentials of an engine. The
// server must either allow or refuse it. The field What completes the sentence "the credentials can
// …".
type Trial struct {
	What string
	Do   func(ctx context.Context, name string) error
	Name string
}

// VendingProbe issues credentials for a folder. It tries them in the folder, and in siblings that a
// server may confuse with the folder. One sibling has a similar name, and one differs in upper and
// lower case. The probe writes a few small objects and deletes them.
type VendingProbe struct {
	// Folder is the name of a folder that does not exist, without a slash at the end. Its last
	// segment has lower-case letters.
	Folder string
	// These texts are used in errors. Storage is the kind of storage, Place is the bucket, and
	// Maker is the issuer of the credentials. Hint is a sentence for the case that the credentials
	// are refused within their scope.
	Storage, Place, Maker, Hint string

	// Own sends requests with the server's own credentials.
	Own Engine
	// Vend issues credentials for Folder. If write is false, they allow only reading.
	Vend func(ctx context.Context, write bool) (Engine, error)
	// Forbidden returns further requests that must be refused. It may be nil.
	Forbidden func(engine Engine, write bool) []Trial
	// Detours tries to reach beyond the scope with names that a server may change after it has
	// checked them. It returns ErrUnenforced if the credentials reach beyond their scope. It may be
	// nil.
	Detours func(ctx context.Context, engine Engine, write bool) error
	// IsRefused reports whether a server refused a request because of its credentials.
	IsRefused func(error) bool
	// Delete deletes objects with the server's own credentials; some of them may not exist.
	Delete func(ctx context.Context, names []string) error
	// Left lists the names of other objects below Folder that the trials may write. Run deletes
	// them.
	Left []string
}

// Siblings returns the folders outside the scope of the credentials, and a description of each.
func (p VendingProbe) Siblings() (names, whats []string) {
	above := p.Folder[:strings.LastIndexByte(p.Folder, '/')+1]
	last := p.Folder[len(above):]
	return []string{p.Folder + "y", above + strings.ToUpper(last)}, []string{
		"a sibling folder whose name begins with their folder's name",
		"a sibling folder whose name differs from their folder's only in case",
	}
}

// Run performs the probe, and deletes the objects that it may have written. It returns
// ErrUnenforced if the credentials reach beyond their scope.
func (p VendingProbe) Run(ctx context.Context) (err error) {
	siblings, _ := p.Siblings()
	defer func() {
		// The caller may already be gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ProbeEndTimeout)
		defer cancel()
		left := append([]string{p.Folder + ProbeData, p.Folder + ProbeNew}, p.Left...)
		for _, sibling := range siblings {
			left = append(left, sibling+ProbeData, sibling+ProbeNew)
		}
		if failure := p.Delete(ctx, left); failure != nil {
			err = errors.Join(err, fmt.Errorf("delete the files of the probe: %w", failure))
		}
	}()
	for _, sibling := range siblings {
		if err := p.Own.Write(ctx, sibling+ProbeData); err != nil {
			return fmt.Errorf("write %s with the server's own credentials: %w", sibling+ProbeData, err)
		}
	}
	for _, write := range []bool{true, false} {
		engine, err := p.Vend(ctx, write)
		if err != nil {
			return err
		}
		if err := p.try(ctx, engine, write); err != nil {
			return err
		}
	}
	return nil
}

// try sends all requests with the credentials of an engine.
func (p VendingProbe) try(ctx context.Context, engine Engine, write bool) error {
	for _, trial := range p.allowed(engine, write) {
		if err := trial.Do(ctx, trial.Name); err != nil {
			return fmt.Errorf("%s: the credentials that %s makes cannot %s the folder they are for%s: %w",
				p.Storage, p.Maker, trial.What, p.Hint, err)
		}
	}
	for _, trial := range p.forbidden(engine, write) {
		err := trial.Do(ctx, trial.Name)
		if err == nil {
			return fmt.Errorf("%w: in %s its credentials can %s", storage.ErrUnenforced, p.Place, trial.What)
		}
		if !p.IsRefused(err) {
			return fmt.Errorf("%s: check whether credentials can %s: %w", p.Storage, trial.What, err)
		}
	}
	if p.Detours == nil {
		return nil
	}
	return p.Detours(ctx, engine, write)
}

// allowed returns the requests that must be allowed to the credentials.
func (p VendingProbe) allowed(engine Engine, write bool) (trials []Trial) {
	if write {
		trials = append(trials, Trial{"write in", engine.Write, p.Folder + ProbeData})
	}
	return append(trials, Trial{"read in", engine.Read, p.Folder + ProbeData},
		Trial{"list", engine.List, p.Folder + "/"})
}

// forbidden returns the requests that must be refused to the credentials.
func (p VendingProbe) forbidden(engine Engine, write bool) (trials []Trial) {
	siblings, whats := p.Siblings()
	for i, sibling := range siblings {
		trials = append(trials,
			Trial{"read in " + whats[i], engine.Read, sibling + ProbeData},
			Trial{"write in " + whats[i], engine.Write, sibling + ProbeNew},
			Trial{"replace a file in " + whats[i], engine.Write, sibling + ProbeData},
			Trial{"list " + whats[i], engine.List, sibling + "/"},
			Trial{"delete in " + whats[i], engine.Delete, sibling + ProbeData})
	}
	if !write {
		trials = append(trials,
			Trial{"write, although they are read-only", engine.Write, p.Folder + ProbeNew},
			Trial{"delete, although they are read-only", engine.Delete, p.Folder + ProbeData})
	}
	if p.Forbidden == nil {
		return trials
	}
	return append(trials, p.Forbidden(engine, write)...)
}
