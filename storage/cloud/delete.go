package cloud

import (
	"errors"

	"moorage/storage"
)

// Located returns the objects at locations, for use in Delete. It leaves out locations for which
// locate returns ErrNotFound, because no object can have such a name. It returns all other errors.
func Located[T any](locations []string, locate func(location string) (T, error)) (objects []T, failures []error) {
	for _, location := range locations {
		object, err := locate(location)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			failures = append(failures, err)
		default:
			objects = append(objects, object)
		}
	}
	return objects, failures
}

// Deleted is the result of one request for several deletions.
type Deleted[T any] struct {
	// Again lists the objects whose deletion failed temporarily. Passing has an error for each of
	// them.
	Again   []T
	Passing []error
	// Lasting holds the errors for the objects whose deletion failed permanently.
	Lasting []error
}

// Resend sends a batch of deletions with send. It repeats deletions that failed temporarily, with
// at most attemptsMax requests in all. It calls pause between two requests, with the number of the
// first of the two. An error from pause or send ends Resend. The result has an error for each
// object that was not deleted.
func Resend[T any](batch []T, attemptsMax int, pause func(attempt int) error,
	send func(batch []T) (Deleted[T], error),
) []error {
	var lasting []error
	for attempt := 0; ; attempt++ {
		deleted, err := send(batch)
		if err != nil {
			return append(lasting, err)
		}
		lasting = append(lasting, deleted.Lasting...)
		batch = deleted.Again
		if len(batch) == 0 || attempt == attemptsMax-1 || pause(attempt) != nil {
			return append(lasting, deleted.Passing...)
		}
	}
}
