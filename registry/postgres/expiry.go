package postgres

import (
	"context"
	"fmt"
	"time"

	"moorage/registry"
)

var _ registry.Expirer = (*Store)(nil)

// Expired implements registry.Expirer.
func (s *Store) Expired(ctx context.Context, before time.Time, limit int) ([]registry.Record, error) {
	if err := registry.CheckPage(limit); err != nil {
		return nil, err
	}
	sql := fmt.Sprintf("SELECT %d::smallint, key, etag, state, ''::bytea FROM moorage_idempotency WHERE expires "+
		"< $1::timestamptz ORDER BY expires LIMIT $2::bigint",
		registry.TableIdempotency)
	return s.records(ctx, sql, []any{before, limit})
}

// Undated implements registry.Expirer.
func (s *Store) Undated(ctx context.Context, after string, limit int) ([]registry.Record, error) {
	if err := registry.CheckPage(limit); err != nil {
		return nil, err
	}
	page := fmt.Sprintf("SELECT %d::smallint AS source, key, etag, state, value FROM moorage_idempotency WHERE "+
		"expires IS NULL AND key > $1::bytea "+
		"ORDER BY key LIMIT $2::bigint", registry.TableIdempotency)
	return s.records(ctx, withinBytes(page, 3), []any{[]byte(after), limit, registry.ListBytesMax})
}
