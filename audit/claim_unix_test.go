//go:build linux || darwin

package audit

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestClaimEndsDespiteAFork checks that a claim ends although a copy of its descriptor is open. A
// forked child has such a copy until it runs its program.
func TestClaimEndsDespiteAFork(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	first, err := Claim(path)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := syscall.Dup(int(first.(claim).file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(copied)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Claim(path)
	if err != nil {
		t.Fatalf("a claim after the first has ended: %v", err)
	}
	defer second.Close()
}
