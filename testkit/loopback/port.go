package loopback

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// portMin and portEnd bound the ports of FreePort. They are below the ports that systems assign to
// a process that requests any port.
const portMin, portEnd = 10_000, 30_000

// FreePort returns a free port of 127.0.0.1. No connection and no listener gets it by chance,
// neither before a server listens there nor while that server is dead. So a server that is killed
// and restarted can keep it.
func FreePort() (int, error) {
	for {
		var drawn [2]byte
		rand.Read(drawn[:])
		port := portMin + int(binary.BigEndian.Uint16(drawn[:]))%(portEnd-portMin)
		listener, err := net.Listen("tcp", address(port))
		if err == nil {
			return port, listener.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return 0, err
		}
	}
}

// FreeAddress returns FreePort as a host and a port.
func FreeAddress() (string, error) {
	port, err := FreePort()
	return address(port), err
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
