package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"moorage/registry"
)

// SQLSTATEs that mean something to an Apply. Source: PostgreSQL, appendix "Error Codes".
const (
	stateDivisionByZero       = "22012" // a guard
	stateUniqueViolation      = "23505"
	stateSerializationFailure = "40001"
	stateCompletionUnknown    = "40003"
	stateDeadlockDetected     = "40P01"
)

// stateOf returns the SQLSTATE of an error that the server answered, "" of any other.
func stateOf(err error) string {
	var answered *pgconn.PgError
	if errors.As(err, &answered) {
		return answered.Code
	}
	return ""
}

// failure gives the failure of a pipeline its kind; found are the rows that it locked.
func (p *plan) failure(ctx context.Context, err error, found map[registry.Key]registry.Record) error {
	var answered *pgconn.PgError
	if !errors.As(err, &answered) {
		return unansweredError(ctx, err)
	}
	if answered.SeverityUnlocalized != "ERROR" || answered.Code == stateCompletionUnknown {
		return fmt.Errorf("%w: %w", registry.ErrUnknown, err)
	}
	switch answered.Code {
	case stateDivisionByZero:
		for i, c := range p.batch.Conditions {
			if !c.Met(found[c.Key]) {
				return &registry.FailedError{Index: i, Condition: c}
			}
		}
		return fmt.Errorf("%w: %w", errSendAgain, err) // a row appeared after the rows were locked
	case stateUniqueViolation, stateSerializationFailure, stateDeadlockDetected:
		return fmt.Errorf("%w: %w", errSendAgain, err)
	}
	return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
}

// unansweredError is the failure of a pipeline to which the server gave no answer.
func unansweredError(ctx context.Context, err error) error {
	if pgconn.SafeToRetry(err) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", registry.ErrUnknown, ctx.Err())
	}
	return fmt.Errorf("%w: %w", registry.ErrUnknown, err)
}
