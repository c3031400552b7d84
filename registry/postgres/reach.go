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

// Reach returns nil if the database that dsn names lets this program in and accepts writes. It asks
// once, and changes nothing. IsAway reports of an error whether it may pass by itself.
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

// IsAway reports whether err, of Reach, says that no server is there, or that none takes
// connections and writes at the moment. It is false of an error by which the server refuses this
// program for good, such as a wrong password.
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
