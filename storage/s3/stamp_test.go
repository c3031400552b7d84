package s3_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"moorage/storage"
	"moorage/testkit/fakecloud"
)

const (
	headerCRC32C = "X-Amz-Checksum-Crc32c"
	headerSHA256 = "X-Amz-Checksum-Sha256"
)

// stamps records the checksums of writes of files, but not of probes' writes.
type stamps struct {
	mu   sync.Mutex // guards the fields; a leaf
	seen []string   // names of headers with their values
}

// note returns a plan that records writes, and then follows another plan.
func (s *stamps) note(next plan) plan {
	return func(call int, r *http.Request) fault {
		if r.Method == http.MethodPut && !isProbe(r) {
			s.mu.Lock()
			for _, name := range []string{headerCRC32C, headerSHA256} {
				if value := r.Header.Get(name); value != "" {
					s.seen = append(s.seen, name+" "+value)
				}
			}
			s.mu.Unlock()
		}
		return next(call, r)
	}
}

func isProbe(r *http.Request) bool { return strings.Contains(r.URL.Path, "moorage-probe-") }

// summed returns the header that a write of body has with either checksum.
func summed(header string, body []byte) string {
	if header == headerCRC32C {
		return header + " " + encodeCRC32C(body)
	}
	sum := sha256.Sum256(body)
	return header + " " + base64.StdEncoding.EncodeToString(sum[:])
}

func encodeCRC32C(body []byte) string {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	sum.Write(body)
	return base64.StdEncoding.EncodeToString(sum.Sum(nil))
}

// withCRC32C gives a fault to each write of a probe that has a CRC32C.
func withCRC32C(do fault) plan {
	return func(_ int, r *http.Request) fault {
		if isProbe(r) && r.Header.Get(headerCRC32C) != "" {
			return do
		}
		return nil
	}
}

// ignoresChecksums simulates a server that stores a body whatever its checksum is.
func ignoresChecksums(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
	answer := forward(r)
	body := fakecloud.ReadBody(answer)
	if answer.StatusCode == http.StatusBadRequest {
		w.Header().Set("ETag", `"kept"`)
		w.WriteHeader(http.StatusOK)
		return
	}
	fakecloud.AnswerWith(w, answer, body)
}

// refusesRight passes writes with a wrong CRC32C, and gives a fault to writes with a correct one.
func refusesRight(do fault) fault {
	return func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Header.Get(headerCRC32C) == encodeCRC32C(body) {
			do(w, r, forward)
			return
		}
		fakecloud.Pass(w, r, forward)
	}
}

// TestStamp writes files to servers that check CRC32C and to some that do not. A file is written
// with CRC32C only if a probe has found that the server refuses a wrong CRC32C and accepts a
// correct one.
func TestStamp(t *testing.T) {
	t.Parallel()
	withoutETag := func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
		answer := forward(r)
		answer.Header.Del("ETag")
		fakecloud.AnswerWith(w, answer, fakecloud.ReadBody(answer))
	}
	for _, tt := range []struct {
		name string
		plan plan
		want string
	}{
		{"checks", nil, headerCRC32C},
		{"ignores it", withCRC32C(ignoresChecksums), headerSHA256},
		{"does not know it", withCRC32C(refuse(http.StatusNotImplemented, "NotImplemented")), headerSHA256},
		{"refuses any", withCRC32C(refuse(http.StatusBadRequest, "InvalidRequest")), headerSHA256},
		{"refuses a right one", withCRC32C(refusesRight(refuse(http.StatusBadRequest, "BadDigest"))), headerSHA256},
		{"forbids to overwrite", withCRC32C(refuse(http.StatusForbidden, "AccessDenied")), headerSHA256},
		{"breaks down", withCRC32C(refuse(http.StatusInternalServerError, "InternalError")), headerSHA256},
		{"has a page for a right one", withCRC32C(refusesRight(answerOK("<html/>"))), headerSHA256},
		{"names no version", withCRC32C(refusesRight(withoutETag)), headerSHA256},
		{"is away", withCRC32C(fakecloud.Cut), headerSHA256},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t)
			if tt.plan == nil {
				tt.plan = func(int, *http.Request) fault { return nil }
			}
			var stamps stamps
			proxy.Follow(stamps.note(tt.plan))
			if err := store.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			body := []byte("content")
			if err := store.Create(t.Context(), storage.Join(root, "a"), body); err != nil {
				t.Fatal(err)
			}
			if want := summed(tt.want, body); len(stamps.seen) != 1 || stamps.seen[0] != want {
				t.Errorf("the write had %q, want %q", stamps.seen, want)
			}
			if keys := fakecloud.StartS3(t).Keys(t, bucketOf(root)); len(keys) != 1 {
				t.Errorf("the bucket has %q, want the file alone", keys)
			}
			if content, err := storage.ReadAll(t.Context(), store, storage.Join(root, "a"), 100); !bytes.Equal(content, body) {
				t.Errorf("read %q, %v", content, err)
			}
		})
	}
}

// TestStampIsProbedOnce probes a bucket twice. If the first probe has found that the server checks
// CRC32C, the second does not test that again.
func TestStampIsProbedOnce(t *testing.T) {
	t.Parallel()
	proxy, store, _ := newProxy(t)
	for _, want := range []string{"HEAD PUT PUT PUT PUT POST", "HEAD PUT PUT POST"} {
		proxy.Follow(nil)
		if err := store.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := proxy.Requests(); got != want {
			t.Errorf("requests %s, want %s", got, want)
		}
	}
}

// TestDamagedOnTheWay writes through a connection that changes a bit of the body. With either
// checksum, Create fails and no file exists.
func TestDamagedOnTheWay(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]plan{
		headerCRC32C: func(int, *http.Request) fault { return nil },
		headerSHA256: withCRC32C(ignoresChecksums),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t)
			proxy.Follow(plan)
			if err := store.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			proxy.Follow(fakecloud.Every(http.MethodPut, func(w http.ResponseWriter, r *http.Request,
				forward func(*http.Request) *http.Response) {
				if r.Header.Get(name) == "" {
					t.Errorf("a write without %s", name)
				}
				body, err := io.ReadAll(r.Body)
				if err != nil {
					panic(http.ErrAbortHandler)
				}
				body[len(body)/2] ^= 1
				r.Body = io.NopCloser(bytes.NewReader(body))
				fakecloud.Pass(w, r, forward)
			}))
			if err := store.Create(t.Context(), storage.Join(root, "a"), []byte("content")); err == nil {
				t.Error("Create is no error")
			}
			if keys := fakecloud.StartS3(t).Keys(t, bucketOf(root)); len(keys) > 0 {
				t.Errorf("the bucket has %q", keys)
			}
		})
	}
}
