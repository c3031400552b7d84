package commit

import (
	"context"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
)

// work is one intent in progress. It belongs to one goroutine.
type work struct {
	Intent
	row     gate.Row
	key     *ledger.Key   // nil if the request has none
	applied bool          // the intent has an effect, stored with the outcome of its key
	waited  time.Duration // for other commits of the table or view
	// happened is the change that had the effect. heads are the snapshots at the head of branch
	// main after that change, by table id.
	happened registry.Change
	heads    map[registry.ID]int64
}

// done returns the effects of w.
func (w *work) done() gate.Done {
	if !w.applied {
		return gate.Done{}
	}
	done := gate.Done{Commit: w.happened.ID.String()}
	for _, item := range w.happened.Items {
		done.Effects = append(done.Effects, gate.Effect{
			Kind: item.Kind, ID: item.ID.String(), Ident: item.Ident, Previous: item.Previous,
			Snapshot: w.heads[item.ID],
		})
	}
	return done
}

// noteHead records the head of branch main in the version of a table that w created.
func (w *work) noteHead(table registry.ID, document documents.Document) {
	read, ok := document.(*metadata.Document)
	if !ok || read == nil {
		return
	}
	if head, exists := read.CurrentSnapshotID(); exists {
		if w.heads == nil {
			w.heads = make(map[registry.ID]int64, 1)
		}
		w.heads[table] = head
	}
}

// asker returns the caller and verb of w.
func (w *work) asker() directory.Asker { return directory.Asker{Caller: w.Caller, Verb: w.Verb} }

// effect is an intent that an Apply commits, and the answer of the intent if that Apply succeeds.
type effect struct {
	*work
	answer Outcome
}

// change begins the change record of w: it draws the commit id.
func (w *work) change(ctx context.Context, l *ledger.Ledger, ident moorage.Identifier) (registry.Change, error) {
	return l.NewChange(ctx, w.Caller, string(w.Verb), ident)
}

// keyExpires returns the time when the key of w expires. It is zero if the outcome is never
// returned again.
func (w *work) keyExpires() time.Time {
	if w.key == nil || w.Silent {
		return time.Time{}
	}
	return w.key.Request.Expires()
}

// until returns the time until which a version that w makes may have to be returned again; see
// Attempt.Until.
func (w *work) until(kept time.Time) time.Time {
	return later(kept, w.keyExpires())
}

// hasClientKey reports whether the key of w was drawn by the client, which sends it again with a
// retry.
func (w *work) hasClientKey() bool { return w.Key != nil && !w.Key.Internal }
