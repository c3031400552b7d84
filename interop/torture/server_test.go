package torture

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds how long a server takes to be ready, recovery included, and to stop.
const startTimeout = 30 * time.Second

// readyLine is what the server prints when it is ready.
var readyLine = regexp.MustCompile(`^Moorage is ready at (http://\S+)$`)

// server is a process of the real binary.
type server struct {
	uri     string
	process *exec.Cmd
	stderr  *bytes.Buffer // to be read after ended
	ended   chan struct{} // closed when the process has ended
}

// startServer starts a server on data and waits until it is ready.
func startServer(t *testing.T, binary, data string) *server {
	t.Helper()
	s := &server{
		process: exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--data", data, "--log-level", "warn"),
		stderr:  &bytes.Buffer{},
		ended:   make(chan struct{}),
	}
	s.process.Stderr = s.stderr
	stdout, err := s.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
				ready <- found[1]
			}
		}
		_ = s.process.Wait() // how it ended is told by its state
	}()
	select {
	case s.uri = <-ready:
	case <-s.ended:
		t.Fatalf("the server ended before it was ready: %s\n%s", s.process.ProcessState, s.stderr)
	case <-time.After(startTimeout):
		s.kill()
		t.Fatalf("the server was not ready after %s\n%s", startTimeout, s.stderr)
	}
	return s
}

// kill ends the process as a crash does. It may have ended already.
func (s *server) kill() {
	_ = s.process.Process.Kill() // an error says that it has ended
	<-s.ended
}

// stop ends the process as an operator does.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("stop the server: %v", err)
	}
	select {
	case <-s.ended:
	case <-time.After(startTimeout):
		s.kill()
		t.Fatalf("the server did not stop in %s\n%s", startTimeout, s.stderr)
	}
	if state := s.process.ProcessState; !state.Success() {
		t.Fatalf("the server ended with %s\n%s", state, s.stderr)
	}
}

// checkStopped runs `moorage check` on the data of a server that has ended.
func checkStopped(t *testing.T, binary, data string) {
	t.Helper()
	check := exec.CommandContext(t.Context(), binary, "check", "--data", data)
	check.Env = os.Environ()
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
}
