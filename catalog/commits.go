package catalog

import (
	"context"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/metadata"
)

// TransactionChangesMax is the maximum number of changes in one transaction. One Apply commits all
// of them, and may have registry.BatchItemsMax items. Each change needs up to a dozen items.
const TransactionChangesMax = 256

// Commit changes one table, or creates one if its requirements contain assert-create:
//
//	resolve → check → build → write → apply
//
// The pipeline reads the pointer, and checks the requirements against the document named in it. The
// updates produce a new document. Its file is written under a name that was never used before. One
// Apply moves the pointer, on condition that the pointer has not changed since it was read. If it
// has changed, all steps are repeated, including the check of the requirements, until the request's
// deadline.
//
// So a commit whose requirements hold is not refused only because other commits were faster. If a
// requirement fails, the commit is refused at once, before anything is written.
//
// Commit takes no lock: the condition of the Apply alone makes it correct. Commits to one table on
// one node run one after the other. This only prevents conflicts among them.
//
// Updates that change nothing write nothing, and return the current version.
//
// Errors: KindNoSuchTable; KindCommitFailed if a requirement fails, or at the deadline (nothing was
// applied); KindBadRequest, KindIllegalArgument, KindValidation for updates that can never succeed;
// KindUnavailable (nothing was applied); KindCommitUnknown (the commit may have been applied).
// Durable when it returns. Source: REST specification, updateTable.
func (c *Catalog) Commit(ctx context.Context, ident moorage.Identifier, request CommitRequest) (*Table, error) {
	committed, err := c.commitTable(ctx, ident, []metadata.Step{request.step()}, request.Rebase, false)
	return tableOf(committed.Version), moorage.Annotate("catalog.Commit", ident.String(), err)
}

// commitTable commits several changes of one table, in order, as one version. If silent is true, it
// returns no table.
func (c *Catalog) commitTable(ctx context.Context, ident moorage.Identifier, steps []metadata.Step,
	rebase RebaseChoice, silent bool) (commit.Outcome, error) {
	target, err := c.targetOf(c.asker(gate.Commit), ident, steps, rebase)
	intent := commit.Intent{
		Verb: gate.Commit, On: []moorage.Identifier{ident}, Edits: []commit.Target{target}, Silent: silent,
	}
	switch {
	case err != nil:
		intent = refusal(gate.Commit, ident, err)
		intent.Silent = silent
	case target.Create != nil:
		intent.Verb = gate.CommitCreate
		intent.Look = func(context.Context) (commit.Scope, error) {
			return commit.Scope{Warehouse: ident.Warehouse, Names: intent.On}, ident.Validate()
		}
	}
	return c.submit(ctx, intent)
}

// targetOf returns the commit target for steps on the table called ident. steps must not be empty.
// rebase is the request's choice for an append whose branch has moved.
func (p *parts) targetOf(by directory.Asker, ident moorage.Identifier, steps []metadata.Step,
	rebase RebaseChoice) (commit.Target, error) {
	create, err := metadata.IsCreate(steps[0].Requirements)
	target := commit.Target{
		Kind: directory.Table(), Ident: ident, Edit: newTableEdit(p.rebaser, steps, rebase),
		Asks: by.Verb.NeedsFor(gate.OfObject, gate.ForUpdates, askedBy(steps)),
	}
	if !create {
		target.Admits = p.checkPathUpdates(by, ident, pathsOf(steps))
		return target, err
	}
	if by.Verb == gate.Commit {
		by.Verb = gate.CommitCreate
	}
	target.Create = p.creationOf(by, ident, steps)
	target.MadeBefore = func(base document) bool { return base.(*metadata.Document).WasCreatedBy(steps) }
	return target, err
}

// CommitTransaction changes several tables of a warehouse, or creates them (assert-create). It
// commits all changes or none. A reader that sees one of the changes sees all of them.
//
// Changes of one table are applied in their order, as one version. A table may have only
// requirements, or only updates that change nothing. The requirements of such a table hold at the
// moment when the other tables change. Package commit describes how the tables are changed
// together. A request that names only one table is handled as a Commit. A request that adds
// snapshots succeeds without a change if all its tables show that an earlier attempt has added
// them.
//
// Errors: the errors of Commit, for the first table that fails. KindBadRequest if there are no
// changes or more than TransactionChangesMax, or if a table is in another warehouse. KindTooLarge
// for tables whose metadata has more than 512 MiB together. KindCommitFailed, at once or after
// Config.TransactionWait, if another operation has locked one of the tables. Durable when it
// returns. Source: REST specification, commitTransaction.
func (c *Catalog) CommitTransaction(ctx context.Context, warehouse string, changes []TableChange) error {
	const op = "catalog.CommitTransaction"
	edits, err := groupChanges(warehouse, changes)
	if err != nil {
		err = c.Refuse(ctx, gate.Transaction, moorage.Identifier{Warehouse: warehouse}, err)
		return moorage.Annotate(op, warehouse, err)
	}
	if len(edits) == 1 {
		_, err := c.commitTable(ctx, edits[0].ident, edits[0].steps, edits[0].rebase, true)
		return moorage.Annotate(op, warehouse, err)
	}
	intent := commit.Intent{Verb: gate.Transaction, Silent: true}
	for _, edit := range edits {
		target, err := c.targetOf(c.asker(gate.Transaction), edit.ident, edit.steps, RebaseUnset)
		if err != nil {
			err = c.Refuse(ctx, gate.Transaction, edit.ident, commit.OfTable(edit.ident, err))
			return moorage.Annotate(op, warehouse, err)
		}
		intent.On, intent.Edits = append(intent.On, edit.ident), append(intent.Edits, target)
	}
	_, err = c.submit(ctx, intent)
	return moorage.Annotate(op, warehouse, err)
}

// stepsOf holds the changes of one table of a transaction.
type stepsOf struct {
	ident  moorage.Identifier
	steps  []metadata.Step
	rebase RebaseChoice
}

// groupChanges returns the changes grouped by table, in the order in which the tables first occur.
func groupChanges(warehouse string, changes []TableChange) ([]*stepsOf, error) {
	switch {
	case len(changes) == 0:
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid transaction: there are no table changes")
	case len(changes) > TransactionChangesMax:
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Invalid transaction: %d table changes, at most %d are allowed", len(changes), TransactionChangesMax)
	}
	grouped := make([]*stepsOf, 0, len(changes))
	at := make(map[string]*stepsOf, len(changes))
	for _, change := range changes {
		if err := change.Ident.Validate(); err != nil {
			return nil, err
		}
		if change.Ident.Warehouse != warehouse {
			return nil, moorage.Errorf(moorage.KindBadRequest,
				"Table %s is not in the warehouse %s", change.Ident, warehouse)
		}
		key := directory.NameKey(change.Ident)
		table, again := at[key]
		if !again {
			table = &stepsOf{ident: change.Ident, rebase: change.Rebase}
			at[key], grouped = table, append(grouped, table)
		}
		table.steps = append(table.steps, change.step())
	}
	return grouped, nil
}

// askedBy returns the privileges that the updates of steps require.
func askedBy(steps []metadata.Step) (asked access.Privileges) {
	for _, step := range steps {
		for _, update := range step.Updates {
			asked |= gate.OfUpdate(update.Action(), update.Names())
		}
	}
	return asked
}
