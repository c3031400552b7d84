package postgres

import (
	"cmp"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"moorage/registry"
)

// warned is the key in a connection's custom data under which a warning of the server is noted.
const warned = "moorage warned"

// noteWarning notes a warning of the server. The driver calls it when it comes to the warning among
// the server's messages.
func noteWarning(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if cmp.Or(notice.SeverityUnlocalized, notice.Severity) == "WARNING" {
		conn.CustomData()[warned] = notice
	}
}

// forgetWarnings makes batch forget the warnings that come up to the end of its last statement.
// They say nothing about its commit: a server whose transaction ids run out warns with each that it
// gives, and commits. The warning about a standby that the server did not wait for comes behind the
// end of the last statement. Its text and its code do not distinguish it from others.
func forgetWarnings(conn *pgconn.PgConn, batch *pgx.Batch) {
	delete(conn.CustomData(), warned)
	if len(batch.QueuedQueries) == 0 {
		return
	}
	last := batch.QueuedQueries[len(batch.QueuedQueries)-1]
	read := last.Fn
	if read == nil {
		read = func(results pgx.BatchResults) error {
			_, err := results.Exec()
			return err
		}
	}
	last.Fn = func(results pgx.BatchResults) error {
		err := read(results)
		delete(conn.CustomData(), warned)
		return err
	}
}

// commitWarning returns ErrUnknown if the server warned since forgetWarnings, which is when it
// committed.
func commitWarning(conn *pgconn.PgConn) error {
	notice, ok := conn.CustomData()[warned].(*pgconn.Notice)
	if !ok {
		return nil
	}
	return fmt.Errorf("%w: the server warned while it committed: %v", registry.ErrUnknown, notice)
}
