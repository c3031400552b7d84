// Command answers is a proxy in front of a server under test. It validates each response against
// the OpenAPI files of the Iceberg REST specification and of Moorage's management API. It writes
// each violation to a file, one per line. Clients get the responses unchanged.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"moorage/testkit/answers"
)

func main() {
	server := flag.String("server", "", "address of the server, such as http://127.0.0.1:8181")
	specification := flag.String("specification", "", "OpenAPI file of the specification")
	management := flag.String("management", "", "OpenAPI file of the management API")
	faults := flag.String("faults", "", "file for the faults; an existing one is emptied")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *server, *specification, *management, *faults); err != nil {
		panic(err)
	}
}

func run(ctx context.Context, server, specification, management, faults string) error {
	target, err := url.Parse(server)
	if err != nil {
		return err
	}
	judge := judge{}
	for path, read := range map[string]func([]byte) (*answers.Judge, error){
		specification: answers.Specification,
		management:    answers.Management,
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		one, err := read(text)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		judge.judges = append(judge.judges, one)
	}
	if judge.faults, err = os.Create(faults); err != nil {
		return err
	}
	defer judge.faults.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	proxy := &http.Server{Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: judge.look,
	}}
	context.AfterFunc(ctx, func() { _ = proxy.Close() })
	if _, err := fmt.Fprintf(os.Stdout, "judging answers at http://%s\n", listener.Addr()); err != nil {
		return err
	}
	if err := proxy.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// judge writes the violations in responses to a file. It is safe for concurrent use.
type judge struct {
	judges []*answers.Judge

	mu     sync.Mutex // guards the file; leaf
	faults *os.File
}

// look validates a response. It reads the body and restores it.
func (j *judge) look(response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	asked := response.Request
	for _, one := range j.judges {
		fault := one.Fault(answers.Answer{
			Method: asked.Method, Path: asked.URL.EscapedPath(), Status: response.StatusCode,
			Header: response.Header, Body: body,
		})
		if fault == nil {
			continue
		}
		j.mu.Lock()
		_, err := fmt.Fprintf(j.faults, "%s %s answers %d: %q in %.1000q\n",
			asked.Method, asked.URL, response.StatusCode, fault, body)
		j.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
