package locks

import (
	"context"
	"fmt"
)

// announcement is the address of a node.
type announcement struct {
	address, host string
	made          bool // the store has recorded it, and has ended the predecessor's session
}

// Announce records the address where this node listens. From now on the node has a session even if
// it holds nothing, and its sessions have this address. Announce ends the session of another node
// of the same address and host once, so that operations need not wait for the locks of this
// process's predecessor.
//
// Call it when the node listens: then no other process does. host must be precise enough to make
// this certain. An empty host ends no session. Announce does not wait: the sweep carries it out at
// once, and again later if it fails.
func (d *Distributed) Announce(address, host string) {
	d.mu.Lock()
	d.announced = announcement{address: address, host: host}
	d.mu.Unlock()
	d.sweep.Kick()
}

// Withdraw undoes Announce. From now on the sessions of this node have no host. So the node ends no
// session, and the next process that listens on its address does not end the node's session.
// Operations in progress here keep their locks.
//
// Call it before the node stops listening. It returns when the store has recorded it, or with an
// error. In that case the sweep tries again.
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

// announcement returns the announcement, or zero if there is none.
func (d *Distributed) announcement() announcement {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.announced
}

// keepAnnounced makes sure that an announced node has a session, and carries out the announcement.
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
		// The next session has the address from the start. The node that ended this one may have
		// announced the same address. Then it is not certain which of the two is older, so this
		// node ends no session.
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
