package locks

import (
	"context"
	"fmt"
)

// announcement is where a node listens.
type announcement struct {
	address, host string
	made          bool // the store knows, and has ended what the node comes after
}

// Announce says where this node listens. From now on the node has a session even if it holds
// nothing, and its sessions have this address. Announce ends the session of another node of the
// same address and host once, so that nobody waits for the locks of this process's predecessor.
//
// Call it when the node listens: then no other process does. host must be precise enough to make
// this certain. An empty host ends nobody. Announce does not wait: the sweep carries it out at
// once, and again later if it fails.
func (d *Distributed) Announce(address, host string) {
	d.mu.Lock()
	d.announced = announcement{address: address, host: host}
	d.mu.Unlock()
	d.sweep.Kick()
}

// Withdraw takes Announce back. From now on the sessions of this node have no host: it ends nobody,
// and the process that listens on its address next does not end it. So what is still under way here
// keeps its locks.
//
// Call it before the node stops listening. It returns when the store knows, or with an error; the
// sweep tries again.
func (d *Distributed) Withdraw(ctx context.Context) error {
	d.mu.Lock()
	d.announced = announcement{address: d.announced.address}
	d.mu.Unlock()
	return d.sweep.RunOnce(ctx)
}

// Session returns the name of this node's session, "" if it has none that has not ended.
func (d *Distributed) Session() string {
	if s := d.presentSession(); s != nil && !s.isEnded() {
		return s.name
	}
	return ""
}

// announcement returns what was announced, or zero if nothing was.
func (d *Distributed) announcement() announcement {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.announced
}

// keepAnnounced opens a session for a node that has none and was announced, and carries out the
// announcement.
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
		// announced the same address. Then it is not certain which of the two is older, and this
		// node ends nobody.
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
