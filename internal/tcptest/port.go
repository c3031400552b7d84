package tcptest

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// portMin and portEnd bound the ports of FreePort. They are below those that systems give to a
// process that asks for any.
const portMin, portEnd = 10_000, 30_000

// FreePort returns a port of 127.0.0.1 that was free. No connection and no listener gets it by
// chance, not before a server listens there and not while that server is dead: a server that is
// killed and started again can keep it.
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
