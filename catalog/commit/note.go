package commit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/activity"
	"moorage/catalog/directory"
	"moorage/metadata"
	"moorage/registry"
)

// note records in the activity how w ended, for the tables and views that it edits. w began at the
// time began. If a requirement failed, note returns err with the last commit of the table added to
// the text. The caller may see that commit, because each privilege that a commit needs implies
// access.Describe.
func (p *Pipeline) note(ctx context.Context, w *work, began time.Time, err error) error {
	now := p.now()
	if err == nil {
		for _, target := range w.Edits {
			if of, _, known := p.targetNow(target); known {
				p.activity.Committed(now, of, w.Caller.Name, now.Sub(began), w.waited)
			}
		}
		return nil
	}
	kind := moorage.KindOf(err)
	if !isRefusal(kind) {
		return err
	}
	unmet, isUnmet := errors.AsType[*metadata.UnmetError](err)
	for _, target := range w.Edits {
		of, found, known := p.targetNow(target)
		if !known || target.Asks == access.See || !isOf(err, target, len(w.Edits)) {
			continue
		}
		refusal := activity.Refusal{
			At: now, Of: of, Caller: w.Caller.Name, Client: w.Caller.Client, RequestID: moorage.RequestID(ctx),
			Kind: kind, Reason: moorage.MessageOf(err),
		}
		if isUnmet {
			refusal.Ref, refusal.Expected, refusal.Found = unmet.Ref, unmet.Expected, unmet.Found
		}
		last := found.Pointer.LastIn(registry.StateLive)
		if !last.IsZero() {
			refusal.By, refusal.Change = last.By, last.Change
			if last.Summary != nil && last.Summary.At > 0 {
				refusal.LastAt = time.UnixMilli(last.Summary.At).UTC()
			}
		}
		p.activity.Refused(refusal)
		if kind == moorage.KindCommitFailed {
			p.activity.Conflicted(now, of)
		}
		if isUnmet && !refusal.LastAt.IsZero() {
			text := fmt.Sprintf("%s; the last commit was by %s at %s", refusal.Reason, moorage.NameOf(last.By),
				refusal.LastAt.Format(time.RFC3339))
			return &moorage.Error{Kind: kind, Message: text, Err: err}
		}
		return err
	}
	return err
}

// targetNow returns the table or view of a target, as last seen by this node. It reads nothing.
func (p *Pipeline) targetNow(target Target) (of activity.Table, found *directory.Found, known bool) {
	found, known = p.directory.Known(target.Ident)
	if !known {
		return of, nil, false
	}
	return activity.Table{ID: found.Pointer.ID, Ident: target.Ident}, found, true
}

// isRefusal reports whether a failure of this kind refuses a commit because of its content, or
// because of another commit. It is false for failures about objects that the caller may not see.
func isRefusal(kind moorage.Kind) bool {
	switch kind {
	case moorage.KindCommitFailed, moorage.KindBadRequest, moorage.KindIllegalArgument, moorage.KindValidation,
		moorage.KindUnprocessable, moorage.KindTooLarge, moorage.KindUnsupported:
		return true
	}
	return false
}

// isOf reports whether err is about a target. The errors of a transaction name their table.
func isOf(err error, target Target, targets int) bool {
	if targets == 1 {
		return true
	}
	var named *moorage.Error
	for errors.As(err, &named) {
		if named.Ident == target.Ident.String() {
			return true
		}
		err = named.Err
	}
	return false
}
