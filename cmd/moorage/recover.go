package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/recovery"
)

// recoverForget makes the store forget all files that it planned to delete.
func recoverForget(ctx context.Context, c cli.Config, env cli.Environment) (err error) {
	store, err := openStoppedStore(ctx, c, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	off, err := cancelDeletions(ctx, store)
	if err == nil {
		fmt.Fprintf(env.Stdout, "%s forgotten, %s called off; files that they would have deleted are left over\n",
			counted(off.Transactions, "transaction"), counted(off.Purges, "purge"))
	}
	return err
}

func recoverEach(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withOperators(ctx, c, env, func(o operators) error { return recoverList(ctx, o, env.Stdout) })
}

func recoverRetry(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withOperators(ctx, c, env, func(o operators) error {
		if c.Operand == cli.Everything {
			return retryAll(ctx, o, env.Stdout)
		}
		retried, err := o.Retry(ctx, c.Operand)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, describeRetried(retried))
		return nil
	})
}

func recoverAbort(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withOperators(ctx, c, env, func(o operators) error {
		aborted, err := o.Abort(ctx, c.Operand)
		if err != nil {
			return err
		}
		describeAborted(env.Stdout, aborted)
		return nil
	})
}

// operators carries out an operator's commands: a catalog of this process, or a running server.
type operators interface {
	UnfinishedTransactions(ctx context.Context, page client.Page) ([]client.Transaction, string, error)
	BlockedPurges(ctx context.Context, page client.Page) ([]client.Task, string, error)
	WaitingPurges(ctx context.Context, page client.Page) ([]client.WaitingPurge, string, error)
	Retry(ctx context.Context, id string) (client.Retried, error)
	Abort(ctx context.Context, id string) (client.Aborted, error)
}

// withOperators runs do on the server at c.URI, or on the store.
func withOperators(ctx context.Context, c cli.Config, env cli.Environment, do func(operators) error) error {
	if c.URI != "" {
		return do(serverOf(c))
	}
	return orAsk(withStopped(ctx, c, env, func(node *node) error { return do(node.operator) }))
}

// recoverPage is how many transactions or purges one request returns.
const recoverPage = 1000

// eachPage calls visit with everything that list returns, page by page.
func eachPage[T any](
	ctx context.Context, list func(context.Context, client.Page) ([]T, string, error), visit func(T),
) error {
	for page := (client.Page{Limit: recoverPage}); ; {
		found, next, err := list(ctx, page)
		if err != nil {
			return err
		}
		for _, one := range found {
			visit(one)
		}
		if page.After = next; next == "" {
			return nil
		}
	}
}

// retryAll retries everything that was given up. A failed retry does not stop the others.
func retryAll(ctx context.Context, o operators, out io.Writer) error {
	var ids []string
	err := eachPage(ctx, o.UnfinishedTransactions, func(t client.Transaction) {
		if givenUp(t) {
			ids = append(ids, t.ID)
		}
	})
	if err == nil {
		err = eachPage(ctx, o.BlockedPurges, func(p client.Task) { ids = append(ids, p.ID) })
	}
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		fmt.Fprintln(out, "nothing was given up")
		return nil
	}
	var failures []error
	for _, id := range ids {
		if retried, err := o.Retry(ctx, id); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", id, err))
		} else {
			fmt.Fprintf(out, "%s  %s\n", id, describeRetried(retried))
		}
	}
	return errors.Join(failures...)
}

// givenUp reports whether a transaction waits for an operator's decision.
func givenUp(t client.Transaction) bool { return t.Blocker != nil || t.Unreadable != "" }

// recoverList prints everything, and fails if something was given up.
func recoverList(ctx context.Context, o operators, out io.Writer) error {
	transactions, blocked, purges := 0, 0, 0
	err := eachPage(ctx, o.UnfinishedTransactions, func(t client.Transaction) {
		describeTransaction(out, t)
		transactions++
		if givenUp(t) {
			blocked++
		}
	})
	if err == nil {
		err = eachPage(ctx, o.BlockedPurges, func(p client.Task) {
			describePurge(out, p)
			purges++
		})
	}
	waiting := 0
	if err == nil {
		err = eachPage(ctx, o.WaitingPurges, func(p client.WaitingPurge) {
			describeWaiting(out, p)
			waiting++
		})
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s unfinished, %d given up; %s given up, %d waiting\n",
		counted(transactions, "transaction"), blocked, counted(purges, "purge"), waiting)
	if blocked+purges > 0 {
		return errors.New("something was given up; see moorage recover retry and moorage recover abort")
	}
	return nil
}

func describeTransaction(out io.Writer, t client.Transaction) {
	if t.Unreadable != "" {
		fmt.Fprintf(out, "%s  transaction, %s, whose record cannot be read: %s\n", t.ID, t.State, t.Unreadable)
		fmt.Fprintln(out, "    the servers leave it alone; moorage recover forget removes it and leaves its files")
		return
	}
	var by string
	if t.Principal != "" {
		by = " by " + t.Principal
	}
	fmt.Fprintf(out, "%s  transaction in warehouse %s, %s, began %s%s\n",
		t.ID, t.Warehouse, t.State, t.Began.Format(time.RFC3339), by)
	if t.State == "pending" {
		fmt.Fprintf(out, "    its coordinator has until %s\n", t.Deadline.Format(time.RFC3339))
	}
	names := make([]string, len(t.Tables))
	for i, table := range t.Tables {
		names[i] = tableName(table)
	}
	fmt.Fprintf(out, "    %s: %s\n", counted(len(names), "table"), strings.Join(names, ", "))
	fmt.Fprintf(out, "    up to %s written, %d published\n", counted(len(t.Files), "file"), len(t.Published))
	if t.Blocker != nil {
		describeBlocker(out, *t.Blocker)
	}
}

func describePurge(out io.Writer, p client.Task) {
	if p.Unreadable != "" {
		fmt.Fprintf(out, "%s  task, probably a purge, whose record cannot be read: %s\n", p.ID, p.Unreadable)
		fmt.Fprintln(out, "    the servers leave it alone; moorage check names its table; "+
			"moorage recover forget removes it and leaves the files that it was to delete")
		return
	}
	if p.Table.Name == "" {
		fmt.Fprintf(out, "%s  purge of a table whose record cannot be read\n", p.ID)
	} else {
		fmt.Fprintf(out, "%s  purge of %s in warehouse %s\n", p.ID, tableName(p.Table), p.Table.Warehouse)
	}
	describeBlocker(out, p.Blocker)
}

// describeWaiting prints a purge that waits, and how to begin it at once.
func describeWaiting(out io.Writer, p client.WaitingPurge) {
	name := "a table whose record cannot be read"
	if p.Table.Name != "" {
		name = tableName(p.Table) + " in warehouse " + p.Table.Warehouse
	}
	fmt.Fprintf(out, "%s  purge of %s, waits\n", p.ID, name)
	size := ""
	if p.Bytes > 0 {
		size = sizeOf(uint64(p.Bytes)) + ", "
	}
	fmt.Fprintf(out, "    %sbegins %s; moorage recover retry begins it now\n", size, p.Begins.Format(time.RFC3339))
}

func describeBlocker(out io.Writer, b client.Blocker) {
	if b.Unreadable != "" {
		fmt.Fprintf(out, "    given up; the record that says why cannot be read: %s\n", b.Unreadable)
		return
	}
	fmt.Fprintf(out, "    given up after %s, last: %s\n", counted(b.Attempts, "attempt"), moorage.OneLine(b.LastError))
}

// tableName is the name of a table in its warehouse.
func tableName(ident moorage.Identifier) string {
	return strings.Join(append(append([]string{}, ident.Namespace...), ident.Name), ".")
}

func describeRetried(r client.Retried) string {
	switch {
	case r.Ended:
		return "the transaction is ended; nothing is left of it"
	case r.Kind == string(recovery.KindPurge):
		return "the servers try the purge again"
	}
	return "the servers try the transaction again; the first attempt: " + moorage.OneLine(r.Reason)
}

func describeAborted(out io.Writer, a client.Aborted) {
	if !a.Forgotten {
		fmt.Fprintln(out, "the transaction is aborted; the servers delete its files")
		return
	}
	fmt.Fprintf(out, "the transaction, which was %s, is forgotten; %s of it may be left\n",
		a.Was, counted(len(a.Left), "file"))
	for _, file := range a.Left {
		fmt.Fprintln(out, file)
	}
}
