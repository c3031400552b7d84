package rest_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"moorage/rest"
)

// get sends a GET for path. headers are name, value, name, value…
func (w *world) get(path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.URL = parseURL(w.t, path)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

func tagOf(t *testing.T, answer *httptest.ResponseRecorder) string {
	t.Helper()
	tags := answer.Header()["ETag"] //nolint:staticcheck // spelled as clients look it up
	if len(tags) != 1 {
		t.Fatalf("ETag is %q in %d %.200s", tags, answer.Code, answer.Body)
	}
	return tags[0]
}

// An ETag identifies a version of a table. It changes with each commit, except one that changes
// nothing. The answer to a change has the ETag of the next load.
func TestTagFollowsCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	created := w.must("POST", pathTables, `{"name":"v","schema":`+schemaJSON+`}`)
	seen := []string{tagOf(t, created)}
	path := pathTables + "/v"
	for i := range 3 {
		if answer := w.get(path, "If-None-Match", seen[len(seen)-1]); answer.Code != http.StatusNotModified || answer.Body.Len() > 0 {
			t.Fatalf("%d: the table has not changed, but: %d", i, answer.Code)
		}
		commit := fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"i":"%d"}}]}`, i)
		tag := tagOf(t, w.must("POST", path, commit))
		if again := tagOf(t, w.must("POST", path, `{"requirements":[],"updates":[]}`)); again != tag {
			t.Errorf("%d: a commit that changes nothing answers the tag %s, want %s", i, again, tag)
		}
		if slices.Contains(seen, tag) {
			t.Errorf("%d: the tag %s comes back", i, tag)
		}
		for _, old := range seen {
			if answer := w.get(path, "If-None-Match", old); answer.Code != 200 || tagOf(t, answer) != tag {
				t.Errorf("%d: with the tag %s: %d", i, old, answer.Code)
			}
		}
		seen = append(seen, tag)
	}
	var last struct {
		Location string `json:"metadata-location"`
	}
	if err := json.Unmarshal(w.must("POST", path+"/unregister", "").Body.Bytes(), &last); err != nil {
		t.Fatal(err)
	}
	registered := w.must("POST", pathRegister, `{"name":"v","metadata-location":"`+last.Location+`"}`)
	if tag := tagOf(t, w.get(path)); tag != tagOf(t, registered) {
		t.Errorf("registered with the tag %s, want %s", tagOf(t, registered), tag)
	}
	w.wantClean()
}

// If a file is rewritten by its owner and registered again, the ETag changes, even if the timestamp
// in the file stays the same.
func TestTagFollowsRegisters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	w.must("POST", pathTables, `{"name":"v","schema":`+schemaJSON+`,"properties":{"n":"0"}}`)
	path := pathTables + "/v"
	location := w.metadataLocation(path)
	before := w.get(path)
	anew := bytes.Replace(w.readFile(location), []byte(`"n":"0"`), []byte(`"n":"1"`), 1)
	if err := os.WriteFile(strings.TrimPrefix(location, "file://"), anew, 0o644); err != nil {
		t.Fatal(err)
	}
	registered := w.must("POST", pathRegister, `{"name":"v","metadata-location":"`+location+`","overwrite":true}`)
	answer := w.get(path, "If-None-Match", tagOf(t, before))
	if answer.Code != 200 || !bytes.Contains(answer.Body.Bytes(), anew) || tagOf(t, answer) != tagOf(t, registered) {
		t.Errorf("with the tag of before: %d %.300s", answer.Code, answer.Body)
	}
	w.wantClean()
}

// A load returns the content of the metadata file byte for byte, even if the file is compressed.
func TestLoadIsTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	w.must("POST", pathViews, strings.TrimSuffix(viewJSON("plain"), "}")+`,"properties":{"write.metadata.compression-codec":"none"}}`)
	w.must("POST", pathView, `{"updates":[`+newVersion+`]}`)
	for path, compressed := range map[string]bool{pathTable: false, pathView: true, pathViews + "/plain": false} {
		var answer struct {
			Metadata json.RawMessage   `json:"metadata"`
			Location string            `json:"metadata-location"`
			Config   map[string]string `json:"config"`
		}
		if err := json.Unmarshal(w.get(path).Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		file := w.readFile(answer.Location)
		if compressed {
			reader, err := gzip.NewReader(bytes.NewReader(file))
			if err != nil {
				t.Fatalf("%s: %v", answer.Location, err)
			}
			if file, err = io.ReadAll(reader); err != nil {
				t.Fatalf("%s: %v", answer.Location, err)
			}
		}
		if strings.HasSuffix(answer.Location, ".gz.metadata.json") != compressed {
			t.Errorf("the metadata of %s is at %s", path, answer.Location)
		}
		if !bytes.Equal(file, answer.Metadata) || answer.Config == nil {
			t.Errorf("the file holds\n%s\nthe load answers\n%s", file, answer.Metadata)
		}
	}
}

type page struct {
	Identifiers []struct {
		Name string `json:"name"`
	} `json:"identifiers"`
	Namespaces [][]string `json:"namespaces"`
	Next       *string    `json:"next-page-token"`
}

func (p page) names() (names []string) {
	for _, table := range p.Identifiers {
		names = append(names, table.Name)
	}
	for _, ns := range p.Namespaces {
		names = append(names, ns[len(ns)-1])
	}
	return names
}

func (w *world) page(path string) (p page) {
	w.t.Helper()
	if err := json.Unmarshal(w.must("GET", path, "").Body.Bytes(), &p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// A walk over pages returns every name that exists all the time exactly once, whatever other names
// come and go.
func TestPagesUnderChanges(t *testing.T) {
	t.Parallel()
	w := newMemoryWorld(t)
	w.must("POST", pathNamespaces, `{"namespace":["ns"]}`)
	var want []string // without their first letters
	for i := range 25 {
		number := fmt.Sprintf("%02d", i)
		w.must("POST", pathTables, `{"name":"t`+number+`","schema":`+schemaJSON+`}`)
		w.must("POST", pathViews, viewJSON("v"+number))
		w.must("POST", pathNamespaces, `{"namespace":["ns","t`+number+`"]}`)
		if i%5 != 0 {
			want = append(want, number)
		}
	}
	for list, letter := range map[string]string{pathTables + "?": "t", pathViews + "?": "v", pathNamespaces + "?parent=ns&": "t"} {
		for _, size := range []int{1, 2, 7, 25, 100} {
			var got []string
			token, pages := "", 0
			for more := true; more; pages++ {
				p := w.page(fmt.Sprintf("%spageToken=%s&pageSize=%d", list, token, size))
				if len(p.names()) > size {
					t.Fatalf("%s: %d names on a page of %d", list, len(p.names()), size)
				}
				got = append(got, p.names()...)
				if more = p.Next != nil; more {
					token = *p.Next
				}
				// The names t00, t05…, v00… disappear and return between pages. x00, x01…, y00…
				// appear after or before the position of the walk.
				gone := fmt.Sprintf("%02d", pages*5%25)
				w.do("DELETE", pathTables+"/t"+gone, "")
				w.do("DELETE", pathViews+"/v"+gone, "")
				w.do("DELETE", "/v1/namespaces/ns%1Ft"+gone, "")
				w.do("POST", pathTables, `{"name":"t`+gone+`","schema":`+schemaJSON+`}`)
				w.do("POST", pathViews, viewJSON("v"+gone))
				w.do("POST", pathNamespaces, `{"namespace":["ns","t`+gone+`"]}`)
				w.do("POST", pathTables, fmt.Sprintf(`{"name":"%c%02d","schema":%s}`, "ax"[pages%2], pages, schemaJSON))
				w.do("POST", pathViews, viewJSON(fmt.Sprintf("%c%02d", "by"[pages%2], pages)))
			}
			if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Errorf("%s, pages of %d: names twice or out of order: %q", list, size, got)
			}
			for _, number := range want {
				if name := letter + number; !slices.Contains(got, name) {
					t.Errorf("%s, pages of %d: %s was not met in %q", list, size, name, got)
				}
			}
		}
		if all := w.page(strings.TrimRight(list, "?&")); all.Next != nil || len(all.names()) < 25 {
			t.Errorf("%s: without a token: %q, %v", list, all.names(), all.Next)
		}
	}
}

// Bodies that are too long are also refused over the wire, with or without a declared length,
// without waiting for the rest.
func TestBodyBoundOverTheWire(t *testing.T) {
	t.Parallel()
	const bytesMax = 1 << 20
	w := newWorld(t, func(c *rest.TestConfig) { c.BodyBytesMax = bytesMax })
	server := httptest.NewServer(w)
	defer server.Close()
	for _, row := range []struct{ name, head, body string }{
		{"length", fmt.Sprintf("Content-Length: %d\r\n\r\n", bytesMax+1), "{"},
		{"huge length", "Content-Length: 999999999999\r\n\r\n", "{"},
		{"chunks", "Transfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n", bytesMax+1, strings.Repeat(" ", bytesMax+1))},
	} {
		t.Run(row.name, func(t *testing.T) {
			connection, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			fmt.Fprintf(connection, "POST /v1/namespaces HTTP/1.1\r\nHost: x\r\n%s%s", row.head, row.body)
			// The answer arrives although the rest of the body is never sent.
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			if answer.StatusCode != 413 || !answer.Close || err != nil || !bytes.Contains(body, []byte("RequestTooLargeException")) {
				t.Errorf("%d, close %v, %v %s", answer.StatusCode, answer.Close, err, body)
			}
		})
	}
	exact := `{"namespace":["a"],"x":"` + strings.Repeat("x", bytesMax-len(`{"namespace":["a"],"x":""}`)) + `"}`
	if answer := w.do("POST", pathNamespaces, exact); len(exact) != bytesMax || answer.Code != 200 {
		t.Errorf("a body of %d bytes: %d %.200s", len(exact), answer.Code, answer.Body)
	}
}

// A request whose body is cut off, or is declared as compressed, changes nothing.
func TestOddBodiesOverTheWire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewServer(w)
	defer server.Close()
	before := w.dump()
	for _, head := range []string{"Content-Length: 500\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n20\r\n", "Content-Length: 20\r\nContent-Encoding: gzip\r\n\r\n"} {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(connection, "POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s%s", head, `{"namespace":["a"] }`)
		if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(connection)
		connection.Close()
		if !bytes.Contains(answer, []byte("BadRequestException")) {
			t.Errorf("%q: answer is %.300q", head, answer)
		}
	}
	if after := w.dump(); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
}

// A refused drop of a namespace that is not empty marks the namespace and removes the mark again.
// So its version changes, but nothing that a client can see.
func TestDropNamespaceThatIsNotEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	visible := func() string {
		var text strings.Builder
		for _, path := range []string{"/v1/namespaces", "/v1/namespaces?parent=ns", "/v1/namespaces/ns", "/v1/namespaces/ns%1Fchild", pathTables, pathTable, pathViews, pathView} {
			text.WriteString(w.must("GET", path, "").Body.String())
		}
		return text.String()
	}
	before := visible()
	w.must("POST", pathNamespaces, `{"namespace":["parent","child"]}`)
	w.must("POST", pathNamespaces, `{"namespace":["views"]}`)
	w.must("POST", "/v1/namespaces/views/views", viewJSON("only"))
	for _, ns := range []string{"ns", "parent", "views"} {
		answer := w.do("DELETE", "/v1/namespaces/"+ns, "")
		if answer.Code != 409 || !strings.Contains(answer.Body.String(), "NamespaceNotEmptyException") || !strings.Contains(answer.Body.String(), "is not empty") {
			t.Errorf("%s: %d %s", ns, answer.Code, answer.Body)
		}
	}
	w.must("DELETE", "/v1/namespaces/parent%1Fchild", "")
	w.must("DELETE", "/v1/namespaces/parent", "")
	w.must("DELETE", "/v1/namespaces/views/views/only", "")
	w.must("DELETE", "/v1/namespaces/views", "")
	if after := visible(); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
	w.wantClean()
}
