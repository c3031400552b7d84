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
	"moorage/internal/trace"
	"moorage/internal/worker"
	"moorage/registry"
)

// settleTimeout bounds the lookup of the outcome of one Apply whose answer was lost.
const settleTimeout = 10 * time.Second

// Config configures Deps. All fields but Alone, Applied and Tracer are required.
type Config struct {
	Store registry.Store
	// Alone is true if no other process uses the store. Then this process need not wait for the
	// assignments of an earlier process to end.
	Alone  bool
	Now    func() time.Time
	Random io.Reader // ids and jitter; safe for concurrent use
	Logger *slog.Logger
	// Applied is called after each successful mutation. It must not block. It may be nil.
	Applied func()
	// Tracer makes the spans of work in the background. It may be nil.
	Tracer *trace.Tracer
}

// Deps is shared by all parts of a process that work on one store: a ledger, a name, and a clock.
type Deps struct {
	Config
	Ledger *Ledger
	// Owner is the name of the process in its assignments.
	Owner registry.ID
}

// Ledger reads and writes the records of a store. It is the only caller of registry.Store.Apply. It
// is safe for concurrent use.
type Ledger struct {
	store  registry.Store
	now    func() time.Time
	random io.Reader
	log    *slog.Logger

	applied func()
	// SettleTimeout bounds the lookup of the outcome of one Apply whose answer was lost. Set it
	// before the first use. Default 10 s.
	SettleTimeout time.Duration

	jitterMu sync.Mutex // guards jitter, which callers share; no lock is taken under it
	jitter   *rand.Rand
}

// New returns a Deps with a ledger over the store of config. It fails if a required field is
// missing, or if the source of random bits fails.
func New(config Config) (Deps, error) {
	if config.Store == nil || config.Now == nil || config.Random == nil || config.Logger == nil {
		return Deps{}, errors.New("ledger: Store, Now, Random and Logger are required")
	}
	if config.Applied == nil {
		config.Applied = func() {}
	}
	jitter, err := NewJitter(config.Random)
	if err != nil {
		return Deps{}, fmt.Errorf("seed the jitter: %w", err)
	}
	owner := registry.ID{15: 1} // constant, so that this process owns its predecessor's assignments
	if !config.Alone {
		if owner, err = registry.NewID(config.Random); err != nil {
			return Deps{}, fmt.Errorf("draw the owner of assignments: %w", err)
		}
	}
	return Deps{config, &Ledger{
		store: config.Store, now: config.Now, random: config.Random, log: config.Logger,
		SettleTimeout: settleTimeout, jitter: jitter, applied: config.Applied,
	}, owner}, nil
}

// Assigner returns an Assigner for the process.
func (d Deps) Assigner() *Assigner { return NewAssigner(d.Store, d.Owner) }

// NewJitter seeds a generator of pauses from random.
func NewJitter(random io.Reader) (*rand.Rand, error) {
	var seed [32]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return nil, err
	}
	return rand.New(rand.NewChaCha8(seed)), nil
}

// NewID draws an ID. If the source of random bits fails, the error is KindInternal.
func (l *Ledger) NewID() (registry.ID, error) {
	id, err := registry.NewID(l.random)
	return id, moorage.E("ledger.NewID", "", moorage.KindInternal, err)
}

// NewUUID draws a UUID. If the source of random bits fails, the error is KindInternal.
func (l *Ledger) NewUUID() (string, error) {
	id, err := uuid.NewRandomFromReader(l.random)
	if err != nil {
		return "", moorage.E("ledger.NewUUID", "", moorage.KindInternal, err)
	}
	return id.String(), nil
}

// NewChange begins a mutation: it draws the commit id and records the caller, the operation and its
// object.
func (l *Ledger) NewChange(ctx context.Context, caller moorage.Caller, operation string, ident moorage.Identifier) (
	registry.Change, error) {
	id, err := l.NewID()
	if err != nil {
		return registry.Change{}, err
	}
	return registry.Change{
		ID: id, Operation: operation, Ident: ident,
		Principal: caller.Name, Client: caller.Client, RequestID: moorage.RequestID(ctx),
		TraceID: moorage.TraceID(ctx), Time: l.now(),
	}, nil
}

// Pause waits a random time between two attempts: up to 2 ms after the first attempt, then twice as
// long each time, up to 100 ms. It returns the error of ctx if ctx ends first.
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

// ErrRetry means that one attempt of an operation changed nothing, because a record changed between
// its reads and its Apply. The operation starts again with its reads.
var ErrRetry = errors.New("ledger: a record changed meanwhile")

// Retry calls the function try until it returns nil or an error other than ErrRetry, or until ctx
// ends. If ctx ends first, Retry returns an error of the kind in exhausted, which must be a kind
// that means that nothing was applied.
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

// IgnoreRetry turns ErrRetry into nil, for callers that retry in any case.
func IgnoreRetry(err error) error {
	if errors.Is(err, ErrRetry) {
		return nil
	}
	return err
}
