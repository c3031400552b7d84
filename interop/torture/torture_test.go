package torture

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var (
	killsFlag = flag.Int("kills", 5, "how often the server is killed")
	seedFlag  = flag.Uint64("seed", 0, "seed of everything that is random; 0: a new one each time")
)

const (
	writersCount = 16
	// roundTimeout is far beyond what a round takes: one that hangs has failed.
	roundTimeout = 3 * time.Minute
	// answersMin and answersMax bound after how many answers the server is killed.
	answersMin, answersMax = 20, 700
	// delayMax bounds how long after that answer it is killed.
	delayMax = 5 * time.Millisecond
)

// TestKill kills the server again and again.
func TestKill(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	binary := findBinary(t)
	data := filepath.Join(t.ArtifactDir(), "data")
	state := newWorld()

	for number := range *killsFlag {
		r := &round{
			number: number, seed: seed, binary: binary, data: data, world: state,
			answers: answersMin + random.Int64N(answersMax-answersMin),
			delay:   time.Duration(random.Int64N(int64(delayMax))),
		}
		r.run(t)
		if t.Failed() {
			t.Fatalf("round %d failed; -artifacts keeps the data", number)
		}
	}
	server := startServer(t, binary, data)
	defer server.kill()
	state.verify(t, newClient(server.uri))
	server.stop(t)
	checkStopped(t, binary, data)
}

// findBinary returns the binary to torture.
func findBinary(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("MOORAGE_BIN"); given != "" {
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
