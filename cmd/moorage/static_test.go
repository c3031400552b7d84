package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// serveStatic answers every request with the answer in the file named in the first argument. When
// it is ready, it prints the same line as a server.
func serveStatic() error {
	sent, err := os.Open(os.Args[1])
	if err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(sent), nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	answer.Header.Del("Date") // the server adds one
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("Moorage is ready at http://%s\n", listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		for name, values := range answer.Header {
			header[name] = values
		}
		_, _ = w.Write(body) // if this fails, the client has disconnected
	}))
}
