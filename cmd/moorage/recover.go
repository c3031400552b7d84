package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/management/client"
	"moorage/registry"
	"moorage/registry/pebble"
)

// operatorText is said of every command that looks at what is unfinished.
const operatorText = "\n\nWithout --uri it opens the store itself; if that is a folder, its server must be stopped.\n"

func recoverListCommand() command {
	return command{
		name:    "recover list",
		summary: "list transactions that did not end, and what was given up",
		text: "Prints every transaction over several tables of which something is left to do: those under way, those that the recovery is ending, and those " +
			"that it gave up after 50 attempts or 5 minutes, to which those are counted whose record cannot be read. Then the purges that were given up, with tasks " +
			"that cannot be read. " +
			"Exits with 1 if anything was given up." + operatorText,
		settings: recoverSettings(),
		validate: validateS3,
		run: func(ctx context.Context, c config, env environment) error {
			return withOperators(ctx, c, env, func(o operators) error { return recoverList(ctx, o, env.stdout) })
		},
	}
}

func recoverRetryCommand() command {
	return command{
		name:    "recover retry",
		operand: "ID|all",
		summary: "try again what was given up",
		text: "Has the transaction or the purge with this id tried again from the start, as recover list shows it: once its storage is mended. A transaction is " +
			"tried at once, and then by the servers; a purge by the servers. For all that was given up say all instead of an id." + operatorText,
		settings: recoverSettings(),
		validate: func(c config, faults *usageError) {
			validateS3(c, faults)
			if c.Operand != everything && !isUnfinishedID(c.Operand) {
				faults.addf("%q is neither an id, 32 hexadecimal digits that recover list shows, nor all", c.Operand)
			}
		},
		run: func(ctx context.Context, c config, env environment) error {
			return withOperators(ctx, c, env, func(o operators) error {
				if c.Operand == everything {
					return retryAll(ctx, o, env.stdout)
				}
				retried, err := o.Retry(ctx, c.Operand)
				if err != nil {
					return err
				}
				fmt.Fprintln(env.stdout, describeRetried(retried))
				return nil
			})
		},
	}
}

func recoverAbortCommand() command {
	return command{
		name:    "recover abort",
		operand: "ID",
		summary: "end a transaction, or remove a task that cannot be read",
		text: "Ends the transaction with this id, as recover list shows it. One that is pending can no longer become true, and the servers delete its files. One that " +
			"was given up is forgotten: the command prints the files that may be left of it, and nobody will delete them. So is one whose record cannot be read, of " +
			"which no files can be printed.\n\nA purge cannot be aborted, but if the record of its task cannot be read that is removed, and the files that were to be purged stay, as far " +
			"as they are there; the command prints where. The table can be registered again until its window ends, as after a drop without a purge, unless " +
			"the purge had begun." + operatorText,
		settings: recoverSettings(),
		validate: func(c config, faults *usageError) {
			validateS3(c, faults)
			if !isUnfinishedID(c.Operand) {
				faults.addf("%q is no id, 32 hexadecimal digits that recover list shows; one is aborted at a time", c.Operand)
			}
		},
		run: func(ctx context.Context, c config, env environment) error {
			return withOperators(ctx, c, env, func(o operators) error {
				aborted, err := o.Abort(ctx, c.Operand)
				if err != nil {
					return err
				}
				describeAborted(env.stdout, aborted)
				return nil
			})
		},
	}
}

func recoverForgetCommand() command {
	return command{
		name:    "recover forget",
		summary: "after a restore: forget what would have files deleted",
		text: "For a store that was restored from something else than moorage backup: a dump or a point in time of a database, a snapshot of a disk, a folder that was " +
			"copied. Such a copy remembers transactions that were under way, and purges that were asked for. They may have ended otherwise since: a server that " +
			"went by them would delete current files of the store that was replaced, or of a newer copy, which could not be gone back to then.\n\nThe command forgets the " +
			"transactions, and calls the purges off: no file is deleted, so what they would have deleted is left over. A table that was to be purged is then as one that was dropped without; " +
			"if the purge had begun, it cannot come back. Run it while no server uses the store, before the first one starts on it. It can be run again, and must be after an error.\n",
		settings: storeSettings(),
		run:      recoverForget,
	}
}

// recoverForget has the store say of no file any more that it is to be deleted.
func recoverForget(ctx context.Context, c config, env environment) (err error) {
	store, err := openStoppedStore(ctx, c, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	off, err := catalog.CallOffDeletions(ctx, store, time.Now())
	if err == nil {
		fmt.Fprintf(env.stdout, "%s forgotten, %s called off; files that they would have deleted are left over\n",
			counted(off.Transactions, "transaction"), counted(off.Purges, "purge"))
	}
	return err
}

// isUnfinishedID tells whether text is what a transaction or a purge can have as its id.
func isUnfinishedID(text string) bool {
	var id registry.ID
	return id.UnmarshalText([]byte(text)) == nil && !id.IsZero()
}

func recoverSettings() []setting {
	return append(nodeSettings(), uriSetting("Ask the server that runs at this address."))
}

// operators is what an operator may do: a catalog of this process, or a server that runs.
type operators interface {
	UnfinishedTransactions(ctx context.Context, page catalog.Page) ([]catalog.UnfinishedTransaction, string, error)
	BlockedPurges(ctx context.Context, page catalog.Page) ([]catalog.BlockedPurge, string, error)
	Retry(ctx context.Context, id string) (catalog.Retried, error)
	Abort(ctx context.Context, id string) (catalog.Aborted, error)
}

// withOperators runs do on the server at c.URI, or on the store.
func withOperators(ctx context.Context, c config, env environment, do func(operators) error) error {
	if c.URI != "" {
		return do(client.New(c.URI))
	}
	err := withStopped(ctx, c, env, func(node *node) error { return do(node.catalog) })
	if errors.Is(err, pebble.ErrLocked) {
		err = fmt.Errorf("%w, or ask it with --uri", err)
	}
	return err
}

// recoverPage is how many transactions or purges are asked for at once.
const recoverPage = 1000

// eachPage calls visit with everything that list answers, page by page.
func eachPage[T any](ctx context.Context, list func(context.Context, catalog.Page) ([]T, string, error), visit func(T)) error {
	for page := (catalog.Page{Limit: recoverPage}); ; {
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

// everything is what recover retry takes in the place of an id.
const everything = "all"

// retryAll has all tried again that was given up; that one cannot be keeps no other from it.
func retryAll(ctx context.Context, o operators, out io.Writer) error {
	var ids []string
	err := eachPage(ctx, o.UnfinishedTransactions, func(t catalog.UnfinishedTransaction) {
		if givenUp(t) {
			ids = append(ids, t.ID)
		}
	})
	if err == nil {
		err = eachPage(ctx, o.BlockedPurges, func(p catalog.BlockedPurge) { ids = append(ids, p.ID) })
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

// givenUp tells whether the servers leave a transaction alone until an operator says what is to be done.
func givenUp(t catalog.UnfinishedTransaction) bool { return t.Blocker != nil || t.Unreadable != "" }

// recoverList prints everything, and fails if something was given up.
func recoverList(ctx context.Context, o operators, out io.Writer) error {
	transactions, blocked, purges := 0, 0, 0
	err := eachPage(ctx, o.UnfinishedTransactions, func(t catalog.UnfinishedTransaction) {
		describeTransaction(out, t)
		transactions++
		if givenUp(t) {
			blocked++
		}
	})
	if err == nil {
		err = eachPage(ctx, o.BlockedPurges, func(p catalog.BlockedPurge) {
			describePurge(out, p)
			purges++
		})
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s unfinished, %d given up; %s given up\n", counted(transactions, "transaction"), blocked, counted(purges, "purge"))
	if blocked+purges > 0 {
		return errors.New("something was given up; see moorage recover retry and moorage recover abort")
	}
	return nil
}

func describeTransaction(out io.Writer, t catalog.UnfinishedTransaction) {
	if t.Unreadable != "" {
		fmt.Fprintf(out, "%s  transaction, %s, whose record cannot be read: %s\n", t.ID, t.State, t.Unreadable)
		fmt.Fprintln(out, "    the servers leave it alone; moorage recover abort forgets it and leaves its files")
		return
	}
	var by string
	if t.Principal != "" {
		by = " by " + t.Principal
	}
	fmt.Fprintf(out, "%s  transaction in warehouse %s, %s, began %s%s\n", t.ID, t.Warehouse, t.State, t.Began.Format(time.RFC3339), by)
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

func describePurge(out io.Writer, p catalog.BlockedPurge) {
	if p.Unreadable != "" {
		fmt.Fprintf(out, "%s  task, probably a purge, whose record cannot be read: %s\n", p.ID, p.Unreadable)
		fmt.Fprintln(out, "    the servers leave it alone; moorage check says of which table; moorage recover abort removes it and leaves the files that it was to delete")
		return
	}
	if p.Table.Name == "" {
		fmt.Fprintf(out, "%s  purge of a table whose record cannot be read\n", p.ID)
	} else {
		fmt.Fprintf(out, "%s  purge of %s in warehouse %s\n", p.ID, tableName(p.Table), p.Table.Warehouse)
	}
	describeBlocker(out, p.Blocker)
}

func describeBlocker(out io.Writer, b catalog.Blocker) {
	if b.Unreadable != "" {
		fmt.Fprintf(out, "    given up; the record that says why cannot be read: %s\n", b.Unreadable)
		return
	}
	fmt.Fprintf(out, "    given up after %s, last: %s\n", counted(b.Attempts, "attempt"), moorage.OneLine(b.LastError))
}

// tableName is what a table is called in its warehouse.
func tableName(ident moorage.Identifier) string {
	return strings.Join(append(append([]string{}, ident.Namespace...), ident.Name), ".")
}

func describeRetried(r catalog.Retried) string {
	switch {
	case r.Ended:
		return "the transaction is ended; nothing is left of it"
	case r.Kind == catalog.UnfinishedKindPurge:
		return "the servers try the purge again"
	}
	return "the servers try the transaction again; the first attempt: " + moorage.OneLine(r.Reason)
}

func describeAborted(out io.Writer, a catalog.Aborted) {
	if a.Kind == catalog.UnfinishedKindPurge {
		describeRemoved(out, a)
		return
	}
	if !a.Forgotten {
		fmt.Fprintln(out, "the transaction is aborted; the servers delete its files")
		return
	}
	if a.Unreadable {
		fmt.Fprintf(out, "the transaction, which was %s, is forgotten; its record could not be read, so files that it named may be left, and nobody knows which\n", a.Was)
		return
	}
	fmt.Fprintf(out, "the transaction, which was %s, is forgotten; %s of it may be left\n", a.Was, counted(len(a.Left), "file"))
	for _, file := range a.Left {
		fmt.Fprintln(out, file)
	}
}

// describeRemoved says what it means that a task is gone that could not be read.
func describeRemoved(out io.Writer, a catalog.Aborted) {
	if a.Table == nil {
		fmt.Fprintln(out, "the task, whose record could not be read, is removed; no dropped table awaited it")
		return
	}
	then := "it can be registered again until its window ends"
	if a.Was == registry.StatePurging.String() {
		then = "that had begun, so some of its files may be gone, and it cannot come back"
	}
	fmt.Fprintf(out, "the task, whose record could not be read, is removed, so %s in warehouse %s is not purged: %s; files stay at\n", tableName(*a.Table), a.Table.Warehouse, then)
	for _, location := range a.Left {
		fmt.Fprintln(out, location)
	}
}
