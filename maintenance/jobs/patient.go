package jobs

import (
	"context"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/maintenance/patience"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// patientTables are tables whose storages are waited for no longer than limit.
type patientTables struct {
	Tables
	limit time.Duration
}

// over returns version with a storage that is waited for no longer.
func (t *patientTables) over(version *catalog.Version) *catalog.Version {
	if version == nil || version.Storage == nil {
		return version
	}
	patient := *version
	patient.Storage = patience.Over(version.Storage, t.limit)
	return &patient
}

// Tend implements Tables.
func (t *patientTables) Tend(ctx context.Context, pointer registry.ID, tending catalog.Tending) (
	version *catalog.Version, changed bool, err error) {
	err = patience.Call(ctx, t.limit, func(ctx context.Context) (err error) {
		version, changed, err = t.Tables.Tend(ctx, pointer, tending)
		return err
	})
	return t.over(version), changed, err
}

// TableByID implements Tables.
func (t *patientTables) TableByID(ctx context.Context, pointer registry.ID) (
	version *catalog.Version, table registry.Pointer, err error) {
	err = patience.Call(ctx, t.limit, func(ctx context.Context) (err error) {
		version, table, err = t.Tables.TableByID(ctx, pointer)
		return err
	})
	return t.over(version), table, err
}

// Find implements Tables.
func (t *patientTables) Find(ctx context.Context, ident moorage.Identifier) (found registry.ID, err error) {
	err = patience.Call(ctx, t.limit, func(ctx context.Context) (err error) {
		found, err = t.Tables.Find(ctx, ident)
		return err
	})
	return found, err
}

// WarehouseLocation implements Tables.
func (t *patientTables) WarehouseLocation(ctx context.Context, warehouse string) (
	location string, store storage.Store, err error) {
	err = patience.Call(ctx, t.limit, func(ctx context.Context) (err error) {
		location, store, err = t.Tables.WarehouseLocation(ctx, warehouse)
		return err
	})
	if err == nil {
		store = patience.Over(store, t.limit)
	}
	return location, store, err
}

// WithDropped implements Tables. What do itself does has no bound.
func (t *patientTables) WithDropped(ctx context.Context, pointer registry.Pointer, state registry.State,
	do func(*catalog.Version) error) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(t.limit, func() { cancel(patience.ErrStalled) })
	defer timer.Stop()
	return t.Tables.WithDropped(within, pointer, state, func(version *catalog.Version) error {
		timer.Stop()
		return do(t.over(version))
	})
}

// Unregistered implements Tables.
func (t *patientTables) Unregistered(ctx context.Context, warehouse, location string) (
	document *metadata.Document, err error) {
	err = patience.Call(ctx, t.limit, func(ctx context.Context) (err error) {
		document, err = t.Tables.Unregistered(ctx, warehouse, location)
		return err
	})
	return document, err
}
