package catalog

import (
	"context"
	"fmt"
	"slices"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/rebase"
	"moorage/metadata"
	"moorage/storage"
)

// tableEdit is the edit of a table.
type tableEdit struct {
	steps []metadata.Step // not empty
	// rebaser rebases the edit if it is an append, and the table and the request consent. It is nil
	// if the edit is not an append.
	rebaser *rebase.Rebaser
	append  metadata.Append
	choice  RebaseChoice // the request's choice about a rebase
}

func newTableEdit(rebaser *rebase.Rebaser, steps []metadata.Step, choice RebaseChoice) *tableEdit {
	e := &tableEdit{steps: steps, choice: choice}
	if len(steps) == 1 {
		if plain, ok := steps[0].Append(); ok {
			e.rebaser, e.append = rebaser, plain
		}
	}
	return e
}

func (e *tableEdit) Check(base document) error {
	return metadata.Check(base.(*metadata.Document), e.steps[0].Requirements)
}

func (e *tableEdit) Next(base document, env metadata.Env) (document, error) {
	return metadata.ApplySteps(base.(*metadata.Document), e.steps, env)
}

func (e *tableEdit) Asks() bool {
	return slices.ContainsFunc(e.steps, func(step metadata.Step) bool { return len(step.Updates) > 0 })
}

// Actions implements commit.Edit.
func (e *tableEdit) Actions() []string {
	var actions []string
	for _, step := range e.steps {
		actions = append(actions, textsOf(step.Updates)...)
	}
	return actions
}

// textsOf returns the texts of updates.
func textsOf[Update fmt.Stringer](updates []Update) []string {
	texts := make([]string, len(updates))
	for i, update := range updates {
		texts[i] = update.String()
	}
	return texts
}

// Replays reports whether base already contains all updates, including snapshots: see
// metadata.Document.IsReplay. Then an earlier attempt succeeded, but its answer was lost. The
// requirements held at that attempt, and need not hold now.
func (e *tableEdit) Replays(base document) bool {
	return !slices.ContainsFunc(e.steps, func(step metadata.Step) bool {
		return !base.(*metadata.Document).IsReplay(step.Updates)
	})
}

func (e *tableEdit) Pins() bool {
	return slices.ContainsFunc(e.steps, func(step metadata.Step) bool {
		return metadata.AssertsUUID(step.Requirements)
	})
}

func (e *tableEdit) Shares() (bytes int, ok bool) { return metadata.Shares(e.steps) }

func (e *tableEdit) Snapshot() int64 { return metadata.AddedSnapshot(e.steps) }

// Moves reports whether the edit is an append that can be rebased onto any newer snapshot.
func (e *tableEdit) Moves(ctx context.Context, ground commit.Ground) bool {
	return e.rebaser != nil && e.rebaser.IsWanted(ctx, rebaseTable(ground), e.choice)
}

func (e *tableEdit) Prepare(ctx context.Context, ground commit.Ground) bool {
	if !e.Moves(ctx, ground) {
		return false
	}
	late := e.Check(ground.Base) != nil
	return e.rebaser.Prepare(ctx, rebaseTable(ground), ground.Env, e.append, late)
}

func rebaseTable(ground commit.Ground) rebase.Table {
	return rebase.Table{Found: ground.Found, Document: ground.Base.(*metadata.Document)}
}

func (e *tableEdit) Begin(ground commit.Ground) commit.Chain {
	return &tableChain{ground: ground, chain: ground.Base.(*metadata.Document).Chain(ground.Env)}
}

// tableChain builds one version from the edits of a table.
type tableChain struct {
	ground commit.Ground
	chain  *metadata.Chain
	moves  *rebase.Moves // nil until the first append is rebased
}

// Add implements commit.Chain. Edits that share a version have one step.
func (c *tableChain) Add(ctx context.Context, edit commit.Edit) (metadata.Joining, error) {
	e := edit.(*tableEdit)
	joining, err := c.chain.Add(e.steps[0])
	if joining != metadata.Refused || moorage.KindOf(err) != moorage.KindCommitFailed || !e.Moves(ctx, c.ground) {
		return joining, err
	}
	if c.moves == nil {
		c.moves = e.rebaser.Begin(rebaseTable(c.ground), c.chain, c.ground.Room)
	}
	if !c.moves.Add(ctx, e.append) {
		return joining, err
	}
	return metadata.Joined, nil
}

func (c *tableChain) Finish() (document, []storage.File, error) {
	next, err := c.chain.Finish()
	if err != nil || c.moves == nil {
		return next, nil, err
	}
	return next, c.moves.Lists(), nil
}
