package servers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout is the maximum time until a server is ready, including recovery. stopTimeout is the
// maximum time that it takes to stop. Only a server that hangs takes longer.
const (
	startTimeout = 3 * time.Minute
	stopTimeout  = 2 * time.Minute
)

// readyLine matches the line that the server prints when it is ready.
var readyLine = regexp.MustCompile(`^Moorage is ready at (http://\S+)$`)

// Build returns the binary to run: the binary in MOORAGE_BINARY, or else a new build.
func Build(t testing.TB) string {
	t.Helper()
	if given := os.Getenv("MOORAGE_BINARY"); given != "" {
		return given
	}
	binary := filepath.Join(t.TempDir(), "moorage")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "moorage/cmd/moorage")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// Node is a process of the real binary. Only Stderr and PID are safe for concurrent use.
type Node struct {
	URI     string // the server's address: http://HOST:PORT
	process *exec.Cmd
	stderr  *output
	ended   chan struct{} // closed when the process has ended
}

// output is the text that a process writes. It is safe for concurrent use.
type output struct {
	mu   sync.Mutex // guards text; no other lock is taken under it
	text bytes.Buffer
}

// Write appends p.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns the text written so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Start runs `serve` with args and waits until it is ready. Unless args include --listen, the
// server uses a free port of 127.0.0.1. The process does not outlive the process of the test.
func Start(binary string, args ...string) (*Node, error) {
	given := []string{"serve", "--log-level", "warn"}
	if !slices.Contains(args, "--listen") {
		given = append(given, "--listen", "127.0.0.1:0")
	}
	n := &Node{
		process: exec.Command(binary, append(given, args...)...),
		stderr:  &output{},
		ended:   make(chan struct{}),
	}
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.process.Stderr = n.stderr
	stdout, err := n.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go func() {
		defer close(n.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
				ready <- found[1]
			}
		}
		_ = n.process.Wait() // the process's state shows how it ended
	}()
	select {
	case n.URI = <-ready:
		return n, nil
	case <-n.ended:
		return nil, fmt.Errorf("the server ended before it was ready: %s\n%s", n.process.ProcessState, n.stderr)
	case <-time.After(startTimeout):
		n.Kill()
		return nil, fmt.Errorf("the server was not ready after %s\n%s", startTimeout, n.stderr)
	}
}

// MustStart is like Start, but fails the test if the node does not start.
func MustStart(t testing.TB, binary string, args ...string) *Node {
	t.Helper()
	n, err := Start(binary, args...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// PID returns the id of the process.
func (n *Node) PID() int { return n.process.Process.Pid }

// Stderr returns the log of the process.
func (n *Node) Stderr() string { return n.stderr.String() }

// Pid returns the id of the process.
func (n *Node) Pid() int { return n.process.Process.Pid }

// Ended is closed when the process has ended.
func (n *Node) Ended() <-chan struct{} { return n.ended }

// State returns how the process ended. The process must have ended.
func (n *Node) State() *os.ProcessState { return n.process.ProcessState }

// Kill ends the process at once, as a crash would. The process may have ended already.
func (n *Node) Kill() {
	_ = n.process.Process.Kill() // an error means that the process has ended
	<-n.ended
}

// Pause suspends the process until Resume, as if its machine had paused.
func (n *Node) Pause() error { return n.process.Process.Signal(syscall.SIGSTOP) }

// Resume continues the process.
func (n *Node) Resume() error { return n.process.Process.Signal(syscall.SIGCONT) }

// Stop ends the process with the signal that an operator would send.
func (n *Node) Stop() error {
	if err := n.process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	select {
	case <-n.ended:
	case <-time.After(stopTimeout):
		n.Kill()
		return fmt.Errorf("the server did not stop in %s\n%s", stopTimeout, n.stderr)
	}
	if !n.State().Success() {
		return fmt.Errorf("the server ended with %s\n%s", n.State(), n.stderr)
	}
	return nil
}

// Key creates an API key and returns it. args are the arguments of `moorage key create`.
func Key(ctx context.Context, binary string, args ...string) (key string, err error) {
	command := exec.CommandContext(ctx, binary, append([]string{"key", "create"}, args...)...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("key create: %w\n%s", err, &complaint)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1], nil
}

// Check runs `moorage doctor --deep` with args. No other process may have the store open.
func Check(ctx context.Context, binary string, args ...string) error {
	out, err := exec.CommandContext(ctx, binary, append([]string{"doctor", "--deep"}, args...)...).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("check: %w", err), errors.New(string(out)))
	}
	return nil
}
