package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Schemes is a Store that combines one Store for each scheme, for places that span several kinds of
// storage. It returns ErrOutside for a location with another scheme. Schemes implements the
// optional interfaces of Stores, except Batcher. It calls the Store for the location's scheme, if
// that Store implements the interface. Schemes must not be changed after its first use.
type Schemes map[string]Store

// Create writes a new file.
func (s Schemes) Create(ctx context.Context, location string, body []byte) error {
	store, err := s.storeOf(ctx, location)
	if err != nil {
		return err
	}
	return store.Create(ctx, location, body)
}

// Open returns the content of a file.
func (s Schemes) Open(ctx context.Context, location string) (io.ReadCloser, Info, error) {
	store, err := s.storeOf(ctx, location)
	if err != nil {
		return nil, Info{}, err
	}
	return store.Open(ctx, location)
}

// ReadRange returns a part of a file.
func (s Schemes) ReadRange(ctx context.Context, location string, offset, length int64) ([]byte, error) {
	store, err := s.storeOf(ctx, location)
	if err != nil {
		return nil, err
	}
	return store.ReadRange(ctx, location, offset, length)
}

// Stat describes a file.
func (s Schemes) Stat(ctx context.Context, location string) (Info, error) {
	store, err := s.storeOf(ctx, location)
	if err != nil {
		return Info{}, err
	}
	return store.Stat(ctx, location)
}

// Delete removes files.
func (s Schemes) Delete(ctx context.Context, locations ...string) error {
	var failures []error
	byScheme := make(map[string][]string)
	for _, location := range locations {
		parsed, err := ParseFile(location)
		if err == nil && s[parsed.Scheme] == nil {
			err = outside(location)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		byScheme[parsed.Scheme] = append(byScheme[parsed.Scheme], location)
	}
	for scheme, group := range byScheme {
		failures = append(failures, s[scheme].Delete(ctx, group...))
	}
	return errors.Join(append(failures, ctx.Err())...)
}

// MakeFolder makes a folder if the store has folders.
func (s Schemes) MakeFolder(ctx context.Context, location string) error {
	store, err := s.storeOf(ctx, location)
	if err != nil {
		return err
	}
	if folders, ok := store.(Folders); ok {
		return folders.MakeFolder(ctx, location)
	}
	return reach(ctx, store, location)
}

// RemoveEmptyFolder removes a folder if the store has folders.
func (s Schemes) RemoveEmptyFolder(ctx context.Context, location string, age time.Duration) (bool, error) {
	store, err := s.storeOf(ctx, location)
	if err != nil {
		return false, err
	}
	if folders, ok := store.(Folders); ok {
		return folders.RemoveEmptyFolder(ctx, location, age)
	}
	return false, reach(ctx, store, location)
}

// reach returns ErrOutside if location is outside store's roots, which only the store knows. No
// file needs to exist at location.
func reach(ctx context.Context, store Store, location string) error {
	if _, err := store.Stat(ctx, location); errors.Is(err, ErrOutside) {
		return err
	}
	return ctx.Err()
}

// List lists the files below a folder with the store of the folder's scheme.
func (s Schemes) List(ctx context.Context, folder, after string, limit int) (Page, error) {
	store, err := s.storeOf(ctx, folder)
	if err != nil {
		return Page{}, err
	}
	lister, ok := store.(Lister)
	if !ok {
		return Page{}, fmt.Errorf("list %s: %w", folder, errors.ErrUnsupported)
	}
	return lister.List(ctx, folder, after, limit)
}

// MayBeGone calls the method of the store for location's scheme.
func (s Schemes) MayBeGone(location string) bool {
	parsed, err := ParseFile(location)
	if err != nil {
		return false
	}
	local, ok := s[parsed.Scheme].(Local)
	return ok && local.MayBeGone(location)
}

// Probe probes all stores in s that implement Prober.
func (s Schemes) Probe(ctx context.Context) error {
	var failures []error
	for _, scheme := range slices.Sorted(maps.Keys(s)) {
		if prober, ok := s[scheme].(Prober); ok {
			failures = append(failures, prober.Probe(ctx))
		}
	}
	return errors.Join(failures...)
}

// Features returns the features of all stores in s.
func (s Schemes) Features() (features []Feature) {
	for _, scheme := range slices.Sorted(maps.Keys(s)) {
		if featured, ok := s[scheme].(Featured); ok {
			features = append(features, featured.Features()...)
		}
	}
	return features
}

// ClientConfig returns the settings of all stores in s. The names of settings differ by scheme.
func (s Schemes) ClientConfig() map[string]string {
	var config map[string]string
	for _, store := range s {
		if remote, ok := store.(Remote); ok {
			if config == nil {
				config = make(map[string]string)
			}
			maps.Copy(config, remote.ClientConfig())
		}
	}
	return config
}

// storeOf returns the store of location's scheme.
func (s Schemes) storeOf(ctx context.Context, location string) (Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", location, err)
	}
	parsed, err := ParseFile(location)
	if err != nil {
		return nil, err
	}
	store, ok := s[parsed.Scheme]
	if !ok {
		return nil, outside(location)
	}
	return store, nil
}

func outside(location string) error { return fmt.Errorf("%w: %s", ErrOutside, location) }

var (
	_ Store    = (Schemes)(nil)
	_ Folders  = (Schemes)(nil)
	_ Local    = (Schemes)(nil)
	_ Remote   = (Schemes)(nil)
	_ Lister   = (Schemes)(nil)
	_ Featured = (Schemes)(nil)
)
