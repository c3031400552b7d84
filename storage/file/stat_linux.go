package file

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// statBeneath describes the file called name if the kernel finds it without leaving folder. If it says no,
// os.Root knows why; kernels before 5.6 always say no.
func statBeneath(folder *os.File, name string) (fs.FileInfo, bool) {
	descriptor, err := unix.Openat2(int(folder.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, false
	}
	file := os.NewFile(uintptr(descriptor), name)
	defer file.Close()
	found, err := file.Stat()
	return found, err == nil
}
