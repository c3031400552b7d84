package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holderOf returns the process that listens at the port of address, as ", 4711 (nginx)". It is
// empty if that process belongs to another user or container, and this process may not inspect it.
func holderOf(address string) string {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return ""
	}
	sockets := listeningAt(uint16(port))
	if len(sockets) == 0 {
		return ""
	}
	processes, err := filepath.Glob("/proc/[0-9]*/fd")
	if err != nil {
		return ""
	}
	for _, folder := range processes {
		files, err := os.ReadDir(folder)
		if err != nil {
			continue // another user's
		}
		for _, file := range files {
			if target, err := os.Readlink(filepath.Join(folder, file.Name())); err == nil && sockets[target] {
				name, _ := os.ReadFile(filepath.Join(filepath.Dir(folder), "comm")) // empty if it has just ended
				return fmt.Sprintf(", %s (%s)", filepath.Base(filepath.Dir(folder)), strings.TrimSpace(string(name)))
			}
		}
	}
	return ""
}

// listeningAt returns the sockets that listen at a port, in the form of the links in /proc/PID/fd.
// Source: proc_net_tcp in the kernel's documentation.
func listeningAt(port uint16) map[string]bool {
	const (
		columnLocal, columnState, columnInode = 1, 3, 9
		listening                             = "0A"
	)
	found := make(map[string]bool)
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			columns := strings.Fields(line)
			if len(columns) > columnInode && columns[columnState] == listening &&
				strings.HasSuffix(columns[columnLocal], fmt.Sprintf(":%04X", port)) {
				found["socket:["+columns[columnInode]+"]"] = true
			}
		}
	}
	return found
}
