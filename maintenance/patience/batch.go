package patience

import (
	"context"
	"errors"
	"fmt"
	"time"

	"moorage/storage"
)

// LookMax is how long after a look the files that it released may be deleted.
const LookMax = 20 * time.Second

// errOldLook ends a deletion whose look is too old.
var errOldLook = errors.New("patience: the look before the deletion is too old")

// Batch calls do until it has handled all of batch. do calls look when it begins to check whether
// the files may go, and deletes under the context from look. That context ends after limit, by the
// monotonic clock. If it ended the deletion, Batch calls do for the same files again, with fewer at
// a time. So do checks again, and may find files that are already gone.
//
// The error is a storage.ErrUnavailable if one file alone takes longer.
func Batch[F any](ctx context.Context, limit time.Duration, batch []F,
	do func(part []F, look func() context.Context) error) error {
	for size, alone := len(batch), 0; len(batch) > 0; {
		part := batch[:min(size, len(batch))]
		within, cancel := ctx, context.CancelFunc(func() {})
		err := do(part, func() context.Context {
			cancel()
			within, cancel = context.WithTimeoutCause(ctx, limit, errOldLook)
			return within
		})
		old := err != nil && errors.Is(context.Cause(within), errOldLook)
		cancel()
		switch {
		case !old && err != nil:
			return err
		case !old:
			batch, alone = batch[len(part):], 0
		case len(part) > 1:
			size = (len(part) + 3) / 4
		case alone == 2: // a look that reads much may take that long once, but not repeatedly
			return fmt.Errorf("%w: it did not delete a file within %s: %w", storage.ErrUnavailable, limit, err)
		default:
			alone++
		}
	}
	return nil
}
