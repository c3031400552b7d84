package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"moorage"
	"moorage/management/client"
)

// Object is a table or view of a catalog.
type Object struct {
	Namespace        []string `json:"namespace"`
	Name             string   `json:"name"`
	View             bool     `json:"view,omitempty"`
	MetadataLocation string   `json:"metadata-location,omitempty"` // empty if it is not known yet
	// Facts are nil if the source does not read metadata files.
	Facts *client.Facts `json:"-"`
}

// String returns the name as people write it.
func (o Object) String() string {
	return moorage.PersonLevels(append(slices.Clone(o.Namespace), o.Name)...)
}

// Kind is client.KindTable or client.KindView.
func (o Object) Kind() string {
	if o.View {
		return client.KindView
	}
	return client.KindTable
}

// key identifies the object among others.
func (o Object) key() string {
	return o.Kind() + "\x00" + strings.Join(o.Namespace, "\x1f") + "\x00" + o.Name
}

// Namespace is a namespace with its properties.
type Namespace struct {
	Levels     []string          `json:"namespace"`
	Properties map[string]string `json:"properties"`
}

// Source is a catalog that is read. Its methods may be called concurrently.
type Source interface {
	// Name identifies the catalog, and has no secret in it. Mirrors have it.
	Name() string
	// Namespaces returns all namespaces, parents before children. A source without namespaces of
	// its own returns none: the namespaces of its objects count.
	Namespaces(ctx context.Context) ([]Namespace, error)
	// List calls visit with all tables and views, in no order, until visit returns an error.
	List(ctx context.Context, visit func(Object) error) error
	// Load returns an object as it is now, with its MetadataLocation. The error is ErrGone if there
	// is no such object any more, and has ErrUnreadable if the source cannot read it. After other
	// errors the source may not answer for other objects either.
	Load(ctx context.Context, object Object) (Object, error)
}

// Detacher is a Source that can let go of an object, and refuse later commits to it.
type Detacher interface {
	// CanDetach reports whether the source can let go of the object.
	CanDetach(object Object) bool
	// Detach removes the object of an attempt from the source, and keeps its files. It returns the
	// object with its last metadata file, which has all commits that the source acknowledged. The
	// error is ErrGone if the source has no such object, and does not name its last metadata file.
	// A source that can only let go of a known file returns ErrMoved, with the object as it is now,
	// if that is not the file of the attempt.
	Detach(ctx context.Context, attempt Attempt) (Object, error)
}

// Attempt is an attempt to detach an object.
type Attempt struct {
	Object Object // with the metadata file that it had last
	Key    string // identifies the attempt
	// Repeated means that the attempt was begun before, and that its end is not known.
	Repeated bool
}

// ErrMoved means that an object has moved to another metadata file.
var ErrMoved = errors.New("it has moved on at the source")

// Target is a catalog that gets objects. Its methods may be called concurrently.
type Target interface {
	Name() string
	// Check returns what a register of the object would meet.
	Check(ctx context.Context, object Object) (client.RegisterChecked, error)
	// MakeNamespace makes a namespace, or adds the properties that an existing one lacks.
	MakeNamespace(ctx context.Context, namespace Namespace) error
	// Register registers the metadata file of the object. If mirror is not empty, the object
	// becomes a mirror of the source with that name, or moves.
	Register(ctx context.Context, object Object, mirror string) error
	// Load returns the object as the target has it now. The error is ErrGone if it has none.
	Load(ctx context.Context, object Object) (Object, error)
	// EndMirror makes a mirror an ordinary table or view.
	EndMirror(ctx context.Context, object Object) error
}

// ErrGone means that a catalog has no such object.
var ErrGone = fmt.Errorf("the catalog has no such table or view")

// Choice selects objects of a source, and where they go.
type Choice struct {
	Include, Exclude []string // globs over names such as sales.orders; * matches dots too
	Into             []string // levels in front of each namespace
}

// has reports whether the object with this name is selected.
func (c Choice) has(name string) bool {
	matches := func(globs []string) bool {
		return slices.ContainsFunc(globs, func(glob string) bool { return globMatches(glob, name) })
	}
	return (len(c.Include) == 0 || matches(c.Include)) && !matches(c.Exclude)
}

// there returns the object under its name at the target.
func (c Choice) there(o Object) Object {
	o.Namespace = slices.Concat(c.Into, o.Namespace)
	return o
}

// globMatches reports whether name matches glob, in which * is any text and ? any character.
func globMatches(glob, name string) bool {
	for glob != "" {
		switch {
		case glob[0] == '*':
			for i := 0; i <= len(name); i++ {
				if globMatches(glob[1:], name[i:]) {
					return true
				}
			}
			return false
		case name == "":
			return false
		case glob[0] != '?' && glob[0] != name[0]:
			return false
		}
		glob, name = glob[1:], name[1:]
	}
	return name == ""
}
