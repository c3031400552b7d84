package audit_test

import (
	"errors"
	"path/filepath"
	"testing"

	"moorage/audit"
)

// TestClaim checks that a second writer can claim a file only after the first has released it.
func TestClaim(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	first, err := audit.Claim(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Claim(path); !errors.Is(err, audit.ErrClaimed) {
		t.Errorf("a second claim: %v, want ErrClaimed", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := audit.Claim(path)
	if err != nil {
		t.Fatalf("a claim after the first has left: %v", err)
	}
	defer third.Close()
}
