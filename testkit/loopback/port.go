package loopback

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// portMin and portEnd limit the ports that FreePort returns. They are below the ports that systems
// assign to processes that request any free port.
const portMin, portEnd = 10_000, 30_000

// FreePort returns a free port of 127.0.0.1. The system assigns it to no other connection or
// listener, neither before a server listens on it nor while that server is dead. So a server that
// is killed and restarted can keep it.
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

// FreeAddress returns an address, host:port, with a port from FreePort.
func FreeAddress() (string, error) {
	port, err := FreePort()
	return address(port), err
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
