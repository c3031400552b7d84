package access

import "moorage"

// Outcome is the result of a decision.
type Outcome uint8

// The outcomes. The zero value denies.
const (
	Hidden Outcome = iota // the caller must learn nothing, not even that the object exists
	Forbid                // the caller sees the object, but lacks a privilege
	Allow
)

// String returns the outcome as a word.
func (o Outcome) String() string { return [...]string{"hidden", "forbid", "allow"}[min(o, Allow)] }

// Reason is the rule that allowed a request.
type Reason uint8

// The reasons.
const (
	ByNothing Reason = iota // the request was not allowed
	ByOwner                 // the caller owns the object, or an object above it
	ByGrant                 // a grant on the object or above it
	ByInside                // the caller has a grant on, or owns, an object below the object
)

// Decision is the result of one decision.
type Decision struct {
	Outcome Outcome
	// Missing holds the requested privileges that the caller lacks, if Outcome is Forbid or Hidden.
	// It is empty if asked was See.
	Missing Privileges
	// HiddenAt is the index in the path of the outermost object that the caller does not see, if
	// Outcome is Hidden.
	HiddenAt int
	// If Outcome is Allow, By is the rule that gave the last missing privilege. At is the index in
	// the path of the object with that grant or owner. If At is the length of the path, the object
	// is the server. Grantee is the grantee of that grant, or the owner.
	By      Reason
	At      int
	Grantee string
}

// pathMax is the length of the longest path: a table, all levels of its namespace, and the
// warehouse.
const pathMax = 1 + moorage.NamespaceLevelsMax + 1

// shows holds the privileges on an object that make all objects below it visible. Any other
// privilege either implies Describe, or shows only its own object, or is granted on the server.
const shows = Describe | Admin

// Decide decides whether the caller has all privileges in asked on the object that path begins
// with. If asked is See, it decides whether the caller sees the object. The empty path is the
// server, which every caller sees. Decide allocates no memory.
func (w *Who) Decide(path []Object, asked Privileges) Decision {
	path = withoutServer(path)
	if w.disabled || len(path) > pathMax {
		return Decision{Missing: asked, HiddenAt: max(len(path)-1, 0)}
	}
	if len(path) == 0 && asked == See {
		return Decision{Outcome: Allow}
	}
	t := tally{asked: asked, seen: len(path) == 0}
	unmanaged := 0
	if asked.Has(Manage) {
		unmanaged = w.unmanaged(path)
	}
	for at := range path {
		record, _ := w.snapshot.objects.get(path[at].ID)
		if w.isOwner(&record, &path[at]) &&
			t.add(ofOwner(path[at].Kind, at >= unmanaged), at, ByOwner, w.ownerOf(&record, &path[at])) {
			return t.complete
		}
		if w.addGrants(&t, at, record.grants) {
			return t.complete
		}
	}
	if !w.caller.Acting {
		record, _ := w.snapshot.objects.get(ServerID)
		if w.addGrants(&t, len(path), record.grants) {
			return t.complete
		}
	}
	return w.denied(path, &t)
}

// addGrants adds the grants that count for the caller, and reports whether they suffice.
func (w *Who) addGrants(t *tally, at int, grants []granted) bool {
	for i := range grants {
		grant := &grants[i]
		if w.is(grant.grantee) &&
			t.add(Privileges(grant.implied), at, ByGrant, w.snapshot.names.name(grant.grantee)) {
			return true
		}
	}
	return false
}

// denied returns the decision if neither an owner nor a grant on the path allows the request. The
// caller may still see the object because of a grant or an owned object below it.
func (w *Who) denied(path []Object, t *tally) Decision {
	decision := Decision{Outcome: Forbid, Missing: t.asked &^ t.had}
	if t.seen {
		return decision
	}
	hidden := w.hidden(path, t.here)
	switch {
	case hidden >= 0:
		decision.Outcome, decision.HiddenAt = Hidden, hidden
	case t.asked == See:
		decision = Decision{Outcome: Allow, By: ByInside}
	case t.complete.Outcome == Allow:
		decision = t.complete
	}
	return decision
}

// hidden returns the index of the outermost object of path that the caller does not see. It returns
// -1 if the caller sees all objects. The caller must not have a privilege on the path that shows
// all objects below. here has a bit for each object that is visible because of a grant to the
// caller, or because the caller owns it. A caller that sees an object also sees every object above
// it. So the search goes down, and only its last lookup can find nothing.
func (w *Who) hidden(path []Object, here uint64) int {
	shown := 0 // the index below the lowest object that is known to be visible
	for shown < len(path) && here&(1<<shown) == 0 && !path[shown].OwnsInside {
		shown++
	}
	for shown > 0 && w.hasGrantInside(path[shown-1].ID) {
		shown--
	}
	return shown - 1
}

// tally is what Decide has found on a path so far.
type tally struct {
	asked    Privileges
	had      Privileges
	seen     bool     // the caller sees the object
	here     uint64   // has a bit for each object of the path that the caller owns or has a grant on
	complete Decision // set to Allow once had includes all of asked
}

// add adds the privileges from one object of the path, and reports whether the caller now has all
// requested privileges.
func (t *tally) add(privileges Privileges, at int, by Reason, grantee string) bool {
	t.had |= privileges
	t.here |= 1 << at
	t.seen = t.seen || at == 0 || privileges&shows != 0
	if t.complete.Outcome != Allow && t.had.Has(t.asked) && (t.seen || t.asked != See) {
		t.complete = Decision{Outcome: Allow, By: by, At: at, Grantee: grantee}
	}
	return t.seen && t.complete.Outcome == Allow
}

// withoutServer returns path without the server, which is implicitly above every path.
func withoutServer(path []Object) []Object {
	if last := len(path) - 1; last >= 0 && path[last].ID == ServerID {
		return path[:last]
	}
	return path
}

// isOwner reports whether the caller owns an object. record is the object's grants record.
func (w *Who) isOwner(record *object, object *Object) bool {
	if record.owner != 0 {
		return w.is(record.owner)
	}
	return object.Creator != "" && object.Creator == w.owns
}

// ownerOf returns the name of the owner of an object. It is empty if the object has no owner.
func (w *Who) ownerOf(record *object, object *Object) string {
	if record.owner != 0 {
		return w.snapshot.names.holder(w.snapshot.names.identity(record.owner))
	}
	return w.snapshot.names.holder(object.Creator)
}

// ofOwner returns the privileges that the owner of an object of this kind has on the object and on
// the objects below it.
func ofOwner(kind Kind, manages bool) Privileges {
	if manages {
		return OfOwner(kind)
	}
	return OfOwner(kind) &^ Manage
}

// unmanaged returns the index of the outermost managed object on path, or 0 if no object is
// managed. Owners of objects below it lack Manage.
func (w *Who) unmanaged(path []Object) int {
	for at := len(path) - 1; at > 0; at-- {
		if record, _ := w.snapshot.objects.get(path[at].ID); record.managed {
			return at
		}
	}
	return 0
}

// hasGrantInside reports whether the caller has a grant below a container.
func (w *Who) hasGrantInside(id ID) bool {
	container, found := w.snapshot.below.get(id)
	if !found {
		return false
	}
	for _, each := range w.granted {
		if _, found := container.grantees[each]; found {
			return true
		}
	}
	return false
}

// Seen reports whether the caller sees the object that path begins with.
func (w *Who) Seen(path []Object) bool { return w.Decide(path, See).Outcome == Allow }

// Has returns all privileges that the caller has on the object that path begins with, including
// implied ones.
func (w *Who) Has(path []Object) Privileges {
	path = withoutServer(path)
	if w.disabled || len(path) > pathMax {
		return 0
	}
	t := tally{asked: ^Privileges(0)} // more than any caller has
	unmanaged := w.unmanaged(path)
	for at := range path {
		record, _ := w.snapshot.objects.get(path[at].ID)
		if w.isOwner(&record, &path[at]) {
			t.had |= ofOwner(path[at].Kind, at >= unmanaged)
		}
		w.addGrants(&t, at, record.grants)
	}
	if !w.caller.Acting {
		record, _ := w.snapshot.objects.get(ServerID)
		w.addGrants(&t, len(path), record.grants)
	}
	return t.had
}

// DecideGrant decides whether the caller may grant or revoke privileges on the object that path
// begins with. The caller needs Manage there and all the privileges, or Admin.
func (w *Who) DecideGrant(path []Object, privileges Privileges) Decision {
	decision := w.Decide(path, Manage|privileges)
	if decision.Outcome == Allow {
		return decision
	}
	return w.orAdmin(path, decision)
}

// DecideTransfer decides whether the caller may make another grantee the owner of the object that
// path begins with. The caller must own the object or one above it, or have Admin. The owner of an
// object below a managed one may not do that. Such an owner may not grant privileges to others, and
// a transfer would be a way around that rule.
func (w *Who) DecideTransfer(path []Object) Decision {
	path = withoutServer(path)
	decision := w.Decide(path, See)
	if decision.Outcome == Allow {
		for at := w.unmanaged(path); at < len(path); at++ {
			record, _ := w.snapshot.objects.get(path[at].ID)
			if w.isOwner(&record, &path[at]) {
				return Decision{Outcome: Allow, By: ByOwner, At: at, Grantee: w.ownerOf(&record, &path[at])}
			}
		}
		decision = Decision{Outcome: Forbid, Missing: Admin}
	}
	return w.orAdmin(path, decision)
}

// orAdmin returns decision, or Allow if the caller has Admin.
func (w *Who) orAdmin(path []Object, decision Decision) Decision {
	if admin := w.Decide(nil, Admin); admin.Outcome == Allow {
		admin.At = len(withoutServer(path))
		return admin
	}
	return decision
}
