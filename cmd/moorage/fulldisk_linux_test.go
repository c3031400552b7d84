package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"moorage/internal/cli"
)

// smallDiskAt is an environment variable with a folder. A process of startOnSmallDisk mounts a disk
// of its own there.
const smallDiskAt = "TEST_SMALL_DISK_AT"

// smallDisk is the mount option for the size of such a disk. The disk has room for a server and for
// the files with which a test fills it.
const smallDisk = "size=96m"

// mountSmallDisk mounts a small disk if smallDiskAt names a folder.
func mountSmallDisk() {
	if err := syscall.Mount("disk", os.Getenv(smallDiskAt), "tmpfs", 0, smallDisk); err != nil {
		fmt.Fprintln(os.Stderr, "this test must be allowed to mount a tmpfs in a user namespace:", err)
		os.Exit(1)
	}
}

// onSmallDisk is a server whose data folder is on a small disk.
type onSmallDisk struct {
	*served
	folder string // path of the disk for this process
}

// startOnSmallDisk starts a server in a mount namespace of its own, with a small disk for its data.
func startOnSmallDisk(t *testing.T) *onSmallDisk {
	t.Helper()
	folder := t.TempDir()
	process := exec.CommandContext(t.Context(), os.Args[0], "serve", "--listen", "127.0.0.1:0", "--data", folder)
	process.Env = append(os.Environ(), asCommand+"="+asOnSmallDisk, smallDiskAt+"="+folder)
	process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	server := startReady(t, process)
	return &onSmallDisk{server, fmt.Sprintf("/proc/%d/root%s", process.Process.Pid, folder)}
}

// fill uses up the whole disk. empty frees the space again.
func (s *onSmallDisk) fill(t *testing.T) (empty func()) {
	t.Helper()
	name := filepath.Join(s.folder, "filler")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		if _, err = file.Write(chunk); err != nil {
			chunk = chunk[:len(chunk)/2] // in the end, less than a page is left
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitReadiness requests /readyz until the status is want, and returns the answer.
func (s *onSmallDisk) awaitReadiness(t *testing.T, want int) string {
	t.Helper()
	for began := time.Now(); ; {
		code, answer := s.request(t, "GET", "/readyz?verbose", "")
		if code == want {
			return answer
		}
		if time.Since(began) > patience {
			t.Fatalf("/readyz does not become %d: %d %s\n%s", want, code, answer, s.stderr)
		}
	}
}

// TestFullDisk fills the disk of a server. First only metadata files have no room, and then the
// store's log has none either. The server must report that, and continue by itself when there is
// room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := startOnSmallDisk(t)
	s.makeTable(t)

	empty := s.fill(t)
	if code, answer := s.request(t, "POST", tablePath, setOwner); code != http.StatusServiceUnavailable {
		t.Errorf("a commit while the disk is full: %d %s", code, answer)
	}
	if answer := s.awaitReadiness(t, http.StatusServiceUnavailable); !strings.Contains(answer, "disk of the store is full") {
		t.Errorf("/readyz does not say why: %s", answer)
	}
	empty()
	s.awaitReadiness(t, http.StatusOK)
	s.must(t, "POST", tablePath, setOwner)

	empty = s.fill(t)
	made, failed := 0, 0
	for ; failed == 0 && made < 1000; made++ { // each change needs no file, but room in the log
		body := fmt.Sprintf(`{"namespace":["n%d"],"properties":{"padding":%q}}`, made, strings.Repeat("x", 200<<10))
		if code, answer := s.request(t, "POST", "/v1/namespaces", body); code != http.StatusOK {
			failed = code
			t.Logf("namespace %d: %d %s", made, code, answer)
		}
	}
	if failed < http.StatusInternalServerError {
		t.Fatalf("%d namespaces were made on a full disk, then %d", made, failed)
	}
	if code, answer := s.request(t, "POST", "/v1/namespaces", `{"namespace":["later"]}`); code != http.StatusServiceUnavailable {
		t.Errorf("a change after the store has failed: %d %s", code, answer)
	}
	if answer := s.awaitReadiness(t, http.StatusServiceUnavailable); !strings.Contains(answer, "disk of the store is full") {
		t.Errorf("/readyz does not say why: %s", answer)
	}
	s.must(t, "GET", tablePath, "") // reads still work
	empty()
	s.awaitReadiness(t, http.StatusOK)
	s.must(t, "POST", tablePath, setOwner)
	s.must(t, "POST", "/v1/namespaces", `{"namespace":["later"]}`)
	for n := range made - 1 {
		s.must(t, "GET", fmt.Sprintf("/v1/namespaces/n%d", n), "")
	}
	if code := s.stop(); code != cli.ExitDone {
		t.Errorf("exit code %d:\n%s", code, s.stderr)
	}
	if log := s.stderr.String(); !strings.Contains(log, "store is open again") {
		t.Errorf("log:\n%s", log)
	}
}
