package commit

import (
	"context"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/verb"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
)

// work is one intent under way. It belongs to one goroutine.
type work struct {
	Intent
	row     verb.Row
	key     *ledger.Key // nil: the request has none
	applied bool        // the intent has an effect; the outcome of its key, if it has one, is stored with it
	// happened is the change that had the effect, and heads are those of main of its tables after
	// it, by the ids of the tables.
	happened registry.Change
	heads    map[registry.ID]int64
}

// done returns what w did.
func (w *work) done() verb.Done {
	if !w.applied {
		return verb.Done{}
	}
	done := verb.Done{Commit: w.happened.ID.String()}
	for _, item := range w.happened.Items {
		done.Effects = append(done.Effects, verb.Effect{
			Kind: item.Kind, ID: item.ID.String(), Ident: item.Ident, Previous: item.Previous,
			Snapshot: w.heads[item.ID],
		})
	}
	return done
}

// noteHead notes the head of main in the version of a table that w made.
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

// asker returns who asks for w, and for what.
func (w *work) asker() directory.Asker { return directory.Asker{Caller: w.Caller, Verb: w.Verb} }

// effect is an intent that an Apply makes true, and what it is answered then.
type effect struct {
	*work
	answer Outcome
}

// change begins the change record of w: it draws the commit id.
func (w *work) change(ctx context.Context, l *ledger.Ledger, ident moorage.Identifier) (registry.Change, error) {
	return l.NewChange(ctx, w.Caller, string(w.Verb), ident)
}

// keyExpires returns until when the outcome of w may be asked for again; zero if it never is.
func (w *work) keyExpires() time.Time {
	if w.key == nil || w.Silent {
		return time.Time{}
	}
	return w.key.Request.Expires()
}

// until returns until when a version that w makes may have to be answered again; see Attempt.Until.
func (w *work) until(kept time.Time) time.Time {
	return later(kept, w.keyExpires())
}

// hasClientKey reports whether the client of w drew a key, which it will send again with a retry.
func (w *work) hasClientKey() bool { return w.Key != nil && !w.Key.Internal }
