package scale

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// AboveIdleMax is the maximum memory that the content of one client may need in addition to the
// memory of an idle process.
const AboveIdleMax = (200 << 20) * MemoryFactor

const (
	childVariable = "MOORAGE_TEST_MEASURED"
	peakPrefix    = "peak above idle: "
)

// Peak runs the calling test alone in a separate process, and runs work there. It returns how much
// the peak memory of work exceeded the memory before work, as the kernel counts it. prepare sets up
// work and returns it; memory that prepare leaves in use counts as idle. In the separate process,
// Peak does not return.
func Peak(t *testing.T, prepare func(t *testing.T) (work func())) int64 {
	t.Helper()
	if os.Getenv(childVariable) == t.Name() {
		work := prepare(t)
		debug.FreeOSMemory()
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // resets VmHWM
			t.Fatal(err)
		}
		idle := status(t, "VmRSS")
		work()
		runtime.KeepAlive(work)
		if !t.Failed() {
			fmt.Printf("\n%s%d\n", peakPrefix, status(t, "VmHWM")-idle)
		}
		t.FailNow() // only the first process continues; it ignores how this process ended
	}
	arguments := append([]string{"-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"}, os.Args[1:]...)
	arguments = append(arguments, "-test.count=1", "-test.parallel=1", "-test.v=false")
	for i, argument := range arguments {
		if i > 0 && (strings.HasPrefix(argument, "-test.run=") || strings.HasPrefix(argument, "-test.testlogfile=") ||
			strings.HasPrefix(argument, "-test.coverprofile=")) {
			arguments[i] = "-test.shuffle=off"
		}
	}
	child := exec.CommandContext(t.Context(), os.Args[0], arguments...)
	child.Env = append(os.Environ(), childVariable+"="+t.Name())
	out, _ := child.CombinedOutput()
	_, after, found := bytes.Cut(out, []byte(peakPrefix))
	text, _, _ := bytes.Cut(after, []byte("\n"))
	peak, malformed := strconv.ParseInt(string(text), 10, 64)
	if !found || malformed != nil {
		t.Fatalf("the measured process failed:\n%s", out)
	}
	return peak
}

// status returns a value from the kernel's status of this process, in bytes.
func status(t *testing.T, name string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == name+":" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatalf("the kernel does not tell %s", name)
	return 0
}
