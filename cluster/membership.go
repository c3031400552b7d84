package cluster

import (
	"context"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"moorage/internal/worker"
)

const (
	// readInterval is the mean pause between two reads of the members.
	readInterval = time.Second
	// callMax is the timeout of each call to the store.
	callMax = 5 * time.Second
)

// Sessions accesses the store's records of the nodes: the sessions of their locks. Calls fail if
// the store does not answer. A caller may repeat them.
type Sessions interface {
	// Join records the address at which the node of session answers other nodes. An empty address
	// removes it. Join changes nothing if the session has ended, or already has that address.
	Join(ctx context.Context, session, address string) error
	// Members returns the sessions that have an address, in any order, and the number of the view
	// at the same moment. If an earlier call returned different sessions or addresses, its number
	// was smaller.
	Members(ctx context.Context) (number int64, members []Member, err error)
}

// MembershipConfig configures a Membership. All fields are required.
type MembershipConfig struct {
	Sessions Sessions
	Session  func() string // the session of this node's locks, or "" if there is none
	Address  string        // where this node answers other nodes
	Jitter   *mathrand.Rand
	Now      func() time.Time
	Logger   *slog.Logger
}

// Membership keeps this node among the members, and reads the other members. It is safe for
// concurrent use.
type Membership struct {
	config MembershipConfig
	views  views
	worker *worker.Worker
}

// NewMembership returns a Membership that is not started.
func NewMembership(config MembershipConfig) *Membership {
	m := &Membership{config: config}
	m.worker = worker.New(worker.Config{
		Name: "cluster members", Run: m.Refresh, Interval: readInterval, Jitter: config.Jitter, Logger: config.Logger,
	})
	return m
}

// Start makes this node a member, and begins to read the members.
func (m *Membership) Start() { m.worker.Start() }

// Leave removes this node from the members, and stops the work begun by Start. If the store does
// not answer, the node remains a member until its session ends.
func (m *Membership) Leave(ctx context.Context) error {
	m.worker.Stop()
	session := m.config.Session()
	if session == "" {
		return nil
	}
	if err := m.config.Sessions.Join(ctx, session, ""); err != nil {
		return fmt.Errorf("leave the cluster: %w", err)
	}
	return nil
}

// Refresh reads the members once. If this node's session is not among them, Refresh adds it.
func (m *Membership) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	number, members, err := m.config.Sessions.Members(ctx)
	if err != nil {
		return fmt.Errorf("read the members of the cluster: %w", err)
	}
	view := NewView(number, members)
	if m.views.learn(view, m.config.Now()) {
		m.config.Logger.InfoContext(ctx, "the members of the cluster changed", "view", number,
			"members", len(view.Members))
	}
	session := m.config.Session()
	if session == "" || slices.ContainsFunc(members, func(member Member) bool {
		return member.Session == session && member.Address == m.config.Address
	}) {
		return nil
	}
	if err := m.config.Sessions.Join(ctx, session, m.config.Address); err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	return nil
}

// View returns the present view. It has no members before the first read.
func (m *Membership) View() View { return m.views.now() }

// Views returns the last eight views, oldest first.
func (m *Membership) Views() []Seen { return m.views.history() }
