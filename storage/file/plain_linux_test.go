package file

import (
	"errors"
	"syscall"
	"testing"
)

// A listing does not cross into what is mounted below its folder, as /proc is below /.
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
	mounted, err := root.(plainFS).Plain("proc") // a table may be on a mount of its own
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Close()
	if sub, err := mounted.Sub("self"); !errors.Is(err, syscall.ELOOP) || !isElsewhere(err) { // a link
		t.Errorf("a link is %v, %v", sub, err)
	}
}
