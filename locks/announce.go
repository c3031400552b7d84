package locks

import (
	"context"
	"fmt"
)

// announcement is the address of a node.
type announcement struct {
	address, host string
	made          bool // the store has recorded it and ended the predecessor's session
}

// Announce records the address where this node listens. From then on, the node has a session even
// if it holds nothing, and its sessions have this address. Announce also ends the session that an
// earlier process with the same address and host has left, but only once. So operations need not
// wait for the locks of this process's predecessor.
//
// Call Announce once the node is listening on address, so that no other process can be listening
// there. To make this certain, host must identify one machine and network. An empty host ends no
// session. Announce does not wait: the node's sweep records the address at once, and tries again
// later if that fails.
func (d *Distributed) Announce(address, host string) {
	d.mu.Lock()
	d.announced = announcement{address: address, host: host}
	d.mu.Unlock()
	d.sweep.Kick()
}

// Withdraw undoes Announce. From then on, the sessions of this node have no host. So the node ends
// no session, and the next process that listens on its address does not end the node's session.
// Operations in progress here keep their locks.
//
// Call it before the node stops listening. Withdraw returns when the store has recorded this, or
// with an error. After an error, the node's sweep tries again.
func (d *Distributed) Withdraw(ctx context.Context) error {
	d.mu.Lock()
	d.announced = announcement{address: d.announced.address}
	d.mu.Unlock()
	return d.sweep.RunOnce(ctx)
}

// Session returns the name of this node's session, or "" if no live session exists.
func (d *Distributed) Session() string {
	if s := d.presentSession(); s != nil && !s.isEnded() {
		return s.name
	}
	return ""
}

// announcement returns the node's announcement, or the zero value if there is none.
func (d *Distributed) announcement() announcement {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.announced
}

// keepAnnounced makes sure that an announced node has a session, and records the announcement in
// the store.
func (d *Distributed) keepAnnounced(ctx context.Context) error {
	a := d.announcement()
	if a == (announcement{}) {
		return nil
	}
	s, err := d.openSession(ctx)
	if err != nil || a.made {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	ended, alive, err := d.leases.Announce(ctx, s.name, a.address, a.host)
	if err != nil {
		return fmt.Errorf("announce %s: %w", a.address, err)
	}
	if !alive {
		// The next session has the address from the start. Another node that announced the same
		// address may have ended this session. It is not certain which of the two nodes is older,
		// so this node ends no session.
		d.lose(s, "another node ended it")
	}
	if ended > 0 {
		d.log.InfoContext(ctx, "ended the session of the node that had this address before", "address", a.address,
			"sessions", ended)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.announced == a {
		d.announced.made = true
	}
	return nil
}
