package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync/atomic"
	"syscall"

	"moorage/storage"
)

// Permissions before the umask. An operator whose engines run as another user sets the umask so
// that they can share files.
const (
	fileMode   fs.FileMode = 0o666
	folderMode fs.FileMode = 0o777
)

// Create writes a new file.
//
// It writes and syncs the body under a temporary name, which ends in ".tmp", in the file's own
// folder. Then it links the file to the final name. link(2) refuses an existing name. A file that a
// crash has left incomplete never has its final name. Last, Create syncs the folder. A crash can
// leave the temporary file, which sweep removes.
//
// We rejected the alternative of a file without a name, from open(2) with O_TMPFILE. A crash would
// then leave no temporary file. But a sync of a file without a name may have no effect. After a
// power cut the file can be empty on btrfs, and missing on ext4 without a journal. A sync after the
// link is too late, because the name may become durable before that sync.
//
// Some folders that lead to the file may not be durable yet. Create syncs them at the end, together
// with the file's own folder.
//
// If ctx ends, Create returns, even if its current step has not ended. No further step follows. If
// the file already has its name, or gets its name in the current step, the name is removed when
// that step ends.
func (s *Store) Create(ctx context.Context, location string, body []byte) error {
	c, err := s.newCreation(ctx, storage.File{Location: location, Body: body})
	if err != nil {
		return err
	}
	if !c.root.isSettled(c.folder()) {
		c.atOnce = min(foldersAtOnce, s.atOnce)
	}
	write := aWrite(c.atOnce, int64(len(body)))
	if err := s.calls.enter(ctx, &write); err != nil {
		return c.explain(err)
	}
	if err := c.start(ctx); err != nil {
		s.calls.leave(write)
		return c.explain(err)
	}
	_, err = run(ctx, s.calls, write, func() (struct{}, error) {
		defer c.end()
		return struct{}{}, s.create(ctx, c)
	}, nil)
	return atLocation(location, err)
}

// creation is a Create in progress.
type creation struct {
	root *root
	name string
	file storage.File
	mine *writing // the file being made; set by start
	// unsettled lists folders that must become durable before Create reports success.
	unsettled []string
	// atOnce is the number of folders that are synced at a time. Each of them counts as a call.
	atOnce int
}

func (s *Store) newCreation(ctx context.Context, file storage.File) (*creation, error) {
	root, name, err := s.locate(ctx, file.Location)
	return &creation{root: root, name: name, file: file, atOnce: 1}, err
}

// start waits until no other call in this process is making the file. If start succeeds, the caller
// must call end.
func (c *creation) start(ctx context.Context) (err error) {
	c.mine, err = c.root.startWriting(ctx, c.name)
	return err
}

func (c *creation) end() { c.root.endWriting(c.name, c.mine) }

// folder returns the name of the folder that holds the file.
func (c *creation) folder() string { return path.Dir(c.name) }

// explain returns the error of a failed Create.
func (c *creation) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return c.root.result(c.file.Location, c.name)
	case isEscape(err), isImpossible(err):
		return translate(c.file.Location, err)
	}
	return fmt.Errorf("create %s: %w", c.file.Location, err)
}

// create makes the file of c.
func (s *Store) create(ctx context.Context, c *creation) error {
	return c.explain(c.root.inFolder(ctx, c.folder(), func(unsettled []string) error {
		c.unsettled = unsettled
		d, err := s.newDraft(ctx, c)
		if err != nil {
			return err
		}
		defer d.close()
		if err = d.sync(ctx); err == nil {
			err = d.publish(ctx)
		}
		if err == nil {
			err = d.settle(ctx)
		}
		return err
	}))
}

// isImpossible reports whether err means that no file can have such a name: a part of it is too
// long, or is a file.
func isImpossible(err error) bool {
	return errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.ENOTDIR)
}

// writing is a file that is being made.
type writing struct {
	done chan struct{} // closed when the file is made, or has failed
	// hidden is set if the file did not exist before. In that case, readers must not see the file
	// until it is durable. The file may already have its name, but a power cut could still delete
	// it.
	hidden atomic.Bool
}

// startWriting waits until no other call in this process is making the file called name.
func (r *root) startWriting(ctx context.Context, name string) (*writing, error) {
	mine := &writing{done: make(chan struct{})}
	for {
		other, busy := r.writing.LoadOrStore(name, mine)
		if !busy {
			return mine, nil
		}
		select {
		case <-other.(*writing).done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *root) endWriting(name string, w *writing) {
	r.writing.Delete(name)
	close(w.done)
}

// isHidden reports whether readers must ignore the file called name, even if they find it. They
// check before they look for the file, and again when they have found it, because it may have got
// its name in between.
func (r *root) isHidden(name string) bool {
	w, ok := r.writing.Load(name)
	return ok && w.(*writing).hidden.Load()
}

// result returns the reason why a file could not get its name.
func (r *root) result(location, name string) error {
	if _, err := r.files.Stat(name); isEscape(err) {
		return translate(location, err)
	}
	return fmt.Errorf("%w: %s", storage.ErrExists, location)
}

// draft is a file in progress. The steps sync, publish and settle complete it, in this order. Each
// requires that the previous step succeeded. A failing step removes what it has made, as far as
// possible.
type draft struct {
	*creation
	parent    folderFS
	temporary string
	content   handle
}

// exists returns fs.ErrExist if the file exists and is durable. Any other error is the reason why
// its durability is unknown.
func (c *creation) exists(ctx context.Context) error {
	return cmp.Or(c.root.settleFolders(ctx, c.unsettled, c.atOnce), ctx.Err(), fs.ErrExist)
}

// newDraft writes the file of c under a temporary name in its folder. The caller must close the
// draft. newDraft returns fs.ErrExist if the file already exists.
func (s *Store) newDraft(ctx context.Context, c *creation) (*draft, error) {
	parent, err := c.root.files.Folder(c.folder())
	if err != nil {
		return nil, err
	}
	d := &draft{creation: c, parent: parent, temporary: s.newTemporary()}
	err = s.sweep(c.root, c.folder(), parent)
	if err == nil {
		err = d.write(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, parent.Close())
	}
	return d, nil
}

// base returns the file's name in its folder.
func (d *draft) base() string { return path.Base(d.name) }

// write makes the temporary file. From then on the final file is hidden from readers.
func (d *draft) write(ctx context.Context) error {
	_, err := d.parent.Lstat(d.base())
	if err == nil {
		return d.exists(ctx)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.mine.hidden.Store(true)
	d.content, err = d.parent.OpenFile(d.temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	if _, err = d.content.Write(d.file.Body); err != nil {
		err = errors.Join(err, d.content.Close())
		d.discard()
	}
	return err
}

// sync makes the content of the draft durable, but not its name. It does nothing if ctx has ended.
func (d *draft) sync(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = d.content.Sync()
	}
	if err = errors.Join(err, d.content.Close()); err != nil {
		d.discard()
	}
	return err
}

// publish gives the draft its final name.
func (d *draft) publish(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = d.parent.Link(d.temporary, d.base())
	}
	if errors.Is(err, fs.ErrExist) {
		if err = nil; !d.isLinked() {
			err = d.exists(ctx)
		}
	}
	d.discard()
	return err
}

// isLinked reports whether the final name already belongs to the draft. A network file system that
// has lost an answer repeats the link, and then reports that the name is taken.
func (d *draft) isLinked() bool {
	temporary, err := d.parent.Lstat(d.temporary)
	if err != nil {
		return false
	}
	named, err := d.parent.Lstat(d.base())
	return err == nil && os.SameFile(temporary, named)
}

// settle makes the file's name and the folders that lead to it durable. It does nothing if ctx has
// ended.
func (d *draft) settle(ctx context.Context) error {
	err := cmp.Or(d.root.settleFolders(ctx, d.unsettled, d.atOnce, d.parent.Sync), ctx.Err())
	if err != nil {
		// No reader has seen the file. If the name can be removed, the file never existed for them.
		_ = d.parent.Remove(d.base())
	}
	return err
}

func (d *draft) close() { _ = d.parent.Close() } // nothing was written through this handle

// discard removes the temporary name. After the link, that name is useless, but harmless if it
// stays.
func (d *draft) discard() { _ = d.parent.Remove(d.temporary) }
