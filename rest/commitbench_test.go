package rest_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"moorage/registry/pebble"
	"moorage/storage"
	filestorage "moorage/storage/file"
)

// newDiskWorld is like newWorld, with the records in the embedded store.
func newDiskWorld(b *testing.B) *world {
	b.Helper()
	folder := b.TempDir()
	store, err := pebble.Open(filepath.Join(folder, "registry"), pebble.Options{Random: rand.Reader})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	w := &world{t: b, warehouse: filepath.Join(folder, "warehouse"), store: store}
	if err := os.Mkdir(w.warehouse, 0o755); err != nil {
		b.Fatal(err)
	}
	w.start(func(place storage.Place) (storage.Store, error) { return filestorage.New(place.Roots) }, nil)
	return w
}

// cpuTime returns the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkCommit measures a whole commit, from the request's bytes on a connection to the answer's
// bytes. The commit adds a snapshot to a table with the given number of them, with the embedded
// store and with files. Compare cpu-ns/op, the processor time of the whole process. The client only
// reads and writes bytes, and has a small part of it.
func BenchmarkCommit(b *testing.B) {
	for _, encoding := range []string{"identity", "gzip"} {
		for _, snapshots := range []int{10, 1000} {
			b.Run(fmt.Sprintf("%s/snapshots=%d", encoding, snapshots), func(b *testing.B) {
				benchmarkCommit(b, encoding, snapshots)
			})
		}
	}
}

func benchmarkCommit(b *testing.B, encoding string, snapshots int) {
	w := newDiskWorld(b)
	benchmarkTable(b, w, snapshots)
	w.must("POST", pathTable, `{"requirements":[],"updates":[{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"10"}}]}`)
	client := newRawClient(b, w)
	used := cpuTime(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		client.post(pathTable, encoding, branchAndForget(w, snapshotID+1_000_000+i))
	}
	b.ReportMetric(float64(cpuTime(b)-used)/float64(b.N), "cpu-ns/op")
}

// rawClient is one connection to a server. A client of net/http would take more time than the
// server.
type rawClient struct {
	net.Conn
	b      *testing.B
	buffer []byte
}

// newRawClient starts a server and connects to it.
func newRawClient(b *testing.B, handler http.Handler) *rawClient {
	b.Helper()
	server := httptest.NewServer(handler)
	b.Cleanup(server.Close)
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { connection.Close() })
	return &rawClient{connection, b, make([]byte, 1<<20)}
}

// post sends a request and waits for the end of the answer, which must be 200 or 204.
func (c *rawClient) post(path, encoding, body string) {
	c.b.Helper()
	_, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, encoding, len(body), body)
	if err == nil {
		err = readWholeAnswer(c, c.buffer)
	}
	if err != nil {
		c.b.Fatal(err)
	}
}

// branchAndForget returns a commit that adds the snapshot id on its own branch. It also removes the
// snapshot that the previous commit added, so that the table keeps its size.
func branchAndForget(w *world, id int) string {
	return fmt.Sprintf(`{"requirements":[],"updates":[{"action":"remove-snapshot-ref","ref-name":"b%d"},{"action":"remove-snapshots","snapshot-ids":[%d]},`+
		`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"%s",`+
		`"summary":{"operation":"append","added-data-files":"4","added-records":"1000","total-records":"1000000"},"schema-id":0}},`+
		`{"action":"set-snapshot-ref","ref-name":"b%d","type":"branch","snapshot-id":%d}]}`,
		id-1, id-1, id, id, time.Now().UnixMilli(), w.uri("ns/t/metadata/snap.avro"), id, id)
}

// readWholeAnswer reads one answer with status 204, or with 200. An answer with 200 ends as its
// Content-Length or its last chunk says.
func readWholeAnswer(connection net.Conn, buffer []byte) error {
	have := 0
	for {
		n, err := connection.Read(buffer[have:])
		if err != nil {
			return err
		}
		have += n
		text := string(buffer[:min(have, 2048)])
		head, _, whole := strings.Cut(text, "\r\n\r\n")
		if !whole {
			continue
		}
		if strings.HasPrefix(head, "HTTP/1.1 204") {
			return nil
		}
		if !strings.HasPrefix(head, "HTTP/1.1 200") {
			return fmt.Errorf("answer %s", buffer[:have])
		}
		if _, value, found := strings.Cut(head, "Content-Length: "); found {
			value, _, _ = strings.Cut(value, "\r\n")
			length, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			if have == len(head)+4+length {
				return nil
			}
		} else if strings.HasSuffix(string(buffer[max(0, have-5):have]), "0\r\n\r\n") {
			return nil
		}
	}
}
