package activity

import (
	"container/list"
	"slices"
	"strings"
	"sync"
	"time"

	"moorage"
	"moorage/registry"
)

// Bounds of the refused commits.
const (
	// RefusalsOfOneMax is the maximum number of refusals kept for one table, and RefusalsMax the
	// maximum for all tables together.
	RefusalsOfOneMax = 64
	RefusalsMax      = 20_000
	// RefusalsKept is how long a refusal is kept.
	RefusalsKept = 24 * time.Hour

	refusalsBytesMax = 7 << 19 // 3.5 MiB
	// refusalBytes is the number of bytes that a refusal takes in memory, not counting its texts.
	refusalBytes   = 400
	reasonBytesMax = 300
	nameBytesMax   = 200
)

// Refusal is a commit that was refused.
type Refusal struct {
	At        time.Time
	Of        Table
	Caller    string
	Client    string
	RequestID string
	Kind      moorage.Kind
	Reason    string
	// Ref is the branch or tag with a failed requirement; empty for other reasons. Expected is the
	// snapshot that the commit required, and nil means that the ref must not exist. Found is the
	// actual snapshot, and nil means that the ref does not exist.
	Ref             string
	Expected, Found *int64
	// By, LastAt and Change describe the table's last commit before the refusal, as far as known.
	By     string
	LastAt time.Time
	Change registry.ID
}

// refusals keeps the last refusals. It is safe for concurrent use.
type refusals struct {
	mu    sync.Mutex                      // guards the fields below; leaf
	all   *list.List                      // of *Refusal, oldest first
	of    map[registry.ID][]*list.Element // of each table, oldest first
	bytes int
}

func newRefusals() refusals {
	return refusals{all: list.New(), of: make(map[registry.ID][]*list.Element)}
}

// bytesOf returns the memory of r.
func (r *Refusal) bytesOf() int {
	n := refusalBytes + len(r.Caller) + len(r.Client) + len(r.RequestID) + len(r.Reason) + len(r.Ref) + len(r.By) +
		len(r.Of.Ident.Name) + len(r.Of.Ident.Warehouse)
	for _, level := range r.Of.Ident.Namespace {
		n += len(level)
	}
	return n
}

// Refused records a refusal. It copies the texts of r, and truncates long ones.
func (a *Activity) Refused(r Refusal) {
	for text, bytesMax := range map[*string]int{
		&r.Caller: nameBytesMax, &r.Client: nameBytesMax, &r.RequestID: nameBytesMax, &r.Reason: reasonBytesMax,
		&r.Ref: nameBytesMax, &r.By: nameBytesMax,
	} {
		*text = strings.Clone(moorage.Cut(*text, bytesMax))
	}
	a.refused.add(r)
}

func (k *refusals) add(r Refusal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := r.Of.ID
	if len(k.of[id]) == RefusalsOfOneMax {
		k.removeLocked(k.of[id][0])
	}
	k.of[id] = append(k.of[id], k.all.PushBack(&r))
	k.bytes += r.bytesOf()
	for k.all.Len() > RefusalsMax || k.bytes > refusalsBytesMax {
		k.removeLocked(k.all.Front())
	}
	k.endOldLocked(r.At)
}

// endOldLocked removes the refusals that are older than RefusalsKept; mu must be held.
func (k *refusals) endOldLocked(now time.Time) {
	for front := k.all.Front(); front != nil; front = k.all.Front() {
		if now.Sub(front.Value.(*Refusal).At) <= RefusalsKept {
			return
		}
		k.removeLocked(front)
	}
}

// removeLocked removes the oldest refusal of a table; mu must be held.
func (k *refusals) removeLocked(oldest *list.Element) {
	gone := k.all.Remove(oldest).(*Refusal)
	k.bytes -= gone.bytesOf()
	if rest := k.of[gone.Of.ID][1:]; len(rest) > 0 {
		k.of[gone.Of.ID] = rest
	} else {
		delete(k.of, gone.Of.ID)
	}
}

// RefusalsOf returns the refusals of a table or view, newest first.
func (a *Activity) RefusalsOf(id registry.ID, now time.Time) []Refusal {
	k := &a.refused
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endOldLocked(now)
	found := make([]Refusal, 0, len(k.of[id]))
	for _, each := range slices.Backward(k.of[id]) {
		found = append(found, *each.Value.(*Refusal))
	}
	return found
}

// RefusalsWithin returns at most limit refusals for which isWanted returns true, newest first.
func (a *Activity) RefusalsWithin(now time.Time, limit int, isWanted func(*Refusal) bool) []Refusal {
	k := &a.refused
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endOldLocked(now)
	found := []Refusal{}
	for each := k.all.Back(); each != nil && len(found) < limit; each = each.Prev() {
		if r := each.Value.(*Refusal); isWanted(r) {
			found = append(found, *r)
		}
	}
	return found
}
