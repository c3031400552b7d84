package s3_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"moorage/testkit/fakecloud"
)

// double is a server that keeps objects in memory and checks signatures like Amazon's. A test can
// make it overlook parts of a signature. It can also have habits of servers that support less than
// Amazon's.
type double struct {
	URL string

	// overlooks is the part of a signature that the server does not check: method, host, path,
	// query, body, signature, or the name of a header. For that part, it accepts any value that it
	// has seen before.
	overlooks string
	// only limits overlooks to some requests. If it is nil, overlooks applies to all.
	only func(r *http.Request) bool
	// habits is a set of habits; see refuseByHabit.
	habits map[string]bool

	// mu guards the fields below; a leaf.
	mu       sync.Mutex
	objects  map[string][]byte // by bucket/key
	seen     map[string]map[string]bool
	requests []string
}

func newDouble(tb testing.TB, overlooks string, habits ...string) *double {
	tb.Helper()
	d := &double{overlooks: overlooks, habits: make(map[string]bool), objects: make(map[string][]byte),
		seen: map[string]map[string]bool{"method": {"PUT": true, "GET": true, "HEAD": true, "POST": true, "DELETE": true}}}
	for _, habit := range habits {
		d.habits[habit] = true
	}
	server := httptest.NewServer(d)
	tb.Cleanup(server.Close)
	d.URL = server.URL
	return d
}

// takeRequests returns the requests so far, and clears the list.
func (d *double) takeRequests() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := d.requests
	d.requests = nil
	return asked
}

// keys returns the names of all objects, with their bucket.
func (d *double) keys() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.objects))
}

// ServeHTTP answers one request at a time.
func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests, r.Method+" "+r.URL.RequestURI())
	if code, status := d.refuseByHabit(r, body); code != "" {
		answerError(w, status, code)
		return
	}
	if reason := d.verify(r, body); reason != "" {
		answerError(w, http.StatusForbidden, reason)
		return
	}
	d.answer(w, r, body)
}

func answerError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

// refuseByHabit returns the error with which a server of this kind refuses the request. The code is
// empty if the server supports the request.
func (d *double) refuseByHabit(r *http.Request, body []byte) (code string, status int) {
	summed := false
	for name := range r.Header {
		name = strings.ToLower(name)
		isSum := strings.HasPrefix(name, "x-amz-checksum-") && name != "x-amz-checksum-mode" ||
			strings.HasPrefix(name, "x-amz-sdk-checksum")
		summed = summed || name == "x-amz-checksum-sha256" || name == "x-amz-checksum-crc32c"
		if isSum && d.habits["nochecksum"] {
			return "InvalidArgument", http.StatusBadRequest
		}
	}
	if streaming := r.Header.Get("X-Amz-Trailer") + r.Header.Get("Content-Encoding"); streaming != "" && d.habits["notrailer"] {
		return "XAmzContentSHA256Mismatch", http.StatusBadRequest
	}
	if r.Header.Get("If-None-Match") != "" && d.habits["noinm"] {
		return "NotImplemented", http.StatusNotImplemented
	}
	if r.Method == http.MethodPost && r.URL.Query().Has("delete") {
		sum := md5.Sum(body)
		given := r.Header.Get("Content-Md5")
		switch {
		case d.habits["nomulti"]:
			return "NotImplemented", http.StatusNotImplemented
		case given != "" && given != base64.StdEncoding.EncodeToString(sum[:]):
			return "BadDigest", http.StatusBadRequest
		case given == "" && (d.habits["md5"] || d.habits["md5ovh"] && !summed):
			return "InvalidRequest", http.StatusBadRequest
		}
	}
	if given := r.Header.Get("X-Amz-Checksum-Crc32c"); given != "" && !d.habits["anycrc"] {
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		sum.Write(body)
		if given != base64.StdEncoding.EncodeToString(sum.Sum(nil)) {
			return "BadDigest", http.StatusBadRequest
		}
	}
	return "", 0
}

// verify explains why the signature of a request is refused. It returns "" if the signature is
// correct.
func (d *double) verify(r *http.Request, body []byte) string {
	ignored := d.overlooks
	if d.only != nil && !d.only(r) {
		ignored = ""
	}
	authorization := r.Header.Get("Authorization")
	if authorization == "" {
		if ignored == "signature" {
			return ""
		}
		return "AccessDenied"
	}
	_, list, _ := strings.Cut(authorization, "SignedHeaders=")
	list, _, _ = strings.Cut(list, ",")
	signed := strings.Split(list, ";")
	for name := range r.Header {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "x-amz-") && !slices.Contains(signed, name) && !strings.HasPrefix(name, ignored+"-") &&
			name != ignored {
			return "AccessDenied"
		}
	}
	payload := r.Header.Get("X-Amz-Content-Sha256")
	sum := sha256.Sum256(body)
	if len(payload) == 64 && payload != hex.EncodeToString(sum[:]) && ignored != "body" {
		return "XAmzContentSHA256Mismatch"
	}
	tries := map[string]string{
		"method": r.Method, "host": r.Host, "path": r.URL.EscapedPath(), "query": r.URL.RawQuery,
	}
	for _, name := range signed {
		if name != "host" {
			tries[name] = r.Header.Get(name)
		}
	}
	if d.matches(r, signed, payload, tries) {
		for part, value := range tries {
			if d.seen[part] == nil {
				d.seen[part] = make(map[string]bool)
			}
			d.seen[part][value] = true
		}
		return ""
	}
	for value := range d.seen[ignored] {
		changed := maps.Clone(tries)
		changed[ignored] = value
		if d.matches(r, signed, payload, changed) {
			return ""
		}
	}
	return "SignatureDoesNotMatch"
}

// matches signs a request, with some parts replaced, and compares the result with the request's
// signature.
func (d *double) matches(r *http.Request, signed []string, payload string, parts map[string]string) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	again := &http.Request{
		Method: parts["method"], Host: parts["host"], Header: make(http.Header),
		URL: &url.URL{Scheme: "http", Host: parts["host"], Opaque: "//" + parts["host"] + parts["path"], RawQuery: parts["query"]},
	}
	for _, name := range signed {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = r.ContentLength
		default:
			again.Header.Set(name, parts[name])
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	key := aws.Credentials{AccessKeyID: fakecloud.S3AccessKeyID, SecretAccessKey: fakecloud.S3SecretAccessKey}
	if signer.SignHTTP(context.Background(), key, again, payload, "s3", fakecloud.S3Region, at) != nil {
		return false
	}
	return again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

var keyPattern = regexp.MustCompile(`<Key>(.*?)</Key>`)

// answer carries out a request.
func (d *double) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if host, _, _ := strings.Cut(r.Host, "."); host != "127" { // the bucket is in the host's name
		name = host + "/" + name
	}
	bucket, key, _ := strings.Cut(name, "/")
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodHead && key == "":
	case r.Method == http.MethodGet && key == "":
		d.list(w, bucket, query)
	case r.Method == http.MethodPost && query.Has("delete"):
		for _, match := range keyPattern.FindAllStringSubmatch(string(body), -1) {
			delete(d.objects, bucket+"/"+html.UnescapeString(match[1]))
		}
		fmt.Fprint(w, "<DeleteResult></DeleteResult>")
	case r.Method == http.MethodPost && query.Has("uploads"):
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><Key>%s</Key><UploadId>u</UploadId></InitiateMultipartUploadResult>", key)
	case query.Has("uploadId") && r.Method == http.MethodPost:
		d.objects[name] = nil
		fmt.Fprint(w, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
	case query.Has("uploadId") && r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case query.Has("uploadId"):
		fmt.Fprint(w, "<ListPartsResult></ListPartsResult>")
	case r.Method == http.MethodPut:
		if _, ok := d.objects[name]; ok && r.Header.Get("If-None-Match") != "" {
			answerError(w, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		if from := r.Header.Get("X-Amz-Copy-Source"); from != "" {
			body = d.objects[strings.TrimPrefix(from, "/")]
		}
		d.objects[name] = body
		w.Header().Set("ETag", `"x"`)
	case r.Method == http.MethodDelete:
		delete(d.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		found, ok := d.objects[name]
		if !ok {
			answerError(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Last-Modified", time.Unix(0, 0).UTC().Format(http.TimeFormat))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found))
	}
}

func (d *double) list(w http.ResponseWriter, bucket string, query url.Values) {
	var answer strings.Builder
	answer.WriteString("<ListBucketResult><EncodingType>url</EncodingType>")
	for _, name := range slices.Sorted(maps.Keys(d.objects)) {
		if key, ok := strings.CutPrefix(name, bucket+"/"); ok && strings.HasPrefix(key, query.Get("prefix")) {
			var escaped bytes.Buffer
			_ = xml.EscapeText(&escaped, []byte(url.QueryEscape(key)))
			fmt.Fprintf(&answer, "<Contents><Key>%s</Key><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>", &escaped)
		}
	}
	answer.WriteString("</ListBucketResult>")
	_, _ = io.WriteString(w, answer.String())
}
