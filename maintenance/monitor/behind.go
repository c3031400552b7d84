package monitor

import (
	"context"
	"time"
)

const (
	// warnTenths and passTenths are parts of the retention of changes. If the monitor is further
	// behind, it logs a warning, or checks all tables instead of reading on.
	warnTenths, walkTenths = 5, 8
	// warnPause is the time between two warnings.
	warnPause = time.Hour
)

// fallBehind checks how far behind the monitor is, after it has read a change that was made at a
// time, with more changes to come. Changes that are older than the retention are deleted. Long
// before that the monitor checks all tables, which replaces the unread changes.
func (f *following) fallBehind(ctx context.Context, made time.Time) error {
	now, retention := f.config.Now(), f.config.Retention
	lag := now.Sub(made)
	if retention <= 0 || lag < retention/10*warnTenths {
		return nil
	}
	if lag >= retention/10*walkTenths {
		f.log.WarnContext(ctx, "maintenance: changes will be deleted before they are read, so all tables are looked at",
			"behind", lag, "retention", retention)
		return f.walkAll(ctx, "lag")
	}
	if now.Sub(f.warned) >= warnPause || now.Before(f.warned) {
		f.warned = now
		f.log.WarnContext(ctx, "maintenance is far behind the changes; see moorage_maintenance_lag_seconds",
			"behind", lag, "retention", retention)
	}
	return nil
}
