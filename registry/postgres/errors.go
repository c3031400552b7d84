package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"moorage/registry"
)

// ErrConnectionString means that a connection string is not valid. It does not quote the string,
// which may contain a password.
var ErrConnectionString = errors.New("it is neither postgres://USER@HOST:PORT,HOST:PORT/DATABASE?NAME=VALUE nor " +
	"NAME=VALUE pairs, or a value is not allowed")

// SQLSTATEs that this package handles. Source: PostgreSQL, appendix "Error Codes".
const (
	stateDivisionByZero       = "22012" // a guard
	stateUniqueViolation      = "23505"
	stateReadOnly             = "25006" // a primary has become a standby
	stateUndefinedStatement   = "26000"
	stateSerializationFailure = "40001"
	stateCompletionUnknown    = "40003"
	stateDeadlockDetected     = "40P01"
	stateUndefinedTable       = "42P01"
	stateDuplicateStatement   = "42P05"
	stateDuplicateTable       = "42P07"
	stateUndefinedObject      = "42704"
	stateDuplicateObject      = "42710" // the row type of each table
	stateLockNotAvailable     = "55P03" // a lock was not available within lock_timeout
	stateInternalError        = "XX000" // also when two sessions changed one row of the server's catalogs
	classConnection           = "08"    // a proxy has lost its server; 08007 is "resolution unknown"
	classResources            = "53"    // such as too many connections
	classOperator             = "57P"   // the server starts or stops
)

// stateOf returns the SQLSTATE of an error that the server returned, and "" for any other error.
func stateOf(err error) string {
	var answered *pgconn.PgError
	if errors.As(err, &answered) {
		return answered.Code
	}
	return ""
}

// severityOf returns the severity of the server's answer. It is in English if the server also sends
// the untranslated form.
func severityOf(answered *pgconn.PgError) string {
	return cmp.Or(answered.SeverityUnlocalized, answered.Severity)
}

// undone reports whether the server's answer means for certain that the transaction was rolled
// back.
func undone(answered *pgconn.PgError) bool {
	return severityOf(answered) == "ERROR" && answered.Code != stateCompletionUnknown &&
		!strings.HasPrefix(answered.Code, classConnection)
}

// failure returns the error for a pipeline that failed with err. If a statement failed at a guard,
// or because of a row with the same key, the error comes from the function named.
func failure(ctx context.Context, err error, named func(*pgconn.PgError) error) error {
	var answered *pgconn.PgError
	if !errors.As(err, &answered) || !undone(answered) {
		return unknownError(ctx, err)
	}
	switch answered.Code {
	case stateDivisionByZero, stateUniqueViolation:
		return named(answered)
	case stateSerializationFailure, stateDeadlockDetected, stateReadOnly:
		return fmt.Errorf("%w: %w", errSendAgain, err)
	}
	if ctx.Err() != nil { // the server rolled the transaction back because the caller gave up
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", registry.ErrUnavailable, explain(err))
}

// failedCondition returns the first condition that did not hold as a *registry.FailedError. It
// returns errUnnamed if the rows do not show which one that is. The rows in found are locked, so
// they all had this state at the moment when the last row was locked. But a missing row may have
// appeared before that moment.
func (p *plan) failedCondition(found map[registry.Key]registry.Record) error {
	for i, c := range p.batch.Conditions {
		record := found[c.Key]
		if !c.Met(record) && (i == 0 || record.Exists()) {
			return &registry.FailedError{Index: i, Condition: c}
		}
		if !record.Exists() {
			break
		}
	}
	return errUnnamed
}

// unknownError is ErrUnknown, and also the error of ctx if ctx has ended.
func unknownError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w: %w", registry.ErrUnknown, ctx.Err(), err)
	}
	return fmt.Errorf("%w: %w", registry.ErrUnknown, err)
}
