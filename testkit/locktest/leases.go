package locktest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"moorage/locks"
)

// MemoryLeases is the reference model of locks.Leases, in one process and as simple as possible:
// each call scans everything. It is safe for concurrent use.
type MemoryLeases struct {
	now func() time.Time

	mu       sync.Mutex // guards the fields below; no other lock is taken under it
	sessions map[string]life
	leases   []entry
	wants    []entry // ordered by the ages of their tickets, oldest first
	tickets  int64
}

// entry is a lease, or a want.
type entry struct {
	session string
	id      int64 // the id of the lease; for a want: its ticket
	path    string
	mode    uint8
	since   time.Time
	age     int64 // for a want: the index of its ticket in the order of all tickets
}

// life is a session that has not ended.
type life struct {
	locks.Session
	renewed time.Time
}

// NewMemoryLeases returns a MemoryLeases without sessions. now is the store's clock.
func NewMemoryLeases(now func() time.Time) *MemoryLeases {
	return &MemoryLeases{now: now, sessions: make(map[string]life)}
}

// excludes reports whether two modes exclude each other.
func excludes(a, b uint8) bool { return a|b == uint8(locks.W) }

// Rows returns the number of held leases and the number of wants.
func (m *MemoryLeases) Rows() (leases, wants int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.leases), len(m.wants)
}

// Held returns the leases of session, as "W /wh/ns", in the order in which they were taken.
func (m *MemoryLeases) Held(session string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var held []string
	for _, l := range m.leases {
		if l.session == session {
			held = append(held, fmt.Sprintf("%s %s", locks.Mode(l.mode), l.path))
		}
	}
	return held
}

// Sessions returns the names of live sessions, sorted.
func (m *MemoryLeases) Sessions() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.sessions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Open implements locks.Leases.
func (m *MemoryLeases) Open(ctx context.Context, session locks.Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, ok := m.sessions[session.Name]; ok {
		return fmt.Errorf("session %q exists", session.Name)
	}
	m.sessions[session.Name] = life{session, m.now()}
	return nil
}

// Announce implements locks.Leases.
func (m *MemoryLeases) Announce(ctx context.Context, session, address, host string) (ended int, alive bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	mine, ok := m.sessions[session]
	if !ok {
		return 0, false, nil
	}
	mine.Address, mine.Host = address, host
	m.sessions[session] = mine
	for name, other := range m.sessions {
		if name != session && address != "" && host != "" && other.Address == address && other.Host == host {
			m.endLocked(name)
			ended++
		}
	}
	return ended, true, nil
}

// Session returns a session, and false if it has ended.
func (m *MemoryLeases) Session(name string) (locks.Session, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.sessions[name]
	return known.Session, ok
}

// isSilentLocked reports whether a session has been silent for so long that others may take its
// leases. silence is the limit for a session without its own limit. mu must be held.
func (m *MemoryLeases) isSilentLocked(session string, silence time.Duration) bool {
	life := m.sessions[session]
	return m.now().Sub(life.renewed) > cmp.Or(life.Silence, silence)
}

// Renew implements locks.Leases.
func (m *MemoryLeases) Renew(ctx context.Context, session string, known []int64, orphaned time.Duration) (lost []int64,
	alive bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	life, ok := m.sessions[session]
	if !ok {
		return nil, false, nil
	}
	now := m.now()
	life.renewed = now
	m.sessions[session] = life
	orphan := func(e entry) bool {
		return e.session == session && !slices.Contains(known, e.id) && now.Sub(e.since) >= orphaned
	}
	m.leases = slices.DeleteFunc(m.leases, orphan)
	m.wants = slices.DeleteFunc(m.wants, orphan)
	for _, id := range known {
		its := func(e entry) bool { return e.session == session && e.id == id }
		if !slices.ContainsFunc(m.leases, its) && !slices.ContainsFunc(m.wants, its) {
			lost = append(lost, id)
		}
	}
	return lost, true, nil
}

// Try implements locks.Leases.
func (m *MemoryLeases) Try(ctx context.Context, session string, ticket int64, leases []locks.Lease,
	silence time.Duration) (blocked int, alive bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return -1, false, err
	}
	if _, ok := m.sessions[session]; !ok {
		return -1, false, nil
	}
	now := m.now()
	its := func(e entry) bool { return e.session == session && e.id == ticket }
	age := m.tickets + 1
	if i := slices.IndexFunc(m.wants, its); i >= 0 {
		age = m.wants[i].age
	}
	silent := func(e entry) bool { return m.isSilentLocked(e.session, silence) }
	excluded := func(l locks.Lease, e entry) bool {
		return e.path == l.Path && e.session != session && excludes(e.mode, l.Mode)
	}
	blocks := func(l locks.Lease) bool {
		return slices.ContainsFunc(m.leases, func(e entry) bool { return excluded(l, e) && !silent(e) }) ||
			slices.ContainsFunc(m.wants, func(e entry) bool { return excluded(l, e) && e.age < age && !silent(e) })
	}

	if blocked = slices.IndexFunc(leases, blocks); blocked >= 0 {
		if ticket > 0 {
			m.wantLocked(session, ticket, leases, age, now)
		}
		return blocked, true, nil
	}
	for _, l := range leases {
		m.leases = slices.DeleteFunc(m.leases, func(e entry) bool { return excluded(l, e) })
		m.leases = append(m.leases, entry{session: session, id: l.ID, path: l.Path, mode: l.Mode, since: now})
	}
	if ticket > 0 {
		m.wants = slices.DeleteFunc(m.wants, its)
	}
	return -1, true, nil
}

// wantLocked adds leases to the wants of a ticket, except leases that the ticket already wants. mu
// must be held.
func (m *MemoryLeases) wantLocked(session string, ticket int64, leases []locks.Lease, age int64, now time.Time) {
	m.tickets = max(m.tickets, age)
	for _, l := range leases {
		has := func(e entry) bool {
			return e.session == session && e.id == ticket && e.path == l.Path && e.mode == l.Mode
		}
		if !slices.ContainsFunc(m.wants, has) {
			m.wants = append(m.wants, entry{session: session, id: ticket, path: l.Path, mode: l.Mode, since: now,
				age: age})
		}
	}
}

// Release implements locks.Leases.
func (m *MemoryLeases) Release(ctx context.Context, session string, ids []int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.deleteLocked(func(e entry) bool { return e.session == session && slices.Contains(ids, e.id) })
	return nil
}

// Wanted implements locks.Leases.
func (m *MemoryLeases) Wanted(ctx context.Context, session string, silence time.Duration) (ids []int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, l := range m.leases {
		wanted := func(w entry) bool {
			return w.session != session && w.path == l.path && excludes(w.mode, l.mode) &&
				!m.isSilentLocked(w.session, silence)
		}
		if l.session == session && slices.ContainsFunc(m.wants, wanted) {
			ids = append(ids, l.id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Reap implements locks.Leases.
func (m *MemoryLeases) Reap(ctx context.Context, ttl time.Duration) (ended int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now := m.now()
	for session, life := range m.sessions {
		switch silent := now.Sub(life.renewed); {
		case silent > ttl:
			m.endLocked(session)
			ended++
		case silent < 0:
			life.renewed = now
			m.sessions[session] = life
		}
	}
	return ended, nil
}

// End implements locks.Leases.
func (m *MemoryLeases) End(ctx context.Context, session string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.endLocked(session)
	return nil
}

func (m *MemoryLeases) endLocked(session string) {
	delete(m.sessions, session)
	m.deleteLocked(func(e entry) bool { return e.session == session })
}

func (m *MemoryLeases) deleteLocked(gone func(entry) bool) {
	m.leases = slices.DeleteFunc(m.leases, gone)
	m.wants = slices.DeleteFunc(m.wants, gone)
}
