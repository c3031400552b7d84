package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/testkit/fakecloud"
)

// asCommand is the environment variable that makes the test binary behave as moorage itself, so
// that tests can start such processes without a build. Its value selects the behaviour.
const (
	asCommand  = "TEST_RUN_AS_MOORAGE"
	asUsual    = "usual"
	asIgnoring = "ignoring SIGHUP" // like a process that nohup has started
	asHanging  = "hanging folders" // see startHanging
	asStatic   = "static answers"  // see startStatic
	// asOnSmallDisk is the value for startOnSmallDisk.
	asOnSmallDisk = "on a small disk"
)

func TestMain(m *testing.M) {
	switch os.Getenv(asCommand) {
	case asIgnoring:
		signal.Ignore(syscall.SIGHUP)
		main()
	case asHanging:
		hangFolders()
		main()
	case asOnSmallDisk:
		mountSmallDisk()
		main()
	case asUsual:
		main()
	case asStatic:
		fmt.Fprintln(os.Stderr, serveStatic())
		os.Exit(1)
	}
	os.Exit(runWithCredentials(m))
}

// s3Profile is the section of the shared AWS files with the credentials of the tests' S3 servers.
// The process has no other credentials for S3.
const s3Profile = "tests"

// runWithCredentials runs the tests in an environment that has s3Profile, and the key of Azure's
// emulator.
func runWithCredentials(m *testing.M) int {
	folder, err := os.MkdirTemp("", "moorage-credentials-")
	if err == nil {
		defer os.RemoveAll(folder)
		file := filepath.Join(folder, "credentials")
		err = errors.Join(
			os.WriteFile(file, []byte(credentialsOf(fakecloud.S3SecretAccessKey)), 0o600),
			os.Setenv("AWS_SHARED_CREDENTIALS_FILE", file),
			os.Setenv(azureAccountKey, fakecloud.AzureAccountKey))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// credentialsOf returns a shared AWS file that has s3Profile with a secret.
func credentialsOf(secret string) string {
	return "[" + s3Profile + "]\naws_access_key_id = " + fakecloud.S3AccessKeyID + "\naws_secret_access_key = " + secret + "\n"
}

// processToEnd runs a command that ends by itself, in a process with the variables in more added to
// its environment.
func processToEnd(t *testing.T, more []string, args ...string) result {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0], args...)
	process.Env = append(append(os.Environ(), asCommand+"="+asUsual), more...)
	var stdout, stderr lockedBuffer
	process.Stdout, process.Stderr = &stdout, &stderr
	_ = process.Run() // the exit code shows the outcome
	return result{code: process.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// patience is the maximum time of every wait in these tests. Only something broken takes that long.
const patience = 2 * time.Minute

// result is the outcome of a command.
type result struct {
	code           int
	stdout, stderr string
}

// runToEnd runs a command that ends by itself, in this process.
func runToEnd(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr lockedBuffer
	code := run(ctx, args, cli.Environment{Stdout: &stdout, Stderr: &stderr})
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// served is a running server.
type served struct {
	uri    string
	stdout *lockedBuffer
	stderr *lockedBuffer
	wait   func() int // waits for the end; returns the exit code
	stop   func() int // sends the signal and waits for the end
}

var readyLine = regexp.MustCompile(`(?m)^Moorage is ready at (https?://\S+)$`)

// startServe runs serve in this process, on a free port if args name none. The server is stopped
// when the test ends.
func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	if !slices.Contains(args, "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	ctx, signal := context.WithCancel(context.Background())
	s := &served{stdout: newLockedBuffer(), stderr: newLockedBuffer()}
	var code int
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		code = run(ctx, append([]string{"serve"}, args...),
			cli.Environment{Stdout: s.stdout, Stderr: s.stderr})
	}()
	s.wait = func() int {
		await(t, ended, "the server to stop")
		return code
	}
	s.stop = func() int {
		signal()
		return s.wait()
	}
	t.Cleanup(func() { s.stop() })
	s.uri = s.awaitReady(t, ended)
	return s
}

// startProcess runs serve in a separate process.
func startProcess(t testing.TB, args ...string) (*served, *exec.Cmd) {
	t.Helper()
	return startProcessAs(t, asUsual, args...)
}

// startProcessAs is like startProcess. as is the value of asCommand.
func startProcessAs(t testing.TB, as string, args ...string) (*served, *exec.Cmd) {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	process.Env = append(os.Environ(), asCommand+"="+as)
	return startReady(t, process), process
}

// startReady starts process, a server, and waits until it is ready.
func startReady(t testing.TB, process *exec.Cmd) *served {
	t.Helper()
	s := &served{stdout: newLockedBuffer(), stderr: newLockedBuffer()}
	process.Stdout, process.Stderr = s.stdout, s.stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = process.Wait() // the exit code shows the outcome
	}()
	s.wait = func() int {
		await(t, ended, "the process to stop")
		return process.ProcessState.ExitCode()
	}
	s.stop = func() int {
		_ = process.Process.Signal(os.Interrupt) // the process may have ended
		return s.wait()
	}
	t.Cleanup(func() { s.stop() })
	s.uri = s.awaitReady(t, ended)
	return s
}

// awaitReady returns the address that the server printed.
func (s *served) awaitReady(t testing.TB, ended <-chan struct{}) string {
	t.Helper()
	timeout := time.After(patience)
	for {
		if found := readyLine.FindStringSubmatch(s.stdout.String()); found != nil {
			return found[1]
		}
		select {
		case <-s.stdout.written:
		case <-ended:
			t.Fatalf("the server ended; stderr:\n%s", s.stderr)
		case <-timeout:
			t.Fatalf("the server is not ready; stderr:\n%s", s.stderr)
		}
	}
}

// awaitLog waits until the server has logged text.
func (s *served) awaitLog(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(patience)
	for !strings.Contains(s.stderr.String(), text) {
		select {
		case <-s.stderr.written:
		case <-timeout:
			t.Fatalf("waited for %q in the log:\n%s", text, s.stderr)
		}
	}
}

func await(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
	}
}

// request sends one request with a JSON body and returns the status and the answer. headers are
// name, value, name, value…
func (s *served) request(t testing.TB, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	code, answer, err := s.send(t, method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return code, answer
}

// send is like request. It returns an error if no whole answer arrives.
func (s *served) send(t testing.TB, method, path, body string, headers ...string) (int, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.uri+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(bufio.NewReader(response.Body))
	return response.StatusCode, string(answer), err
}

// Requests that create a table, and the path of the table.
const (
	createNamespace = `{"namespace":["harbour"],"properties":{}}`
	createTable     = `{"name":"ships","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}}`
	tablePath       = "/v1/namespaces/harbour/tables/ships"
)

// makeTable creates the namespace harbour, and in it the table ships. It returns the answer.
func (s *served) makeTable(t *testing.T) string {
	t.Helper()
	if code, body := s.request(t, "POST", "/v1/namespaces", createNamespace); code != http.StatusOK {
		t.Fatalf("create namespace: %d %s", code, body)
	}
	code, body := s.request(t, "POST", "/v1/namespaces/harbour/tables", createTable)
	if code != http.StatusOK {
		t.Fatalf("create table: %d %s", code, body)
	}
	return body
}

// lockedBuffer is a buffer that a process writes and a test reads. It is safe for concurrent use.
type lockedBuffer struct {
	written chan struct{} // gets a value, if there is room, after each write; may be nil

	mu   sync.Mutex // guards the field below
	text bytes.Buffer
}

func newLockedBuffer() *lockedBuffer { return &lockedBuffer{written: make(chan struct{}, 1)} }

// Write appends p.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.written <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

// String returns everything that has been written so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// writeProgram writes a program that a test runs. While the file is open for writing, no process
// may be forked: the child would have a copy of the descriptor until it runs its own program, and
// until then the system refuses to run the file.
func writeProgram(t *testing.T, path, text string) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
