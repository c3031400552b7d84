package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"moorage/storage"
)

// Roots holds the locations at and below which a store works.
type Roots []storage.Location

// ParseRoots parses the roots of a store. All must have the given scheme. name is the name of the
// storage, for errors. ParseRoots returns ErrLocation for any other root.
func ParseRoots(scheme, name string, roots []string) (Roots, error) {
	parsed := make(Roots, 0, len(roots))
	for _, root := range roots {
		each, err := storage.Parse(root)
		if err != nil {
			return nil, err
		}
		if each.Scheme != scheme {
			return nil, fmt.Errorf("%w: %q: not a location of %s", storage.ErrLocation, root, name)
		}
		parsed = append(parsed, each)
	}
	return parsed, nil
}

// Contains reports whether location is at or below a root.
func (r Roots) Contains(location storage.Location) bool {
	return slices.ContainsFunc(r, func(root storage.Location) bool { return root.Contains(location) })
}

// File parses the location of a file. It returns the error of ctx if ctx has ended, ErrLocation if
// the location is malformed, and ErrOutside if the file is not below a root.
func (r Roots) File(ctx context.Context, location string) (storage.Location, error) {
	if err := ctx.Err(); err != nil {
		return storage.Location{}, fmt.Errorf("%s: %w", location, err)
	}
	parsed, err := storage.ParseFile(location)
	if err != nil {
		return storage.Location{}, err
	}
	if !r.Contains(parsed) {
		return storage.Location{}, fmt.Errorf("%w: %s", storage.ErrOutside, location)
	}
	return parsed, nil
}

// Scope parses the locations of a credential's scope. It returns ErrLocation if a location is
// malformed, and ErrOutside if a location is neither at nor below a root.
func (r Roots) Scope(locations []string) ([]storage.Location, error) {
	parsed := make([]storage.Location, 0, len(locations))
	for _, location := range locations {
		each, err := storage.Parse(location)
		if err != nil {
			return nil, err
		}
		if !r.Contains(each) {
			return nil, fmt.Errorf("%w: %s", storage.ErrOutside, location)
		}
		parsed = append(parsed, each)
	}
	return parsed, nil
}

// Shortest returns, for each bucket, the shortest name of a root in it. It also returns the buckets
// in order.
func (r Roots) Shortest() (names map[string]string, buckets []string) {
	names = make(map[string]string)
	for _, root := range r {
		name := root.Path[1:]
		if other, ok := names[root.Authority]; !ok || len(name) < len(other) {
			names[root.Authority] = name
		}
	}
	return names, slices.Sorted(maps.Keys(names))
}

// Below returns the prefix of the names of all objects in a folder. For the whole bucket, it
// returns "".
func Below(folder string) string {
	return strings.TrimPrefix(strings.TrimSuffix(folder, "/")+"/", "/")
}
