package commit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/catalog/activity"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/internal/trace"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

// Time limits of an intent.
const (
	// RequestTimeout bounds one intent, from its first attempt to its last.
	RequestTimeout = 30 * time.Second
	// SettleTimeout bounds the lookup of the outcome of one Apply whose answer was lost.
	SettleTimeout = 10 * time.Second
)

// Config holds the parts and settings of a Pipeline. Fields without a default are required. Fields
// of the same name in catalog.Config have the same meaning.
type Config struct {
	Gate      gate.Authorizer
	Ledger    *ledger.Ledger
	Locks     locks.Manager
	Directory *directory.Directory
	Claims    *claims.Claims
	Documents *documents.Documents
	Now       func() time.Time
	Logger    *slog.Logger

	IdempotencyLifetime time.Duration
	TransactionWait     time.Duration // of a transaction
	AbortPending        bool
	KickPurge           func()
	KickRecovery        func()
	StagedFolder        func(warehouse string, store storage.Folders, location string)
	// CommitGroup is the maximum number of commits of one table or view that share one version.
	// Default CommitGroupDefault.
	CommitGroup int
	// Carried is called with the number of commits that share a new version. Default: does nothing.
	Carried func(commits int)
	// RaceLost is called with a pointer on which an edit lost the compare-and-set. It must not
	// block. Default: does nothing.
	RaceLost func(pointer registry.ID)
	// Activity records how commits ended. Default: a new Activity.
	Activity *activity.Activity
	// Moved is called with the number of commits in a new version that were moved on top of a newer
	// base. Default: does nothing.
	Moved func(commits int)

	// TransactionBytes bounds the metadata of one transaction. Default: the maximum of two tables.
	TransactionBytes int64
}

// Pipeline carries out intents. It is safe for concurrent use.
type Pipeline struct {
	gate      gate.Authorizer
	ledger    *ledger.Ledger
	locks     locks.Manager
	directory *directory.Directory
	claims    *claims.Claims
	documents *documents.Documents
	now       func() time.Time
	log       *slog.Logger

	// The fields of Config.
	idempotencyLifetime, transactionWait time.Duration
	abortPending                         bool
	kickPurge, kickRecovery              func()
	stagedFolder                         func(warehouse string, store storage.Folders, location string)
	commitGroup                          int
	carried, moved                       func(commits int)
	raceLost                             func(pointer registry.ID)
	transactionBytes                     int64

	activity     *activity.Activity
	transactions *txlog.Log
	leases       leaseReader
	queue        *queue
	// transactionQueue holds transactions that wait for other transactions with locks on their
	// tables.
	transactionQueue *queue
	inflight         *inflight
	refusals         refusals
	lockTimes        locks.Timeouts
	startedAt        time.Time

	lastDeadScan atomic.Pointer[time.Time] // time of the last scan for dead transactions; nil before the first
}

// New returns a pipeline over the parts of config.
func New(config Config) *Pipeline {
	if config.TransactionBytes <= 0 {
		config.TransactionBytes = transactionBytesMax
	}
	if config.CommitGroup <= 0 {
		config.CommitGroup = CommitGroupDefault
	}
	if config.Carried == nil {
		config.Carried = func(int) {}
	}
	if config.RaceLost == nil {
		config.RaceLost = func(registry.ID) {}
	}
	if config.Moved == nil {
		config.Moved = func(int) {}
	}
	if config.Activity == nil {
		config.Activity = activity.New(config.Now())
	}
	return &Pipeline{
		gate: config.Gate, ledger: config.Ledger, locks: config.Locks, directory: config.Directory,
		claims: config.Claims, documents: config.Documents, now: config.Now, log: config.Logger,
		idempotencyLifetime: config.IdempotencyLifetime, transactionWait: config.TransactionWait,
		abortPending: config.AbortPending, kickPurge: config.KickPurge, kickRecovery: config.KickRecovery,
		stagedFolder: config.StagedFolder,
		commitGroup:  config.CommitGroup, carried: config.Carried, moved: config.Moved, raceLost: config.RaceLost,
		transactionBytes: config.TransactionBytes,

		activity:     config.Activity,
		transactions: txlog.New(config.Ledger),
		leases:       leaseReader{config.Ledger},
		queue:        newQueue(),

		transactionQueue: newQueue(),
		inflight:         newInflight(),
		lockTimes:        locks.NewTimeouts(),
		startedAt:        config.Now(),
	}
}

// Waiting reports whether commits of the pointer wait for their turn on this node.
func (p *Pipeline) Waiting(pointer registry.ID) bool { return p.queue.waiting(pointer) }

// Submit carries out an intent, and returns when its effect is durable. If the key of an intent has
// an outcome, the intent changes nothing, and gets the earlier answer.
//
// Errors: the errors of the gate and of the plan. KindUnavailable: nothing was and nothing will be
// applied. KindCommitFailed: nothing was applied, because other commits won every race.
// KindCommitUnknown: the intent may have been applied. KindUnprocessable if the key was used for
// another request.
func (p *Pipeline) Submit(ctx context.Context, intent Intent) (outcome Outcome, err error) {
	ctx, span := trace.Start(ctx, "catalog.", string(intent.Verb))
	span.On(intent.On...)
	defer func() { span.End(err) }()
	w := &work{Intent: intent}
	w.row, _ = intent.Verb.Row()
	request := gate.Request{Caller: intent.Caller, Verb: intent.Verb, On: intent.On, Done: w.done}
	err = gate.Pass(ctx, p.gate, request, func() (err error) {
		if intent.Key == nil {
			outcome, err = p.run(ctx, w)
			return err
		}
		w.key = p.ledgerKey(intent.Caller, *intent.Key)
		outcome, err = p.runWithKey(ctx, w)
		return err
	})
	return outcome, err
}

// run carries out w in the lane of its verb.
func (p *Pipeline) run(ctx context.Context, w *work) (outcome Outcome, err error) {
	if w.Silent {
		defer func() { outcome = Outcome{} }()
	}
	if len(w.Edits) > 0 {
		began := p.now()
		defer func() { err = p.note(ctx, w, began, err) }()
	}
	switch {
	case len(w.Edits) == 0:
		return p.runLocked(ctx, w)
	case len(w.Edits) > 1:
		return Outcome{}, p.runTransaction(ctx, w)
	case w.Edits[0].Create != nil:
		outcome, err := p.runLocked(ctx, w)
		if moorage.KindOf(err) == moorage.KindCommitFailed && !w.hasClientKey() {
			if made := p.madeBefore(ctx, w.Edits[0]); made != nil {
				return Outcome{Version: made}, nil
			}
		}
		return outcome, err
	}
	return p.runEdit(ctx, w)
}

// madeBefore returns the table that an earlier attempt of the same request created, if the client
// lost the answer. It returns nil if there is no such table. If another request created the table,
// the request fails with status 409. Source: REST specification, updateTable.
func (p *Pipeline) madeBefore(ctx context.Context, target Target) *Version {
	ctx, cancel := moorage.Detached(ctx, RequestTimeout)
	defer cancel()
	found, present, err := p.documents.Find(ctx, target.Kind, target.Ident)
	if err != nil || !target.MadeBefore(present) {
		return nil
	}
	return VersionOf(found, target.Ident, present)
}

// apply applies a mutation that carries out effects. The same Apply writes the outcomes of their
// keys. Preparatory steps and the server's own work use the ledger directly. The results are the
// same as from Ledger.Apply.
func (p *Pipeline) apply(ctx context.Context, mutation ledger.Mutation, effects ...effect) ([]registry.ETag, error) {
	for _, e := range effects {
		if e.key == nil {
			continue
		}
		answer := ledger.Answer{Key: e.key}
		if !e.Silent {
			answer.Outcome = e.answer.record()
		}
		mutation.Answers = append(mutation.Answers, answer)
	}
	for _, e := range effects {
		if err := p.leases.fence(ctx, e.work, &mutation); err != nil {
			return nil, err
		}
	}
	applying, span := trace.Start(ctx, "apply")
	etags, err := p.ledger.Apply(applying, mutation)
	span.End(err)
	for _, e := range effects {
		if err != nil {
			continue
		}
		e.applied, e.happened = true, mutation.Change
		if version := e.answer.Version; version != nil {
			e.noteHead(version.Pointer, version.Document)
		}
	}
	return etags, err
}
