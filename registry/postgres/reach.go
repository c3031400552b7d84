package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Reach returns nil if this program can connect to the database of dsn and the database accepts
// writes. It tries once, and changes nothing. IsAway reports whether an error from Reach may be
// temporary.
func Reach(ctx context.Context, dsn string) error {
	config, err := newConfig(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// IsAway reports whether err, from Reach, means that no server answers, or that the server accepts
// no connections or writes at the moment. It is false if the server refuses this program
// permanently, for example because of a wrong password.
func IsAway(err error) bool {
	var answered *pgconn.PgError
	if errors.As(err, &answered) {
		for _, class := range []string{classConnection, classResources, classOperator} {
			if strings.HasPrefix(answered.Code, class) {
				return true
			}
		}
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
