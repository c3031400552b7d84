package file

import (
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// statBeneath describes the file called name if the kernel finds it without leaving folder, and it is a regular
// file. If not, os.Root knows why; kernels before 5.6 always say no.
func statBeneath(folder *os.File, name string) (fs.FileInfo, bool) {
	descriptor, err := unix.Openat2(int(folder.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, false
	}
	defer unix.Close(descriptor) // cannot fail: nothing was written
	found := &regularFile{name: name}
	if err := unix.Fstat(descriptor, &found.stat); err != nil || found.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, false
	}
	return found, true
}

// regularFile is the fs.FileInfo of a regular file.
type regularFile struct {
	name string
	stat unix.Stat_t
}

func (f *regularFile) Name() string       { return path.Base(f.name) }
func (f *regularFile) Size() int64        { return f.stat.Size }
func (f *regularFile) Mode() fs.FileMode  { return fs.FileMode(f.stat.Mode & 0o777) }
func (f *regularFile) ModTime() time.Time { return time.Unix(f.stat.Mtim.Unix()) }
func (f *regularFile) IsDir() bool        { return false }
func (f *regularFile) Sys() any           { return &f.stat }
