package due

import (
	"testing"

	"moorage"
	"moorage/maintenance/jobs"
)

// A failure that passes by itself does not block a kind after five checks.
func TestIsLasting(t *testing.T) {
	t.Parallel()
	for kind, want := range map[moorage.Kind]bool{
		moorage.KindUnavailable: false, moorage.KindTooManyRequests: false, moorage.KindCommitUnknown: false,
		moorage.KindCommitFailed: false, moorage.KindNoSuchTable: false,
		moorage.KindInternal: true, moorage.KindIllegalArgument: true,
	} {
		if got := isLasting(moorage.Errorf(kind, "it fails")); got != want {
			t.Errorf("%v lasts: %t", kind, got)
		}
	}
	if !isLasting(&jobs.BlockedError{Why: "an operator is to look"}) {
		t.Error("a BlockedError does not last")
	}
}
