package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"moorage"
	"moorage/internal/worker"
	"moorage/registry"
)

// settleTimeout bounds how long the outcome of one Apply is looked for.
const settleTimeout = 10 * time.Second

// Config is what Deps are made of. All fields but Alone are required.
type Config struct {
	Store registry.Store
	// Alone says that no other process uses the store. Then the claims of an earlier process do not
	// hold up this one.
	Alone  bool
	Now    func() time.Time
	Random io.Reader // ids and jitter; safe for concurrent use
	Logger *slog.Logger
}

// Deps is what all parts of a process share that work on one store: a ledger, a name, and a clock.
type Deps struct {
	Config
	Ledger *Ledger
	// Owner is what the process is called in its claims.
	Owner registry.ID
}

// Ledger reads and writes the records of a store. It is the only caller of registry.Store.Apply. It
// is safe for concurrent use.
type Ledger struct {
	store  registry.Store
	now    func() time.Time
	random io.Reader
	log    *slog.Logger
	// SettleTimeout bounds how long the outcome of one Apply is looked for. Set it before the first
	// use. Default 10 s.
	SettleTimeout time.Duration

	jitterMu sync.Mutex // guards jitter, which is not safe for concurrent use; a leaf
	jitter   *rand.Rand
}

// New returns a ledger over the store of config, and what belongs to it. It fails if a required
// field is missing, or if the source of random bits fails.
func New(config Config) (Deps, error) {
	if config.Store == nil || config.Now == nil || config.Random == nil || config.Logger == nil {
		return Deps{}, errors.New("ledger: Store, Now, Random and Logger are required")
	}
	jitter, err := NewJitter(config.Random)
	if err != nil {
		return Deps{}, fmt.Errorf("seed the jitter: %w", err)
	}
	owner := registry.ID{15: 1} // always the same, so that the claims of an earlier process are its own
	if !config.Alone {
		if owner, err = registry.NewID(config.Random); err != nil {
			return Deps{}, fmt.Errorf("draw the owner of claims: %w", err)
		}
	}
	return Deps{config, &Ledger{
		store: config.Store, now: config.Now, random: config.Random, log: config.Logger,
		SettleTimeout: settleTimeout, jitter: jitter,
	}, owner}, nil
}

// Claimer returns a Claimer for the process.
func (d Deps) Claimer() *Claimer { return NewClaimer(d.Store, d.Owner) }

// NewJitter seeds a generator of pauses from random.
func NewJitter(random io.Reader) (*rand.Rand, error) {
	var seed [32]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return nil, err
	}
	return rand.New(rand.NewChaCha8(seed)), nil
}

// NewID draws an id. An error of the source of random bits is KindInternal.
func (l *Ledger) NewID() (registry.ID, error) {
	id, err := registry.NewID(l.random)
	return id, moorage.E("ledger.NewID", "", moorage.KindInternal, err)
}

// NewUUID draws a UUID. An error of the source of random bits is KindInternal.
func (l *Ledger) NewUUID() (string, error) {
	id, err := uuid.NewRandomFromReader(l.random)
	if err != nil {
		return "", moorage.E("ledger.NewUUID", "", moorage.KindInternal, err)
	}
	return id.String(), nil
}

// NewChange begins a mutation: it draws the commit id and says who does what to which object.
func (l *Ledger) NewChange(ctx context.Context, caller moorage.Caller, operation string, ident moorage.Identifier) (
	registry.Change, error) {
	id, err := l.NewID()
	if err != nil {
		return registry.Change{}, err
	}
	return registry.Change{
		ID: id, Operation: operation, Ident: ident,
		Principal: caller.Name, Client: caller.Client, RequestID: moorage.RequestID(ctx), Time: l.now(),
	}, nil
}

// Pause waits between two attempts: up to 2 ms after the first, doubling to 100 ms. It returns the
// error of ctx if that ends first.
func (l *Ledger) Pause(ctx context.Context, attempt int) error {
	limit := min(2*time.Millisecond<<min(attempt, 10), 100*time.Millisecond)
	l.jitterMu.Lock()
	wait := time.Duration(l.jitter.Int64N(int64(limit)))
	l.jitterMu.Unlock()
	if !worker.Sleep(ctx, wait) {
		return ctx.Err()
	}
	return nil
}

// ErrRetry says that one attempt of an operation changed nothing, because a record changed
// meanwhile. The operation begins again with its reads.
var ErrRetry = errors.New("ledger: a record changed meanwhile")

// Retry calls try until it returns another error than ErrRetry, or ctx ends. Then it returns an
// error of kind exhausted, which must say that nothing was applied.
func (l *Ledger) Retry(ctx context.Context, exhausted moorage.Kind, try func(attempt int) error) error {
	for attempt := 0; ; attempt++ {
		err := try(attempt)
		if !errors.Is(err, ErrRetry) {
			return err
		}
		if l.Pause(ctx, attempt) != nil {
			return moorage.Errorf(exhausted,
				"Gave up after %d attempts: other changes were always faster; nothing was changed", attempt+1)
		}
	}
}

// RetryOnConflict turns a failed condition into ErrRetry.
func RetryOnConflict(err error) error {
	if _, failed := registry.FailedCondition(err); failed {
		return ErrRetry
	}
	return err
}

// IgnoreRetry turns ErrRetry into nil, for callers that look again in any case.
func IgnoreRetry(err error) error {
	if errors.Is(err, ErrRetry) {
		return nil
	}
	return err
}
