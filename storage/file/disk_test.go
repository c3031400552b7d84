package file

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// disk is a file system in memory that remembers what was synced. When the power is cut, it keeps
// an arbitrary part of the rest. It serves one goroutine. It supports only hard links.
type disk struct {
	t    *testing.T
	root *node

	calls int
	// before is called before call k. If it returns an error, the call returns that error; a write
	// first does half of its work. If before is nil, there are no faults.
	before func(k int, op string) error
	// after is called after each call.
	after func()
	busy  bool // set during before and after, whose own calls are not counted

	held int // number of open handles and folders
}

// node is a file or a folder. A file with several names is one node.
type node struct {
	mode     fs.FileMode
	modified time.Time

	data, synced     []byte           // of a file
	entries, durable map[string]*node // of a folder
	removed          bool             // a folder that is held open and has no name: nothing can be made in it
}

func newDisk(t *testing.T) *disk { return &disk{t: t, root: newFolder()} }

func newFolder() *node {
	return &node{mode: fs.ModeDir | 0o777, entries: map[string]*node{}, durable: map[string]*node{}}
}

// open returns the folder at an absolute path as a fileSystem.
func (d *disk) open(folder string) (fileSystem, error) {
	if err := d.call("open"); err != nil {
		return nil, err
	}
	defer d.called()
	found, err := d.root.find(strings.TrimPrefix(folder, "/"))
	if err != nil {
		return nil, err
	}
	return diskFS{d, found}, nil
}

// call counts a call, and returns the fault for it.
func (d *disk) call(op string) error {
	if d.busy {
		return nil
	}
	d.calls++
	if d.before == nil {
		return nil
	}
	var err error
	d.quietly(func() { err = d.before(d.calls-1, op) })
	return err
}

// quietly calls do. Calls made by do are not counted and get no faults.
func (d *disk) quietly(do func()) {
	defer func(busy bool) { d.busy = busy }(d.busy)
	d.busy = true
	do()
}

func (d *disk) called() {
	if !d.busy && d.after != nil {
		d.quietly(d.after)
	}
}

// cutPower returns the disk as it may be after a power cut now. Each name that was not synced may
// exist or not. Each file has its synced content, or a part of its new content. If random is nil,
// everything that was not synced is lost.
func (d *disk) cutPower(random *rand.Rand) *disk {
	kept := make(map[*node]*node)
	var keep func(*node) *node
	keep = func(old *node) *node {
		if same, ok := kept[old]; ok {
			return same
		}
		after := &node{mode: old.mode, modified: old.modified}
		kept[old] = after
		if !old.mode.IsDir() {
			survives := len(old.synced) // files only grow
			if random != nil {
				survives += random.IntN(len(old.data) - survives + 1)
			}
			after.data = slices.Clone(old.data[:survives])
			after.synced = after.data
			return after
		}
		after.entries, after.durable = map[string]*node{}, map[string]*node{}
		for _, name := range old.names() {
			now, before := old.entries[name], old.durable[name]
			survivor := before
			if random != nil && random.IntN(2) == 0 {
				survivor = now
			}
			if survivor != nil {
				after.entries[name] = keep(survivor)
				after.durable[name] = after.entries[name]
			}
		}
		return after
	}
	return &disk{t: d.t, root: keep(d.root)}
}

// remove removes the entry called name of a folder, with everything in it. If a removed folder is
// still open, nothing can be made in it.
func (n *node) remove(name string) {
	entry, ok := n.entries[name]
	if !ok {
		return
	}
	delete(n.entries, name)
	entry.removed = true
	for inside := range entry.entries {
		entry.remove(inside)
	}
}

// names returns the present and the synced names of a folder, in order.
func (n *node) names() []string {
	var names []string
	for _, entries := range []map[string]*node{n.entries, n.durable} {
		for name := range entries {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// find returns the node at a relative path.
func (n *node) find(name string) (*node, error) {
	if name == "." || name == "" {
		return n, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !n.mode.IsDir() {
			return nil, syscall.ENOTDIR
		}
		next, ok := n.entries[part]
		if !ok {
			return nil, syscall.ENOENT
		}
		n = next
	}
	return n, nil
}

// walk calls do with the path of each file.
func (n *node) walk(at string, do func(name string, file *node)) {
	if !n.mode.IsDir() {
		do(at, n)
	}
	for _, name := range n.names() {
		if child, ok := n.entries[name]; ok {
			child.walk(path.Join(at, name), do)
		}
	}
}

// diskFS is a folder of a disk.
type diskFS struct {
	disk *disk
	root *node
}

// do makes one call, which operates on the folder that contains name.
func (f diskFS) do(op, name string, work func(folder *node, base string) error) error {
	if err := f.disk.call(op); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	defer f.disk.called()
	folder, err := f.root.find(path.Dir(name))
	if err == nil && !folder.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		err = work(folder, path.Base(name))
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (f diskFS) OpenFile(name string, flag int, mode fs.FileMode) (handle, error) {
	var opened *diskFile
	err := f.do("openat", name, func(folder *node, base string) error {
		found, err := f.root.find(name)
		switch {
		case err == nil && flag&os.O_EXCL != 0:
			return syscall.EEXIST
		case err != nil && flag&os.O_CREATE == 0:
			return err
		case folder.removed:
			return syscall.ENOENT
		case err != nil:
			found = &node{mode: mode, modified: time.Now()}
			folder.entries[base] = found
		}
		opened = &diskFile{disk: f.disk, node: found, Reader: bytes.NewReader(found.data)}
		f.disk.held++
		return nil
	})
	return opened, err
}

func (f diskFS) Mkdir(name string, _ fs.FileMode) error {
	return f.do("mkdirat", name, func(folder *node, base string) error {
		if _, ok := folder.entries[base]; ok {
			return syscall.EEXIST
		}
		folder.entries[base] = newFolder()
		return nil
	})
}

func (f diskFS) Link(from, to string) error {
	return f.do("linkat", to, func(folder *node, base string) error {
		found, err := f.root.find(from)
		if err != nil {
			return err
		}
		if folder.removed {
			return syscall.ENOENT
		}
		if _, ok := folder.entries[base]; ok {
			return syscall.EEXIST
		}
		folder.entries[base] = found
		return nil
	})
}

func (f diskFS) Remove(name string) error {
	return f.do("unlinkat", name, func(folder *node, base string) error {
		found, ok := folder.entries[base]
		if !ok {
			return syscall.ENOENT
		}
		if len(found.entries) > 0 {
			return syscall.ENOTEMPTY
		}
		delete(folder.entries, base)
		return nil
	})
}

func (f diskFS) Chtimes(name string, _, modified time.Time) error {
	return f.do("utimensat", name, func(*node, string) error {
		found, err := f.root.find(name)
		if err == nil {
			found.modified = modified
		}
		return err
	})
}

func (f diskFS) Lstat(name string) (fs.FileInfo, error) { return f.Stat(name) }

func (f diskFS) Stat(name string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := f.do("fstatat", name, func(*node, string) error {
		found, err := f.root.find(name)
		info = diskInfo{found, path.Base(name)}
		return err
	})
	return info, err
}

func (f diskFS) Seen(name string) bool {
	found, err := f.Stat(name)
	return err == nil && found.Mode().IsRegular()
}

func (f diskFS) Folder(name string) (folderFS, error) {
	var folder folderFS
	err := f.do("opendir", name+"/.", func(found *node, _ string) error {
		folder = openFolder{diskFS{f.disk, found}}
		f.disk.held++
		return nil
	})
	return folder, err
}

// openFolder is a folder that Folder has opened.
type openFolder struct{ diskFS }

func (f openFolder) Close() error {
	f.disk.held--
	return nil
}

func (f diskFS) Sync() error { return syncFolder(f, ".") }

func (f diskFS) Close() error { return nil }

// diskFile is an open file or folder of a disk.
type diskFile struct {
	disk *disk
	node *node
	*bytes.Reader
	listed bool // Readdirnames has returned all names
}

// Readdirnames returns all names at once, however many are requested.
func (f *diskFile) Readdirnames(int) ([]string, error) {
	if err := f.disk.call("readdir"); err != nil {
		return nil, err
	}
	defer f.disk.called()
	if f.listed {
		return nil, io.EOF
	}
	f.listed = true
	return slices.Sorted(maps.Keys(f.node.entries)), nil
}

func (f *diskFile) Write(body []byte) (int, error) {
	if err := f.disk.call("write"); err != nil {
		half := len(body) / 2
		f.node.data = append(f.node.data, body[:half]...)
		return half, err
	}
	defer f.disk.called()
	f.node.data = append(f.node.data, body...)
	return len(body), nil
}

func (f *diskFile) Sync() error {
	if err := f.disk.call("fsync"); err != nil {
		return err
	}
	defer f.disk.called()
	f.node.synced = slices.Clone(f.node.data)
	if f.node.mode.IsDir() {
		f.node.durable = map[string]*node{}
		for name, entry := range f.node.entries {
			f.node.durable[name] = entry
		}
	}
	return nil
}

func (f *diskFile) Stat() (fs.FileInfo, error) { return diskInfo{f.node, ""}, f.disk.call("fstat") }

// Close releases the handle, even if it fails.
func (f *diskFile) Close() error {
	f.disk.held--
	return f.disk.call("close")
}

// diskInfo describes a node.
type diskInfo struct {
	node *node
	name string
}

func (i diskInfo) Name() string       { return i.name }
func (i diskInfo) Size() int64        { return int64(len(i.node.data)) }
func (i diskInfo) Mode() fs.FileMode  { return i.node.mode }
func (i diskInfo) ModTime() time.Time { return i.node.modified }
func (i diskInfo) IsDir() bool        { return i.node.mode.IsDir() }
func (i diskInfo) Sys() any           { return nil }

var (
	_ fileSystem = diskFS{}
	_ io.Reader  = (*diskFile)(nil)
)
