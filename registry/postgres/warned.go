package postgres

import (
	"cmp"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"moorage/registry"
)

// warned is the key of a warning of the server in a connection's custom data.
const warned = "moorage warned"

// noteWarning records a warning of the server. The driver calls it when it reads the warning from
// the server's messages.
func noteWarning(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if cmp.Or(notice.SeverityUnlocalized, notice.Severity) == "WARNING" {
		conn.CustomData()[warned] = notice
	}
}

// forgetWarnings makes batch discard the warnings that arrive before the end of its last statement.
// Such warnings do not concern the commit: for example, a server that runs out of transaction ids
// warns in each transaction, but commits it. The warning that the server did not wait for a standby
// arrives after the end of the last statement. Its text and code do not distinguish it from other
// warnings.
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

// commitWarning returns ErrUnknown if a warning has arrived that forgetWarnings did not discard.
// Such a warning arrived during the commit.
func commitWarning(conn *pgconn.PgConn) error {
	notice, ok := conn.CustomData()[warned].(*pgconn.Notice)
	if !ok {
		return nil
	}
	return fmt.Errorf("%w: the server warned while it committed: %v", registry.ErrUnknown, notice)
}
