package file

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

// A listing does not cross into file systems mounted below its folder, such as /proc below /.
func TestListStaysOnItsFileSystem(t *testing.T) {
	t.Parallel()
	root, err := openRoot("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	top, err := root.(plainFS).Plain(".")
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	if sub, err := top.Sub("proc"); !errors.Is(err, syscall.EXDEV) || !isElsewhere(err) {
		t.Errorf("the folder of a mount is %v, %v", sub, err)
	}
	mounted, err := root.(plainFS).Plain("proc") // a table may be on its own mount
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Close()
	if sub, err := mounted.Sub("self"); !errors.Is(err, syscall.ELOOP) || !isElsewhere(err) { // a link
		t.Errorf("a link is %v, %v", sub, err)
	}
}

// If openat2(2) is missing, os.Root follows no link either.
func TestRootedPlain(t *testing.T) {
	t.Parallel()
	root, err := openRoot("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if folder, err := root.(rootFS).rootedPlain("self"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link is %v, %v", folder, err)
	}
	folder, err := root.(rootFS).rootedPlain("sys/kernel")
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if entries, err := folder.ReadDir(1); err != nil || len(entries) != 1 {
		t.Errorf("its entries are %v, %v", entries, err)
	}
	if sub, err := folder.Sub("ostype"); err == nil {
		t.Errorf("a file is %v", sub)
	}
}
