package torture

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"moorage/testkit/servers"
)

var (
	killsFlag = flag.Int("kills", 5, "how often the server is killed")
	seedFlag  = flag.Uint64("seed", 0, "seed of everything that is random; 0: a new one each time")
)

const (
	writersCount = 16
	// roundTimeout is far longer than any round: a round that hangs has failed.
	roundTimeout = 10 * time.Minute
	// requestTimeout is longer than any request may take.
	requestTimeout = 3 * time.Minute
	// answersMin and answersMax bound the number of answers before a kill.
	answersMin, answersMax = 20, 700
	// delayMax bounds the time from the last of these answers to the kill.
	delayMax = 5 * time.Millisecond
)

// newSeed returns the seed for a test's random choices, and prints it.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seed)
	return seed
}

// TestKill kills the server repeatedly.
func TestKill(t *testing.T) {
	seed := newSeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	binary := servers.Build(t)
	data := filepath.Join(t.ArtifactDir(), "data")
	state := newWorld()
	answers := int64(0)

	for number := range *killsFlag {
		r := &round{
			number: number, seed: seed, binary: binary, data: data, world: state,
			answers: answersMin + random.Int64N(answersMax-answersMin),
			delay:   time.Duration(random.Int64N(int64(delayMax))),
		}
		answers += r.answers
		r.run(t)
		if t.Failed() {
			t.Fatalf("round %d failed; -artifacts keeps the data", number)
		}
	}
	server := servers.MustStart(t, binary, "--data", data)
	defer server.Kill()
	client := servers.NewClient(server.URI, requestTimeout)
	state.verify(t, client)
	state.verifySettled(t, client, len(state.settled))
	state.views.verifyCounts(t, answers)
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if err := servers.Check(t.Context(), binary, "--data", data); err != nil {
		t.Error(err)
	}
}
