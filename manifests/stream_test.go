package manifests

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestGuard is inside the package because no file is known that makes the present decoder panic.
func TestGuard(t *testing.T) {
	t.Parallel()
	if _, err := guard(func() (int, error) { panic("reason") }); err == nil || !strings.Contains(err.Error(), "reason") {
		t.Errorf("guard of a panic = %v", err)
	}
	if value, err := guard(func() (int, error) { return 1, io.EOF }); value != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("guard = %v, %v", value, err)
	}
}
