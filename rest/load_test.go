package rest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/internal/web"
	"moorage/metadata"
)

// sampleMetadata returns the metadata of a table with the given number of snapshots. The branch
// main points to the last.
func sampleMetadata(snapshots int) []byte {
	var list, log []string
	for i := 1; i <= snapshots; i++ {
		id := 3051729675574597000 + i
		parent := ""
		if i > 1 {
			parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, id-1)
		}
		list = append(list, fmt.Sprintf(`{"sequence-number":%d,"snapshot-id":%d,%s"timestamp-ms":%d,`+
			`"summary":{"operation":"append","added-data-files":"4","added-records":"1000","total-records":"%d000","total-data-files":"%d"},`+
			`"manifest-list":"file:///warehouse/a/t/metadata/snap-%d-1-aef2c5b8-0b8b-4f1b-9f5c-5c1b7a3f0d11.avro","schema-id":0}`,
			i, id, parent, 1700000000000+i, i, 4*i, id))
		log = append(log, fmt.Sprintf(`{"timestamp-ms":%d,"snapshot-id":%d}`, 1700000000000+i, id))
	}
	current, refs := -1, "{}"
	if snapshots > 0 {
		current = 3051729675574597000 + snapshots
		refs = fmt.Sprintf(`{"main":{"snapshot-id":%d,"type":"branch"}}`, current)
	}
	return fmt.Appendf(nil, `{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"file:///warehouse/a/t",`+
		`"last-sequence-number":%d,"last-updated-ms":%d,"last-column-id":2,"current-schema-id":0,`+
		`"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":true,"type":"long"},{"id":2,"name":"y","required":false,"type":"string"}]}],`+
		`"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,`+
		`"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"owner":"ann"},`+
		`"current-snapshot-id":%d,"refs":%s,"snapshots":[%s],"statistics":[],"partition-statistics":[],"snapshot-log":[%s],"metadata-log":[]}`,
		snapshots, 1700000000000+snapshots, current, refs, strings.Join(list, ","), strings.Join(log, ","))
}

func sampleTable(t testing.TB, snapshots int) *catalog.Table {
	t.Helper()
	document, err := metadata.Parse(sampleMetadata(snapshots))
	if err != nil {
		t.Fatal(err)
	}
	return &catalog.Table{
		Identifier:       moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
		MetadataLocation: fmt.Sprintf("file:///warehouse/a/t/metadata/%05d-\"<é>.metadata.json", snapshots),
		Document:         document,
	}
}

const tablePath = "/v1/w/namespaces/a/tables/t"

// loaded is the decoded answer to a load.
type loaded struct {
	Location *string           `json:"metadata-location"`
	Metadata json.RawMessage   `json:"metadata"`
	Config   map[string]string `json:"config"`
}

func takeApart(t *testing.T, body []byte) (answer loaded) {
	t.Helper()
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%v in %.200s", err, body)
	}
	return answer
}

func gunzip(t *testing.T, body io.Reader) []byte {
	t.Helper()
	reader, err := gzip.NewReader(body)
	if err != nil {
		t.Fatal(err)
	}
	reader.Multistream(false)
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestLoadAnswersTheDocument(t *testing.T) {
	t.Parallel()
	table := sampleTable(t, 3)
	fake := &fakeCatalog{table: table}
	h := NewServer(TestConfig{Catalog: fake})
	for _, config := range []map[string]string{nil, {}, {"s3.region": "x", "client.\"q\"": "<y>"}} {
		table.Config = config
		w := send(h, "GET", tablePath, "")
		answer := takeApart(t, w.Body.Bytes())
		if *answer.Location != table.MetadataLocation || !bytes.Equal(answer.Metadata, table.Document.Raw()) ||
			answer.Config == nil || len(answer.Config) != len(config) || answer.Config["client.\"q\""] != config["client.\"q\""] {
			t.Errorf("answer is %s", w.Body)
		}
		if got := w.Header().Get("Content-Length"); got != strconv.Itoa(w.Body.Len()) {
			t.Errorf("Content-Length is %q, the body has %d bytes", got, w.Body.Len())
		}
		if got := w.Header().Get("Vary"); got != "Accept-Encoding, X-Iceberg-Access-Delegation" {
			t.Errorf("Vary is %q", got)
		}
	}
	w := send(h, "GET", tablePath+"?snapshots=refs", "")
	if answer := takeApart(t, w.Body.Bytes()); !bytes.Equal(answer.Metadata, table.Document.RawRefs()) {
		t.Errorf("refs answers %s", answer.Metadata)
	}
}

// Java clients look up the header ETag in a case-sensitive map.
func TestETagIsSpelledSo(t *testing.T) {
	t.Parallel()
	h := NewServer(TestConfig{Catalog: &fakeCatalog{table: sampleTable(t, 1), view: sampleView(t, 1)}})
	for _, s := range samples() {
		w := send(h, s.method, s.path, s.body)
		tagged := s.operation == "loadTable" || s.operation == "createTable" || s.operation == "registerTable" || s.operation == "updateTable"
		if tags := w.Header()["ETag"]; (len(tags) == 1) != tagged { //nolint:staticcheck // the spelling is the point
			t.Errorf("%s: ETag is %q", s.operation, tags)
		}
		if tags := w.Header()["Etag"]; tags != nil {
			t.Errorf("%s: Etag is %q", s.operation, tags)
		}
	}
	server := httptest.NewServer(h)
	defer server.Close()
	connection := dial(t, server)
	fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", tablePath)
	raw, err := io.ReadAll(connection)
	if err != nil || !strings.Contains(string(raw), "\r\nETag: \"") {
		t.Errorf("%v on the wire: %.400s", err, raw)
	}
}

// The ETag of a load depends on everything that makes answers differ, and on nothing else.
func TestTagTellsLoadsApart(t *testing.T) {
	t.Parallel()
	type load struct {
		table      *catalog.Table
		path       string
		delegation string
	}
	tag := func(l load) string {
		h := NewServer(TestConfig{Catalog: &fakeCatalog{table: l.table}})
		var headers []string
		if l.delegation != "" {
			headers = []string{"X-Iceberg-Access-Delegation", l.delegation}
		}
		return send(h, "GET", l.path, "", headers...).Header()["ETag"][0] //nolint:staticcheck // spelled so
	}
	one, two, configured, other := sampleTable(t, 1), sampleTable(t, 2), sampleTable(t, 1), sampleTable(t, 1)
	configured.Config = map[string]string{"a": "b"}
	other.Config = map[string]string{"a": "c"}
	seen := map[string]load{}
	for _, l := range []load{
		{one, tablePath, ""}, {two, tablePath, ""}, {configured, tablePath, ""}, {other, tablePath, ""}, {one, tablePath + "?snapshots=refs", ""},
		{one, tablePath, "vended-credentials"}, {one, tablePath, "remote-signing"}, {one, tablePath + "?snapshots=refs", "remote-signing"},
	} {
		got := tag(l)
		if before, twice := seen[got]; twice {
			t.Errorf("%v and %v have the tag %s", l, before, got)
		}
		seen[got] = l
		if again := tag(l); again != got {
			t.Errorf("%v has tags %s and %s", l, got, again)
		}
		if got[0] != '"' || got[len(got)-1] != '"' {
			t.Errorf("the tag %s is not quoted", got)
		}
	}
	if tag(load{one, tablePath, ""}) != tag(load{one, tablePath + "?snapshots=all", ""}) {
		t.Error("all and the default have different tags")
	}
}

// The answers to creates, registers and commits have the same ETag as the next plain load.
func TestTagOfChangesIsThatOfTheLoad(t *testing.T) {
	t.Parallel()
	table := sampleTable(t, 1)
	table.Config = map[string]string{"k": "v"}
	h := NewServer(TestConfig{Catalog: &fakeCatalog{table: table}})
	want := send(h, "GET", tablePath, "").Header()["ETag"] //nolint:staticcheck // spelled so
	for _, s := range samples() {
		switch s.operation {
		case "createTable", "registerTable", "updateTable":
			w := send(h, s.method, s.path, s.body)
			if got := w.Header()["ETag"]; len(got) != 1 || got[0] != want[0] { //nolint:staticcheck // spelled so
				t.Errorf("%s: ETag is %q, want %q", s.operation, got, want)
			}
			if hasConfig := takeApart(t, w.Body.Bytes()).Config != nil; hasConfig != (s.operation != "updateTable") {
				t.Errorf("%s answers %s", s.operation, w.Body)
			}
		}
	}
}

func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	h := NewServer(TestConfig{Catalog: &fakeCatalog{table: sampleTable(t, 1)}})
	tag := send(h, "GET", tablePath, "").Header()["ETag"][0] //nolint:staticcheck // spelled so
	for _, row := range []struct {
		name    string
		headers []string
		path    string
		want    int
	}{
		{"same", []string{tag}, "", 304},
		{"weak", []string{"W/" + tag}, "", 304},
		{"unquoted", []string{strings.Trim(tag, `"`)}, "", 304},
		{"any", []string{"*"}, "", 304},
		{"list", []string{`"a", ` + tag + `, W/"b"`}, "", 304},
		{"list without spaces", []string{`"a",` + tag}, "", 304},
		{"two lines", []string{`"a"`, tag}, "", 304},
		{"same, refs asked", []string{tag}, "?snapshots=refs", 200},
		{"other", []string{`"a"`}, "", 200},
		{"part", []string{tag[:8]}, "", 200},
		{"empty", []string{""}, "", 200},
		{"commas", []string{",,,"}, "", 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			var headers []string
			for _, value := range row.headers {
				headers = append(headers, "If-None-Match", value)
			}
			w := send(h, "GET", tablePath+row.path, "", headers...)
			if w.Code != row.want {
				t.Errorf("status is %d, want %d", w.Code, row.want)
			}
			if w.Code == 304 && (w.Body.Len() > 0 || w.Header().Get("Content-Length") != "" || w.Header()["ETag"][0] != tag || w.Header().Get("Vary") == "") { //nolint:staticcheck // spelled so
				t.Errorf("304 with %v and a body of %d bytes", w.Header(), w.Body.Len())
			}
		})
	}
	if w := send(h, "POST", tablePath, `{"requirements":[],"updates":null}`, "If-None-Match", "*"); w.Code == 304 {
		t.Error("a commit is answered 304")
	}
}

func TestStagedTable(t *testing.T) {
	t.Parallel()
	table := sampleTable(t, 20)
	table.MetadataLocation = ""
	fake := &fakeCatalog{table: table}
	h := NewServer(TestConfig{Catalog: fake})
	body := `{"name":"t","schema":{"type":"struct","fields":[]},"stage-create":true}`
	w := send(h, "POST", "/v1/w/namespaces/a/tables", body)
	if !fake.created.Stage || strings.Contains(w.Body.String(), "metadata-location\"") || w.Header()["ETag"] != nil { //nolint:staticcheck // spelled so
		t.Errorf("staged %v, answer %v %s", fake.created.Stage, w.Header(), w.Body)
	}
	if answer := takeApart(t, w.Body.Bytes()); answer.Location != nil || !bytes.Equal(answer.Metadata, table.Document.Raw()) || answer.Config == nil {
		t.Errorf("answer is %s", w.Body)
	}
	// Two staged tables have no metadata location that distinguishes them.
	first := gunzip(t, send(h, "POST", "/v1/w/namespaces/a/tables", body, "Accept-Encoding", "gzip").Body)
	fake.table = sampleTable(t, 30)
	fake.table.MetadataLocation = ""
	second := gunzip(t, send(h, "POST", "/v1/w/namespaces/a/tables", body, "Accept-Encoding", "gzip").Body)
	if bytes.Equal(first, second) {
		t.Error("the second staged table is answered with the first one's metadata")
	}
}

func TestLastVersion(t *testing.T) {
	t.Parallel()
	table := sampleTable(t, 1)
	table.Config = map[string]string{"k": "v"}
	w := send(NewServer(TestConfig{Catalog: &fakeCatalog{table: table}}), "POST", tablePath+"/unregister", "")
	answer := takeApart(t, w.Body.Bytes())
	if *answer.Location != table.MetadataLocation || !bytes.Equal(answer.Metadata, table.Document.Raw()) || answer.Config != nil {
		t.Errorf("answer is %s", w.Body)
	}
}

// A compressed load has the same content as a plain one, for every client, whatever another client
// has requested before.
func TestCompressedLoad(t *testing.T) {
	t.Parallel()
	table := sampleTable(t, 50)
	fake := &fakeCatalog{table: table}
	h := NewServer(TestConfig{Catalog: fake})
	for i, config := range []map[string]string{nil, {"token": "abc"}, {"token": strings.Repeat("long ", 40_000)}, nil} {
		for _, path := range []string{tablePath, tablePath + "?snapshots=refs"} {
			table.Config = config
			want := send(h, "GET", path, "")
			got := send(h, "GET", path, "", "Accept-Encoding", "gzip")
			if got.Header().Get("Content-Encoding") != "gzip" || got.Header().Get("Content-Length") != strconv.Itoa(got.Body.Len()) {
				t.Errorf("%d: header %v, %d bytes", i, got.Header(), got.Body.Len())
			}
			if got.Header()["ETag"][0] != want.Header()["ETag"][0] { //nolint:staticcheck // spelled so
				t.Errorf("%d: the tag depends on the coding", i)
			}
			if config == nil && got.Body.Len() > want.Body.Len()/2 {
				t.Errorf("%d: %d bytes of %d", i, got.Body.Len(), want.Body.Len())
			}
			if text := gunzip(t, got.Body); !bytes.Equal(text, want.Body.Bytes()) {
				t.Errorf("%d: compressed and plain differ: %.300s", i, text)
			}
		}
	}
}

func TestSmallLoadIsPlain(t *testing.T) {
	t.Parallel()
	table := sampleTable(t, 0)
	if len(table.Document.Raw()) >= web.CompressBytesMin {
		t.Fatalf("the sample has %d bytes", len(table.Document.Raw()))
	}
	w := send(NewServer(TestConfig{Catalog: &fakeCatalog{table: table}}), "GET", tablePath, "", "Accept-Encoding", "gzip")
	if w.Header().Get("Content-Encoding") != "" {
		t.Errorf("header is %v", w.Header())
	}
}

// Clients other than Go's can read compressed answers too. Go's own client requests them by
// default.
func TestCompressedLoadOverTheWire(t *testing.T) {
	t.Parallel()
	table := sampleTable(t, 50)
	server := httptest.NewServer(NewServer(TestConfig{Catalog: &fakeCatalog{table: table}}))
	defer server.Close()
	answer, err := http.Get(server.URL + tablePath)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || !answer.Uncompressed || !bytes.Equal(takeApart(t, body).Metadata, table.Document.Raw()) {
		t.Errorf("%v, uncompressed %v: %.200s", err, answer.Uncompressed, body)
	}
}

// FuzzLoadHeaders checks that, whatever the headers of a load contain, the answer is the table,
// plain or compressed. It may also be 304 if If-None-Match has the table's ETag or *.
func FuzzLoadHeaders(f *testing.F) {
	table := sampleTable(f, 20)
	h := NewServer(TestConfig{Catalog: &fakeCatalog{table: table}})
	const path = "/v1/w/namespaces/a/tables/t"
	sane := regexp.MustCompile(`^[!#-\[\]-~]{1,128}$`)
	plain := send(h, "GET", path, "")
	tag := plain.Header()["ETag"][0] //nolint:staticcheck // spelled as clients look it up
	f.Add(tag, "gzip", "vended-credentials", "id-1")
	f.Add("W/"+tag, "identity;q=1, *;q=0", "", "")
	f.Add(`"x", `+tag[1:len(tag)-1], "gzip;q=0.5,identity;q=0.4", "vended-credentials,remote-signing", "a b")
	f.Add("*", "br;q=1.0, gzip;q=NaN", "x", strings.Repeat("i", 129))
	f.Add(`W/"`, "x-gzip ; q = 1", ",", "\"")
	f.Fuzz(func(t *testing.T, match, accept, delegation, requestID string) {
		headers := []string{"If-None-Match", match, "Accept-Encoding", accept, "X-Iceberg-Access-Delegation", delegation, "X-Request-Id", requestID}
		w := send(h, "GET", path, "", headers...)
		if given := w.Header().Get("X-Request-Id"); given == "" || given == requestID && !sane.MatchString(requestID) {
			t.Errorf("the request %q is called %q", requestID, given)
		}
		own := w.Header()["ETag"] //nolint:staticcheck // spelled as clients look it up
		switch w.Code {
		case http.StatusNotModified:
			if w.Body.Len() > 0 || !strings.Contains(match, "*") && (len(own) != 1 || !strings.Contains(match, own[0][1:len(own[0])-1])) {
				t.Errorf("%q is answered 304 with %d bytes, the tag is %q", match, w.Body.Len(), own)
			}
		case http.StatusOK:
			body := io.Reader(w.Body)
			if w.Header().Get("Content-Encoding") == "gzip" {
				if !strings.Contains(strings.ToLower(accept), "gzip") && !strings.Contains(accept, "*") {
					t.Errorf("compressed for %q", accept)
				}
				reader, err := gzip.NewReader(body)
				if err != nil {
					t.Fatal(err)
				}
				body = reader
			}
			if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, plain.Body.Bytes()) {
				t.Errorf("%q: %v, the answer is %.100q", headers, err, got)
			}
		default:
			t.Errorf("%q is answered %d", headers, w.Code)
		}
	})
}
