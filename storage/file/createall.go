package file

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sync/errgroup"

	"moorage/internal/worker"
	"moorage/storage"
)

const (
	// batchAtOnce is the number of files that one CreateAll works on at a time.
	batchAtOnce = 16
	// batchMax is the maximum number of files that go through the steps together. All of them are
	// open at once.
	batchMax = 64
)

// batched is one file of a CreateAll.
type batched struct {
	*creation
	index   int
	started bool
	draft   *draft // set once it is written
	err     error  // the reason why the file takes no further step
}

// CreateAll implements storage.Batcher. Up to batchMax files go through each step of Create
// together. CreateAll writes all of them, syncs them, links them to their final names, and then
// syncs all folders. So a file system with a journal writes its journal once for all concurrent
// syncs, instead of once for each.
func (s *Store) CreateAll(ctx context.Context, files []storage.File) []error {
	failures := make([]error, len(files))
	byRoot := make(map[*root][]*batched)
	for i, file := range files {
		c, err := s.newCreation(ctx, file)
		if failures[i] = err; err == nil {
			byRoot[c.root] = append(byRoot[c.root], &batched{creation: c, index: i})
		}
	}
	for _, root := range s.roots {
		if batch := byRoot[root]; len(batch) > 0 {
			for i, err := range s.createBatch(ctx, root, batch) {
				failures[i] = err
			}
		}
	}
	return failures
}

// createBatch makes the files of batch, which are all in root. It returns their errors, by the
// files' indexes in the request.
func (s *Store) createBatch(ctx context.Context, root *root, batch []*batched) map[int]error {
	// Callers that make some of the same files start them in the same order, so they do not wait
	// for each other in a cycle.
	slices.SortFunc(batch, func(a, b *batched) int {
		return cmp.Or(cmp.Compare(a.name, b.name),
			cmp.Compare(a.index, b.index))
	})
	var bytes int64
	for _, b := range batch {
		bytes += int64(len(b.file.Body))
	}
	write := aWrite(min(len(batch), s.atOnce), bytes)
	failures := make(map[int]error, len(batch))
	err := s.calls.enter(ctx, &write)
	if err == nil {
		for i, b := range batch {
			if isRepeated(batch, i) {
				b.err = fs.ErrExist
			} else if b.err = b.start(ctx); b.err == nil {
				b.started = true
			}
		}
		failures, err = run(ctx, s.calls, write, func() (map[int]error,
			error) {
			return s.createStarted(ctx, root, batch), nil
		}, nil)
	}
	if err != nil { // an abandoned call may still use batch
		failures = make(map[int]error, len(batch))
		for _, b := range batch {
			failures[b.index] = b.explain(err)
		}
	}
	return failures
}

// createStarted makes the started files of batch, calls end for each, and returns the errors of all
// files.
func (s *Store) createStarted(ctx context.Context, root *root, batch []*batched) map[int]error {
	for _, b := range batch {
		if b.started {
			defer b.end()
		}
	}
	for some := range slices.Chunk(batch, batchMax) {
		s.createTogether(ctx, root, some)
	}
	failures := make(map[int]error, len(batch))
	for i, b := range batch {
		switch {
		case isRepeated(batch, i) && batch[i-1].err != nil: // if the first of two equal files failed, so has this
			b.err = batch[i-1].err
		case errors.Is(b.err, fs.ErrNotExist): // its folder has just been removed
			b.err = s.create(ctx, b.creation)
		default:
			b.err = b.explain(b.err)
		}
		failures[b.index] = b.err
	}
	return failures
}

// isRepeated reports whether the i-th file of a sorted batch has the same name as the file before
// it. In that case, only the first of the two is made.
func isRepeated(batch []*batched, i int) bool { return i > 0 && batch[i].name == batch[i-1].name }

// createTogether makes the files of batch that have no error yet.
func (s *Store) createTogether(ctx context.Context, root *root, batch []*batched) {
	leave, err := root.enterFolders(ctx)
	if err != nil {
		for _, b := range batch {
			b.err = cmp.Or(b.err, err)
		}
		return
	}
	defer leave()
	s.each(ctx, batch, func(ctx context.Context, b *batched) error {
		err := ctx.Err()
		if err == nil {
			b.unsettled, err = root.makeFolders(b.folder())
		}
		if err == nil {
			b.draft, err = s.newDraft(ctx, b.creation)
		}
		if err == nil {
			startWriteout(b.draft.content)
		}
		return err
	})
	s.each(ctx, batch, func(ctx context.Context, b *batched) error { return b.draft.sync(ctx) })
	s.each(ctx, batch, func(ctx context.Context, b *batched) error { return b.draft.publish(ctx) })
	s.each(ctx, batch, func(ctx context.Context, b *batched) error { return b.draft.settle(ctx) })
	for _, b := range batch {
		if b.draft != nil {
			b.draft.close()
		}
	}
}

// each calls do for every file of batch that has no error yet, several at a time. An error returned
// by do becomes the file's error, and so does a panic.
func (s *Store) each(ctx context.Context, batch []*batched, do func(context.Context, *batched) error) {
	var group errgroup.Group
	group.SetLimit(s.atOnce)
	for _, b := range batch {
		if b.err == nil {
			group.Go(func() error {
				b.err = worker.Safely(ctx, func(ctx context.Context) error { return do(ctx, b) })
				if errors.Is(b.err, fs.ErrNotExist) {
					b.root.durable.forget(b.folder()) // another process may have recreated it, not durably
				}
				return nil
			})
		}
	}
	_ = group.Wait() // each file has its own error
}
