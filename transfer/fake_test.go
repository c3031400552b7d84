package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"moorage/management/client"
)

// errKilled is what every call returns after a run was killed.
var errKilled = errors.New("killed")

// fake is a catalog in memory: a Source, a Detacher and a Target. Files of all catalogs have the
// form uuid/version.
type fake struct {
	name string

	mu         sync.Mutex // guards the fields below
	objects    map[string]Object
	mirrors    map[string]string
	namespaces map[string]map[string]string
	detached   map[string]Object // by the key of the attempt
	changes    int
	before     func(call string) error // called before each call, without mu; may be nil
	after      func(call string) error // called after the effect of a change
}

func newFake(name string) *fake {
	return &fake{
		name: name, objects: make(map[string]Object), mirrors: make(map[string]string),
		namespaces: make(map[string]map[string]string), detached: make(map[string]Object),
	}
}

// call begins a call and returns its end.
func (f *fake) call(name string) (func() error, error) {
	if f.before != nil {
		if err := f.before(name); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	return func() error {
		f.mu.Unlock()
		if f.after != nil {
			return f.after(name)
		}
		return nil
	}, nil
}

// factsOf returns the facts in a file.
func factsOf(location string) *client.Facts {
	uuid, version, _ := strings.Cut(location, "/")
	return &client.Facts{
		UUID: uuid, Location: "s3://lake/" + uuid, Format: 2, Snapshot: int64(len(version)),
		Refs: map[string]int64{"main": int64(len(version))},
	}
}

// add adds a table to the catalog.
func (f *fake) add(uuid string, levels ...string) Object {
	last := len(levels) - 1
	o := Object{Namespace: levels[:last], Name: levels[last], MetadataLocation: uuid + "/v1"}
	f.objects[o.key()] = o
	for depth := 1; depth <= last; depth++ {
		key := strings.Join(levels[:depth], "\x1f")
		if f.namespaces[key] == nil {
			f.namespaces[key] = map[string]string{"owner": key}
		}
	}
	return o
}

// commit makes the next version of a table, if the catalog has it.
func (f *fake) commit(o Object) (location string, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is, ok := f.objects[o.key()]
	if !ok {
		return "", false
	}
	is.MetadataLocation += "+"
	f.objects[o.key()] = is
	return is.MetadataLocation, true
}

func (f *fake) Name() string { return f.name }

func (f *fake) Namespaces(context.Context) ([]Namespace, error) {
	end, err := f.call("namespaces")
	if err != nil {
		return nil, err
	}
	var all []Namespace
	for _, key := range slices.Sorted(maps.Keys(f.namespaces)) {
		all = append(all, Namespace{Levels: strings.Split(key, "\x1f"), Properties: maps.Clone(f.namespaces[key])})
	}
	return all, end()
}

func (f *fake) List(_ context.Context, visit func(Object) error) error {
	end, err := f.call("list")
	if err != nil {
		return err
	}
	all := slices.Collect(maps.Values(f.objects))
	if err := end(); err != nil {
		return err
	}
	for _, o := range all {
		o.MetadataLocation = ""
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) Load(_ context.Context, o Object) (Object, error) {
	end, err := f.call("load " + o.String())
	if err != nil {
		return o, err
	}
	found, ok := f.objects[o.key()]
	if err := end(); err != nil {
		return o, err
	}
	if !ok {
		return o, ErrGone
	}
	if strings.HasPrefix(found.MetadataLocation, "bad") {
		return o, fmt.Errorf("%w: bad", ErrUnreadable)
	}
	if found.MetadataLocation != "" {
		found.Facts = factsOf(found.MetadataLocation)
	}
	return found, nil
}

func (f *fake) CanDetach(Object) bool { return true }

func (f *fake) Detach(_ context.Context, a Attempt) (Object, error) {
	o := a.Object
	end, err := f.call("detach " + o.String())
	if err != nil {
		return o, err
	}
	found, ok := f.objects[o.key()]
	if before, again := f.detached[a.Key]; again {
		found, ok = before, true
	} else if ok {
		delete(f.objects, o.key())
		f.detached[a.Key] = found
	}
	if err := end(); err != nil {
		return o, err
	}
	if !ok {
		return o, ErrGone
	}
	return found, nil
}

func (f *fake) Check(_ context.Context, o Object) (client.RegisterChecked, error) {
	end, err := f.call("check " + o.String())
	if err != nil {
		return client.RegisterChecked{}, err
	}
	checked := client.RegisterChecked{Fitness: "new", Facts: factsOf(o.MetadataLocation)}
	there, ok := f.objects[o.key()]
	switch {
	case ok && factsOf(there.MetadataLocation).UUID != checked.Facts.UUID:
		checked.Fitness, checked.Why = "name-taken", "Another one"
	case ok && there.MetadataLocation == o.MetadataLocation:
		checked.Fitness, checked.Mirror = "same", f.mirrors[o.key()]
	case ok && f.mirrors[o.key()] != "":
		checked.Fitness, checked.Mirror = "moved", f.mirrors[o.key()]
	case ok:
		checked.Fitness, checked.Why = "changed-here", "Changed"
	}
	return checked, end()
}

func (f *fake) MakeNamespace(_ context.Context, n Namespace) error {
	end, err := f.call("make namespace " + strings.Join(n.Levels, "."))
	if err != nil {
		return err
	}
	key := strings.Join(n.Levels, "\x1f")
	if f.namespaces[key] == nil {
		f.namespaces[key] = make(map[string]string)
	}
	maps.Copy(f.namespaces[key], n.Properties)
	f.changes++
	return end()
}

func (f *fake) Register(_ context.Context, o Object, mirror string) error {
	end, err := f.call("register " + o.String())
	if err != nil {
		return err
	}
	if f.namespaces[strings.Join(o.Namespace, "\x1f")] == nil {
		f.mu.Unlock()
		return &client.Error{Code: 404, Message: "no namespace"}
	}
	there, ok := f.objects[o.key()]
	if ok && (f.mirrors[o.key()] == "" || factsOf(there.MetadataLocation).UUID != factsOf(o.MetadataLocation).UUID) {
		f.mu.Unlock()
		return &client.Error{Code: 409, Message: "taken"}
	}
	f.changes++
	o.Facts = nil
	f.objects[o.key()] = o
	if mirror != "" {
		f.mirrors[o.key()] = mirror
	}
	return end()
}

func (f *fake) EndMirror(_ context.Context, o Object) error {
	end, err := f.call("end " + o.String())
	if err != nil {
		return err
	}
	if f.objects[o.key()].MetadataLocation != o.MetadataLocation {
		f.mu.Unlock()
		return fmt.Errorf("%s has moved", o)
	}
	f.changes++
	delete(f.mirrors, o.key())
	return end()
}

// state returns all that the catalog has, as text.
func (f *fake) state() string {
	var lines []string
	for key, o := range f.objects {
		lines = append(lines, fmt.Sprintf("%q %s %s", key, o.MetadataLocation, f.mirrors[key]))
	}
	for key, properties := range f.namespaces {
		lines = append(lines, fmt.Sprintf("%q %v", key, properties))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
