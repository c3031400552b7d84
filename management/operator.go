package management

import (
	"context"

	"moorage"
	"moorage/maintenance/purge"
	"moorage/management/client"
	"moorage/recovery"
)

// Operator lists and ends unfinished work, in the terms of the API. It is safe for concurrent use
// if its parts are. The errors of its parts have a moorage.Kind.
type Operator struct {
	Recovery Recovery
	Purges   Purges
}

// Recovery has the methods of *recovery.Recovery.
type Recovery interface {
	Unfinished(ctx context.Context, after string, limit int) ([]recovery.Unfinished, string, error)
	Retry(ctx context.Context, id string) (recovery.Retried, error)
	Abort(ctx context.Context, id string) (recovery.Aborted, error)
}

// Purges has the methods of *purge.Worker.
type Purges interface {
	Blocked(ctx context.Context, after string, limit int) ([]purge.Blocked, string, error)
	ListWaiting(ctx context.Context, after string, limit int) ([]purge.Waiting, string, error)
}

// UnfinishedTransactions returns a page of the transactions with work left to do, including the
// ones in progress. The next page begins after next, which is empty on the last page.
func (o Operator) UnfinishedTransactions(ctx context.Context, page client.Page) (
	transactions []client.Transaction, next string, err error) {
	found, next, err := o.Recovery.Unfinished(ctx, page.After, page.Limit)
	transactions = make([]client.Transaction, len(found))
	for i, u := range found {
		t := client.Transaction{
			ID: u.ID.String(), State: u.State.String(), Warehouse: u.Warehouse, Tables: []moorage.Identifier{},
			Files: append([]string{}, u.Files...), Published: append([]string{}, u.Published...),
			Began: u.Began, Deadline: u.Deadline, Principal: u.Principal, RequestID: u.RequestID,
			Unreadable: textOf(u.Unreadable),
		}
		for _, p := range u.Participants {
			t.Tables = append(t.Tables, p.Ident)
		}
		if b := u.Blocker; b != nil {
			t.Blocker = &client.Blocker{
				Since: b.Since, Attempts: b.Attempts, LastError: b.LastError, Unreadable: textOf(b.Unreadable),
			}
		}
		transactions[i] = t
	}
	return transactions, next, err
}

// BlockedPurges returns a page of the blocked purges, and of the tasks that cannot be read. The
// next page begins after next, which is empty on the last page.
func (o Operator) BlockedPurges(ctx context.Context, page client.Page) (tasks []client.Task, next string, err error) {
	found, next, err := o.Purges.Blocked(ctx, page.After, page.Limit)
	tasks = make([]client.Task, len(found))
	for i, p := range found {
		if p.Table.Namespace == nil {
			p.Table.Namespace = moorage.Namespace{}
		}
		tasks[i] = client.Task{
			ID: p.ID, Table: p.Table, Unreadable: textOf(p.Unreadable),
			Blocker: client.Blocker{Since: p.Since, Attempts: p.Attempts, LastError: p.LastError},
		}
	}
	return tasks, next, err
}

// WaitingPurges returns a page of the purges that wait for their time, the next one first. The next
// page begins after next, which is empty on the last page.
func (o Operator) WaitingPurges(ctx context.Context, page client.Page) (
	purges []client.WaitingPurge, next string, err error) {
	found, next, err := o.Purges.ListWaiting(ctx, page.After, page.Limit)
	purges = make([]client.WaitingPurge, len(found))
	for i, p := range found {
		if p.Table.Namespace == nil {
			p.Table.Namespace = moorage.Namespace{}
		}
		purges[i] = client.WaitingPurge{ID: p.ID, Table: p.Table, Begins: p.Begins.UTC(), Bytes: p.Bytes}
	}
	return purges, next, err
}

// Retry retries a blocked transaction or purge.
func (o Operator) Retry(ctx context.Context, id string) (client.Retried, error) {
	r, err := o.Recovery.Retry(ctx, id)
	return client.Retried{Kind: string(r.Kind), Ended: r.Ended, Reason: textOf(r.Reason)}, err
}

// Abort ends a transaction.
func (o Operator) Abort(ctx context.Context, id string) (client.Aborted, error) {
	a, err := o.Recovery.Abort(ctx, id)
	return client.Aborted{
		Kind: string(recovery.KindTransaction), Was: a.Was.String(), Forgotten: a.Forgotten,
		Left: append([]string{}, a.Left...),
	}, err
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
