package rest_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// benchmarkTable creates a table with the given number of snapshots, and returns the path that
// loads it.
func benchmarkTable(b *testing.B, w *world, snapshots int) string {
	b.Helper()
	w.must("POST", pathNamespaces, `{"namespace":["ns"]}`)
	w.must("POST", pathTables, `{"name":"t","schema":`+schemaJSON+`}`)
	const batch = 100
	for first := 1; first <= snapshots; first += batch {
		var updates []string
		last := min(first+batch-1, snapshots)
		for id := first; id <= last; id++ {
			parent := ""
			if id > 1 {
				parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, snapshotID+id-1)
			}
			updates = append(updates, fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"%s",`+
				`"summary":{"operation":"append","added-data-files":"4","added-records":"1000","added-files-size":"482113","total-records":"%d000","total-data-files":"%d","total-delete-files":"0"},"schema-id":0}}`,
				snapshotID+id, parent, id, 1700000000000+id, w.uri(fmt.Sprintf("ns/t/metadata/snap-%d-1-aef2c5b8-0b8b-4f1b-9f5c-5c1b7a3f0d11.avro", snapshotID+id)), id, 4*id))
		}
		updates = append(updates, fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`, snapshotID+last))
		w.must("POST", pathTable, `{"requirements":[],"updates":[`+strings.Join(updates, ",")+`]}`)
	}
	return pathTable
}

// static always answers with the same header and bytes, which is the fastest that net/http can be.
type static struct {
	header http.Header
	body   []byte
}

func (s static) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	header := w.Header()
	for name, values := range s.header {
		header[name] = values
	}
	header["Content-Length"] = []string{strconv.Itoa(len(s.body))}
	_, _ = w.Write(s.body)
}

// eachTime wraps handler, and compresses each answer separately, as a server without deflate.go
// would.
func eachTime(handler http.Handler) http.Handler {
	writers := sync.Pool{New: func() any {
		writer, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant
		}
		return writer
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding") // so that handler does not compress
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		var compressed bytes.Buffer
		writer := writers.Get().(*gzip.Writer)
		defer writers.Put(writer)
		writer.Reset(&compressed)
		_, _ = writer.Write(answer.Body.Bytes())
		_ = writer.Close()
		w.Header().Set("Content-Length", strconv.Itoa(compressed.Len()))
		_, _ = w.Write(compressed.Bytes())
	})
}

// BenchmarkLoad compares loads of a hot table with a handler that sends a prepared answer, over
// connections that stay open. Compare the lines with the same ending.
func BenchmarkLoad(b *testing.B) {
	for _, snapshots := range []int{0, 1000} {
		w := newWorld(b)
		path := benchmarkTable(b, w, snapshots)
		for _, encoding := range []string{"identity", "gzip"} {
			request := httptest.NewRequest("GET", path, nil)
			request.Header.Set("Accept-Encoding", encoding)
			answer := httptest.NewRecorder()
			w.ServeHTTP(answer, request)
			same := static{answer.Header(), answer.Body.Bytes()}
			for _, row := range []struct {
				name    string
				handler http.Handler
			}{{"static", same}, {"moorage", w}} {
				b.Run(fmt.Sprintf("snapshots=%d/%s/%s", snapshots, encoding, row.name), func(b *testing.B) {
					benchmarkGet(b, row.handler, path, encoding, len(same.body))
				})
			}
		}
		b.Run(fmt.Sprintf("snapshots=%d/gzip/each-time", snapshots), func(b *testing.B) {
			handler, answer := eachTime(w), httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
			benchmarkGet(b, handler, path, "gzip", answer.Body.Len())
		})
		b.Run(fmt.Sprintf("snapshots=%d/not-modified/moorage", snapshots), func(b *testing.B) {
			answer := httptest.NewRecorder()
			w.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
			request := httptest.NewRequest("GET", path, nil)
			request.Header["If-None-Match"] = answer.Header()["ETag"] //nolint:staticcheck // spelled so
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				if w.ServeHTTP(answer, request); answer.Code != http.StatusNotModified {
					b.Fatal(answer.Code)
				}
			}
		})
	}
}

// benchmarkGet sends the same request repeatedly over raw connections. A real client would take
// more time than the server.
func benchmarkGet(b *testing.B, handler http.Handler, path, encoding string, bodyBytes int) {
	server := httptest.NewServer(handler)
	defer server.Close()
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: x\r\nAccept-Encoding: " + encoding + "\r\n\r\n")
	b.SetBytes(int64(bodyBytes))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer connection.Close()
		buffer := make([]byte, 1<<20)
		for pb.Next() {
			if _, err := connection.Write(request); err != nil {
				b.Error(err)
				return
			}
			if err := readAnswer(connection, buffer, bodyBytes); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// readAnswer reads one answer, whose body must have the given number of bytes.
func readAnswer(connection net.Conn, buffer []byte, bodyBytes int) error {
	have, head := 0, -1
	for head < 0 || have < head+bodyBytes {
		if err := connection.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			return err
		}
		n, err := connection.Read(buffer[min(have, len(buffer)/2):])
		if err != nil {
			return err
		}
		have += n
		if head < 0 {
			if !bytes.HasPrefix(buffer, []byte("HTTP/1.1 200")) {
				return fmt.Errorf("answer %.40q", buffer)
			}
			if end := bytes.Index(buffer[:have], []byte("\r\n\r\n")); end >= 0 {
				head = end + 4
			}
		}
	}
	if have != head+bodyBytes {
		return io.ErrUnexpectedEOF
	}
	return nil
}
