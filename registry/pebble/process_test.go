package pebble_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"moorage"
	"moorage/registry"
	"moorage/registry/pebble"
)

// The test binary runs as a child process if the environment variable childRole is set to a role.
// The variable childDir has the directory of the store.
const (
	childRole = "MOORAGE_TEST_CHILD"
	childDir  = "MOORAGE_TEST_CHILD_DIR"

	roleHold  = "hold"  // open the store, print a line, and keep it open until standard input ends
	roleWrite = "write" // open the store and write until killed, and print each acknowledged write
)

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(childRole); role {
	case "":
		os.Exit(m.Run())
	case roleHold:
		err = hold(os.Getenv(childDir))
	case roleWrite:
		err = write(os.Getenv(childDir))
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is a process that runs a role.
type child struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	errors strings.Builder
}

// start starts a child, which is killed when the test ends.
func start(t *testing.T, role, dir string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir)
	c.Stderr = &c.errors
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// hold carries out roleHold.
func hold(dir string) error {
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, s.Close())
}

func TestDirectoryIsLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	holder := start(t, roleHold, dir)
	if !holder.out.Scan() {
		t.Fatalf("the child did not open the store: %s", holder.errors.String())
	}
	want := fmt.Sprintf("open store %s: the store is in use by another process, %d", dir, holder.Process.Pid)
	_, err := pebble.Open(dir, pebble.Options{})
	if !errors.Is(err, pebble.ErrLocked) || err.Error() != want {
		t.Errorf("open of a store that another process has: %v, want %q", err, want)
	}
	if err := holder.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := holder.Wait(); err != nil {
		t.Fatalf("child: %v: %s", err, holder.errors.String())
	}

	// The lock ended with the child, so this process can get it.
	open(t, dir, pebble.Options{})
	if _, err = pebble.Open(dir, pebble.Options{}); !errors.Is(err, pebble.ErrLocked) {
		t.Errorf("open of a store that this process has: %v, want ErrLocked", err)
	}
	want = fmt.Sprintf("open store %s: the store is in use by another process, %d", dir, os.Getpid())
	second := start(t, roleHold, dir)
	if err := second.Wait(); err == nil || strings.TrimSpace(second.errors.String()) != want {
		t.Errorf("open in a child: %v, %q, want %q", err, second.errors.String(), want)
	}
}

// Sizes of the test that kills a process.
const (
	killRounds  = 5
	killWriters = 8
	killAfter   = 150 // acknowledged writes
)

// counter is the key of a writer's counter.
func counter(writer int) registry.Key { return registry.LocationKey(strconv.Itoa(writer)) }

// write carries out roleWrite: each writer repeatedly increments its counter, and prints each
// acknowledged value. The change of each step contains the number.
func write(dir string) error {
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	errs := make(chan error, killWriters)
	for writer := range killWriters {
		group.Go(func() { errs <- count(s, writer) })
	}
	err = <-errs // writers end only with an error
	return errors.Join(err, s.Close())
}

// count carries out one writer of roleWrite.
func count(s *pebble.Store, writer int) error {
	ctx := context.Background()
	for {
		records, err := s.Get(ctx, counter(writer))
		if err != nil {
			return err
		}
		number := 0
		if records[0].Exists() {
			if number, err = strconv.Atoi(string(records[0].Value)); err != nil {
				return err
			}
		}
		number++
		batch := registry.Batch{
			Writes: []registry.Write{registry.Put(counter(writer), registry.StateOwner, []byte(strconv.Itoa(number)))},
			Change: countChange(writer, number),
		}
		if _, err := s.Apply(ctx, batch); err != nil {
			return err
		}
		// Each line is a single write, so the lines of writers do not mix.
		if _, err := fmt.Fprintf(os.Stdout, "%d %d\n", writer, number); err != nil {
			return err
		}
	}
}

func countChange(writer, number int) *registry.Change {
	return &registry.Change{
		ID:    registry.ID{0: 1, 12: byte(writer), 13: byte(number >> 16), 14: byte(number >> 8), 15: byte(number)},
		Ident: moorage.Identifier{Warehouse: strconv.Itoa(writer), Name: strconv.Itoa(number)},
	}
}

// TestKill repeatedly kills a writing process on the same directory. Every write that was printed
// as acknowledged must exist.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var acknowledged [killWriters]int
	for round := range killRounds {
		c := start(t, roleWrite, dir)
		for lines := 0; c.out.Scan(); lines++ {
			var writer, number int
			if _, err := fmt.Sscanf(c.out.Text(), "%d %d", &writer, &number); err != nil {
				t.Fatalf("the child says %q: %v", c.out.Text(), err)
			}
			acknowledged[writer] = number
			if lines == killAfter {
				// Output of the child until its death still counts.
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := c.Wait(); err == nil || c.errors.Len() > 0 {
			t.Fatalf("round %d: the child ended with %v: %s", round, err, c.errors.String())
		}
		checkCounters(t, dir, &acknowledged)
	}
}

// checkCounters opens the store of roleWrite. It fails the test unless each counter has the last
// acknowledged value, or the next one.
func checkCounters(t *testing.T, dir string, acknowledged *[killWriters]int) {
	t.Helper()
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var found [killWriters]int
	for writer := range killWriters {
		records, err := s.Get(t.Context(), counter(writer))
		if err != nil {
			t.Fatal(err)
		}
		if records[0].Exists() {
			if found[writer], err = strconv.Atoi(string(records[0].Value)); err != nil {
				t.Fatal(err)
			}
		}
		if found[writer] < acknowledged[writer] || found[writer] > acknowledged[writer]+1 {
			t.Errorf("writer %d is at %d, acknowledged was %d", writer, found[writer], acknowledged[writer])
		}
		acknowledged[writer] = found[writer]
	}
	var counted [killWriters]int
	for after := registry.Position(0); ; {
		changes, err := s.Changes(t.Context(), after, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			writer, _ := strconv.Atoi(c.Change.Ident.Warehouse)
			counted[writer]++
			if c.Change.Ident.Name != strconv.Itoa(counted[writer]) {
				t.Fatalf("change %s of writer %d stands in place %d", c.Change.Ident.Name, writer, counted[writer])
			}
			after = c.Position
		}
		if len(changes) < 100 {
			break
		}
	}
	if counted != found {
		t.Errorf("the writers are at %v, their changes at %v", found, counted)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
