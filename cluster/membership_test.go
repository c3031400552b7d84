package cluster

import (
	"context"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// sessions is a store of Sessions in memory, the reference model. It is safe for concurrent use.
type sessions struct {
	mu      sync.Mutex // guards the fields below; leaf
	number  int64
	members []Member // of live sessions
	away    bool
}

var errAway = errors.New("the store is away")

func (s *sessions) Join(_ context.Context, session, address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errAway
	}
	for i, member := range s.members {
		if member.Session == session && member.Address != address {
			s.members[i].Address = address
			s.number++
		}
	}
	return nil
}

func (s *sessions) Members(context.Context) (int64, []Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return 0, nil, errAway
	}
	return s.number, slices.DeleteFunc(slices.Clone(s.members), func(m Member) bool { return m.Address == "" }), nil
}

// A node joins as soon as it has a session, and again with each new session. While the store is
// unavailable, it keeps its view. When it leaves, the others notice.
func TestMembership(t *testing.T) {
	t.Parallel()
	store := &sessions{members: []Member{{Session: "b1", Address: "b:1"}}, number: 1}
	session := ""
	m := NewMembership(MembershipConfig{
		Sessions: store, Session: func() string { return session }, Address: "a:1",
		Jitter: mathrand.New(mathrand.NewPCG(1, 1)), Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if len(m.View().Members) != 0 {
		t.Error("there are members before the first read")
	}
	expect := func(what string, fails bool, addresses ...string) {
		t.Helper()
		for range 2 { // the first joins, the second sees it
			if err := m.Refresh(t.Context()); (err != nil) != fails {
				t.Errorf("%s: %v", what, err)
			}
		}
		var got []string
		for _, member := range m.View().Members {
			got = append(got, member.Address)
		}
		if !slices.Equal(got, addresses) {
			t.Errorf("%s: members %v, want %v", what, got, addresses)
		}
	}
	expect("no session", false, "b:1")
	session = "a1"
	store.members = append(store.members, Member{Session: "a1"})
	expect("a session", false, "a:1", "b:1")
	store.away = true
	expect("the store is away", true, "a:1", "b:1")
	store.away = false
	store.members = append(store.members, Member{Session: "a2"}) // the first one is silent and not yet ended
	session = "a2"
	expect("another session", false, "a:1", "b:1")
	store.members = slices.DeleteFunc(store.members, func(member Member) bool { return member.Session == "a1" })
	store.number++
	expect("the first one ends", false, "a:1", "b:1")
	if err := m.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, members, _ := store.Members(t.Context()); len(members) != 1 {
		t.Errorf("after the node left: %v", members)
	}
	if len(m.Views()) != 4 {
		t.Errorf("%d views are remembered, want 4: %v", len(m.Views()), m.Views())
	}
}
