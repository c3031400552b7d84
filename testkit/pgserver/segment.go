package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// segmentLine is the index of the line in postmaster.pid with the key and the id of a server's
// System V shared memory segment.
const segmentLine = 6

// removeSegment removes the segment of a killed server. The segment has only a few bytes. It lets a
// server detect another server on the same files. A server that shuts down normally removes its
// segment. The system allows a few thousand segments; once they are used up, no server can start.
func (s *Server) removeSegment() error {
	key, id, err := s.segment()
	if err != nil || id < 0 {
		return err
	}
	var found unix.SysvShmDesc
	_, err = unix.SysvShmCtl(id, unix.IPC_STAT, &found)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EIDRM): // the segment does not exist
		return nil
	case err != nil:
		return fmt.Errorf("look at the memory segment %d: %w", id, err)
	case found.Perm.Key != key || found.Nattch > 0:
		return nil // another server's segment
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
		return fmt.Errorf("remove the memory segment %d: %w", id, err)
	}
	return nil
}

// segment returns the key and the id of the server's segment. The id is negative if the server has
// no segment.
func (s *Server) segment() (key int32, id int, err error) {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, -1, nil
	}
	if err != nil {
		return 0, -1, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) <= segmentLine || strings.TrimSpace(lines[segmentLine]) == "" {
		return 0, -1, nil // the server was killed before it had a segment
	}
	var number uint64 // the server writes the key as this type
	if _, err := fmt.Sscan(lines[segmentLine], &number, &id); err != nil {
		return 0, -1, fmt.Errorf("postmaster.pid: %q: %w", lines[segmentLine], err)
	}
	return int32(number), id, nil
}
