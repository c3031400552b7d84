package leases

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"moorage"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
)

// Bounds of leases.
const (
	// TTLDefault is the lifetime of a lease without a renewal, unless its holder sets a TTL.
	TTLDefault = 2 * time.Minute
	// TTLMin leaves a holder enough time even if an answer is slow. TTLMax is the longest time that
	// a dead holder blocks others.
	TTLMin, TTLMax = 10 * time.Second, time.Hour
	// WaitMax is the longest wait of a call for a lease.
	WaitMax = time.Minute
	// HoldsMax is the maximum number of leases on a table.
	HoldsMax = 256
	// HolderBytesMax is the maximum length of a holder's name.
	HolderBytesMax = 200
	// RenewMax is the maximum number of leases that one call renews.
	RenewMax = 1000

	pollFirst, pollMax = 50 * time.Millisecond, 2 * time.Second
	// releaseTimeout is the time limit of a release whose caller has disconnected.
	releaseTimeout = 5 * time.Second
)

// ScopeAll is the scope of the whole table.
const ScopeAll = "*"

var scopes = regexp.MustCompile(`^(\*|job:[a-z]{1,32}|part:[0-9a-f]{1,64})$`)

// ID names one lease.
type ID = registry.LeaseID

// Table is the pointer of a table.
type Table = registry.ID

// ParseID reads the name of a lease. An invalid name is KindBadRequest.
func ParseID(text string) (ID, error) {
	id, err := registry.ParseLeaseID(text)
	if err != nil {
		return id, moorage.Errorf(moorage.KindBadRequest, "Invalid lease: %w", err)
	}
	return id, nil
}

// Leases grants leases. It is safe for concurrent use.
type Leases struct{ ledger *ledger.Ledger }

// New returns leases that are kept in the store of l.
func New(l *ledger.Ledger) *Leases { return &Leases{l} }

// Request is a request for a lease.
type Request struct {
	Pointer registry.ID
	// Scope is ScopeAll, or "job:" and a kind, or "part:" and hexadecimal digits. ScopeAll
	// conflicts with every scope. Any other scope conflicts with itself and with ScopeAll.
	Scope  string
	Holder string        // the name that the holder gives itself
	TTL    time.Duration // zero means TTLDefault
	Wait   time.Duration // how long to wait for conflicting leases; at most WaitMax
	Job    registry.ID   // the job that the lease is for; zero if there is none
}

// Granted is a granted or existing lease.
type Granted struct {
	ID registry.LeaseID
	registry.Hold
}

// HeldError describes the lease that conflicts with a request.
type HeldError struct{ registry.Hold }

// Error returns a text with the holder, the scope and the expiry.
func (e *HeldError) Error() string {
	return fmt.Sprintf("The table is leased: %s has %s until %s", e.Holder, e.Scope,
		e.Expires.UTC().Format(time.RFC3339))
}

// Take grants a lease. It waits for conflicting leases if the request has a Wait.
//
// Errors: KindBadRequest; KindAlreadyExists with a *HeldError for the first conflicting lease;
// KindUnavailable; KindCommitUnknown. After KindCommitUnknown, the lease may exist. In that case it
// ends by itself.
func (s *Leases) Take(ctx context.Context, caller moorage.Caller, request Request) (Granted, error) {
	const op = "leases.Take"
	if err := request.check(); err != nil {
		return Granted{}, err
	}
	began, err := s.ledger.Time(ctx)
	if err != nil {
		return Granted{}, moorage.Annotate(op, "", err)
	}
	for pause := pollFirst; ; pause = min(2*pause, pollMax) {
		granted, held, now, err := s.tryTake(ctx, caller, request)
		switch {
		case err != nil:
			return Granted{}, moorage.Annotate(op, "", err)
		case held == nil:
			return granted, nil
		case now.Add(pause).Sub(began) > min(request.Wait, WaitMax) || !worker.Sleep(ctx, pause):
			return Granted{}, &moorage.Error{Kind: moorage.KindAlreadyExists, Message: held.Error(), Err: held}
		}
	}
}

func (r *Request) check() error {
	if r.TTL == 0 {
		r.TTL = TTLDefault
	}
	switch {
	case !scopes.MatchString(r.Scope):
		return moorage.Errorf(moorage.KindBadRequest,
			"Invalid scope %q: it is *, or job: and lower-case letters, or part: and hexadecimal digits", r.Scope)
	case r.Holder == "" || len(r.Holder) > HolderBytesMax:
		return moorage.Errorf(moorage.KindBadRequest, "Invalid holder: 1 to %d bytes are needed", HolderBytesMax)
	case r.TTL < TTLMin || r.TTL > TTLMax:
		return moorage.Errorf(moorage.KindBadRequest,
			"Invalid time to live %s: %s to %s are allowed", r.TTL, TTLMin, TTLMax)
	case r.Wait < 0 || r.Wait > WaitMax:
		return moorage.Errorf(moorage.KindBadRequest, "Invalid wait %s: 0 to %s are allowed", r.Wait, WaitMax)
	}
	return nil
}

// tryTake grants a lease at once, or returns the conflicting hold. It also returns the time.
func (s *Leases) tryTake(ctx context.Context, caller moorage.Caller, request Request) (
	granted Granted, held *HeldError, now time.Time, err error) {
	err = s.change(ctx, request.Pointer, func(lease *registry.Lease, at time.Time) error {
		now, held = at, nil
		for _, hold := range lease.Holds {
			if collide(hold.Scope, request.Scope) {
				held = &HeldError{hold}
				return errUnchanged
			}
		}
		if len(lease.Holds) >= HoldsMax {
			return moorage.Errorf(moorage.KindUnavailable, "The table has %d leases, and can have no more", HoldsMax)
		}
		granted = s.grant(lease, caller, request, at)
		return nil
	})
	return granted, held, now, err
}

// grant adds a hold, with the next token, to lease.
func (s *Leases) grant(lease *registry.Lease, caller moorage.Caller, request Request, now time.Time) Granted {
	lease.Last++
	hold := registry.Hold{
		Token: lease.Last, Scope: request.Scope, Holder: request.Holder, Caller: caller.Name, Job: request.Job,
		Since: now, Expires: now.Add(request.TTL), TTL: request.TTL,
	}
	lease.Holds = append(lease.Holds, hold)
	return Granted{registry.LeaseID{Pointer: request.Pointer, Token: hold.Token}, hold}
}

// collide reports whether leases of two scopes exclude each other.
func collide(a, b string) bool { return a == b || a == ScopeAll || b == ScopeAll }

// Renew extends the leases that caller still holds, and returns the ids of the others as lost. One
// write renews all leases of a table.
//
// Errors: KindBadRequest for more than RenewMax; KindUnavailable; KindCommitUnknown. After the last
// two, some leases may have been renewed, and the caller may retry.
func (s *Leases) Renew(ctx context.Context, caller moorage.Caller, ids []registry.LeaseID) (
	renewed []Granted, lost []registry.LeaseID, err error) {
	if len(ids) > RenewMax {
		return nil, nil, moorage.Errorf(moorage.KindBadRequest, "%d leases, at most %d at a time", len(ids), RenewMax)
	}
	tables := make(map[registry.ID][]registry.LeaseID)
	var order []registry.ID
	for _, id := range ids {
		if tables[id.Pointer] == nil {
			order = append(order, id.Pointer)
		}
		tables[id.Pointer] = append(tables[id.Pointer], id)
	}
	for _, pointer := range order {
		var here []Granted
		var gone []registry.LeaseID
		err := s.change(ctx, pointer, func(lease *registry.Lease, now time.Time) error {
			here, gone = nil, nil
			for _, id := range tables[pointer] {
				hold := holdOf(lease, id.Token, caller)
				if hold == nil {
					gone = append(gone, id)
					continue
				}
				hold.Expires = now.Add(hold.TTL)
				here = append(here, Granted{id, *hold})
			}
			if len(here) == 0 {
				return errUnchanged
			}
			return nil
		})
		if err != nil {
			return renewed, lost, moorage.Annotate("leases.Renew", "", err)
		}
		renewed, lost = append(renewed, here...), append(lost, gone...)
	}
	return renewed, lost, nil
}

func holdOf(lease *registry.Lease, token uint64, caller moorage.Caller) *registry.Hold {
	for i := range lease.Holds {
		if hold := &lease.Holds[i]; hold.Token == token && hold.Caller == caller.Name {
			return hold
		}
	}
	return nil
}

// Release ends a lease. If caller does not hold the lease, Release fails only if another caller
// holds it. Release continues for a while after ctx ends, so that an interrupted job does not block
// other callers.
//
// Errors: KindForbidden for a lease of another caller; KindUnavailable; KindCommitUnknown. After
// the last two, the lease may have ended; if not, it ends by itself.
func (s *Leases) Release(ctx context.Context, caller moorage.Caller, id registry.LeaseID, others Others) error {
	ctx, cancel := moorage.Detached(ctx, releaseTimeout)
	defer cancel()
	err := s.change(ctx, id.Pointer, func(lease *registry.Lease, _ time.Time) error {
		for i, hold := range lease.Holds {
			if hold.Token != id.Token {
				continue
			}
			if hold.Caller != caller.Name && others != AnybodysLeases {
				return moorage.Errorf(moorage.KindForbidden, "The lease %s belongs to %s", id, hold.Caller)
			}
			lease.Holds = append(lease.Holds[:i:i], lease.Holds[i+1:]...)
			return nil
		}
		return errUnchanged
	})
	return moorage.Annotate("leases.Release", id.String(), err)
}

// Others decides whether a caller may end the leases of other callers.
type Others bool

// The values of Others.
const (
	OwnLeases      Others = false
	AnybodysLeases Others = true
)

// ReleaseHolder ends all leases that a holder took under the name of caller, and returns their
// number.
func (s *Leases) ReleaseHolder(ctx context.Context, caller moorage.Caller, holder string) (released int, err error) {
	for after := ""; ; {
		page, next, err := s.List(ctx, Filter{Holder: holder}, after, ledger.ScanPage)
		if err != nil {
			return released, err
		}
		for _, held := range page {
			if held.Caller != caller.Name {
				continue
			}
			if err := s.Release(ctx, caller, held.ID, OwnLeases); err != nil {
				return released, err
			}
			released++
		}
		if next == "" {
			return released, nil
		}
		after = next
	}
}

// Filter selects the leases to list. An empty field selects all.
type Filter struct {
	Warehouse string // of the table
	Holder    string // the name that the holder gives itself
	// Table selects the leases on one table. List returns all of them on one page, whatever its
	// limit.
	Table Table
}

// List returns the leases that match filter. It covers at most limit tables that have or had
// leases, ordered by ID, from the first ID greater than after. To get the next page, pass next as
// after. On the last page, next is empty. A page can be empty without being the last. List changes
// nothing.
func (s *Leases) List(ctx context.Context, filter Filter, after string, limit int) (
	held []Granted, next string, err error) {
	const op = "leases.List"
	now, err := s.ledger.Time(ctx)
	if err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	var records []registry.Record
	if filter.Table.IsZero() {
		records, err = s.ledger.List(ctx, registry.TableLease, "", after, limit)
	} else {
		records, err = s.ledger.Get(ctx, registry.LeaseKey(filter.Table))
		limit = len(records) + 1
	}
	if err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	for _, record := range records {
		if !record.Exists() {
			continue // the one table had no lease yet
		}
		var id registry.LeaseID
		lease, err := ledger.Decode[registry.Lease](record)
		if err == nil {
			err = id.Pointer.UnmarshalText([]byte(record.Key.ID))
		}
		if err != nil {
			return nil, "", moorage.E(op, record.Key.String(), moorage.KindInternal, err)
		}
		for _, hold := range lease.Holds {
			id.Token = hold.Token
			if hold.IsLive(now) && (filter.Holder == "" || hold.Holder == filter.Holder) {
				held = append(held, Granted{id, hold})
			}
		}
	}
	if !registry.IsLastPage(records, limit) {
		next = records[len(records)-1].Key.ID
	}
	if filter.Warehouse != "" {
		held, err = s.inWarehouse(ctx, filter.Warehouse, held)
	}
	return held, next, moorage.Annotate(op, "", err)
}

// inWarehouse returns the leases on tables of a warehouse.
func (s *Leases) inWarehouse(ctx context.Context, warehouse string, held []Granted) ([]Granted, error) {
	if len(held) == 0 {
		return nil, nil
	}
	keys := make([]registry.Key, len(held))
	for i, granted := range held {
		keys[i] = registry.PointerKey(granted.ID.Pointer)
	}
	records, err := s.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	var in []Granted
	for i, record := range records {
		if !record.Exists() {
			continue
		}
		pointer, err := ledger.Decode[registry.Pointer](record)
		if err != nil {
			return nil, err
		}
		if pointer.Warehouse == warehouse {
			in = append(in, held[i])
		}
	}
	return in, nil
}
