package pgserver

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// started returns a server that ends with the test.
func started(t *testing.T, settings ...string) *Server {
	t.Helper()
	server, err := Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// A killed server leaves nothing in the system's memory, and can be started again.
func TestKillLeavesNothing(t *testing.T) {
	t.Parallel()
	server := started(t, "fsync=off")
	execute(t, server, "CREATE TABLE kept (n int)")
	for range 2 {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", server.process.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(maps); strings.Contains(text, "/dev/shm/") || !strings.Contains(text, server.folder) {
			t.Errorf("the server maps what is not in its folder:\n%s", text)
		}
		_, id, err := server.segment()
		if err != nil || id < 0 {
			t.Fatalf("the server has the segment %d (%v)", id, err)
		}
		var found unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &found); err != nil {
			t.Fatalf("its segment %d: %v", id, err)
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &found); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
			t.Errorf("the segment %d is left: %v", id, err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, server, "INSERT INTO kept VALUES (7)")
}
