package s3_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
)

// TestDeleteManyObjects deletes 2,500 locations in three requests. Some of them have objects.
func TestDeleteManyObjects(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	locations := make([]string, 2500)
	for i := range locations {
		locations[i] = storage.Join(root, fmt.Sprint(i))
		if i%500 == 0 {
			if err := store.Create(t.Context(), locations[i], nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	proxy.Follow(nil)
	if err := store.Delete(t.Context(), locations...); err != nil {
		t.Error(err)
	}
	if got, want := proxy.Requests(), "POST POST POST"; got != want {
		t.Errorf("requests %s, want %s", got, want)
	}
	if keys := fakecloud.StartS3(t).Keys(t, bucketOf(root)); len(keys) > 0 {
		t.Errorf("left over: %q", keys)
	}
}

// failing answers a DeleteObjects with the error code for every matching key. The real server
// deletes nothing.
func failing(code string, asked *[]string) fault {
	key := regexp.MustCompile(`<Key>([^<]*)</Key>`)
	return func(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *http.Response) {
		body, _ := io.ReadAll(r.Body)
		var answer strings.Builder
		answer.WriteString("<DeleteResult>")
		for _, match := range key.FindAllStringSubmatch(string(body), -1) {
			*asked = append(*asked, match[1])
			if !strings.HasSuffix(match[1], "good") {
				fmt.Fprintf(&answer, "<Error><Key>%s</Key><Code>%s</Code><Message>as planned</Message></Error>", match[1], code)
			}
		}
		answer.WriteString("</DeleteResult>")
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, answer.String())
	}
}

// TestDeleteInPart uses servers that cannot delete some of the objects.
func TestDeleteInPart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code     string
		rounds   int
		failures []string // keys named in the error
	}{
		{"SlowDown", 5, []string{"w/bad", "w/worse"}},
		{"InternalError", 5, []string{"w/bad", "w/worse"}},
		{"AccessDenied", 1, []string{"w/bad", "w/worse"}},
		{"NoSuchKey", 1, nil},
	} {
		t.Run(tt.code, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t)
			var asked []string
			proxy.Follow(fakecloud.FirstN(100, failing(tt.code, &asked)))
			err := store.Delete(t.Context(), storage.Join(root, "bad"), storage.Join(root, "good"), storage.Join(root, "worse"))
			if (err != nil) != (len(tt.failures) > 0) {
				t.Errorf("Delete = %v", err)
			}
			if got := errors.Is(err, storage.ErrSlowDown); got != (tt.code == "SlowDown") {
				t.Errorf("Delete = %v, which is ErrSlowDown: %t", err, got)
			}
			for _, key := range tt.failures {
				if err != nil && !strings.Contains(err.Error(), "/"+key+": "+tt.code) {
					t.Errorf("the error does not name %s: %v", key, err)
				}
			}
			want := []string{"w/bad", "w/good", "w/worse"}
			for range tt.rounds - 1 {
				want = append(want, "w/bad", "w/worse")
			}
			if !slices.Equal(asked, want) {
				t.Errorf("asked for %q, want %q", asked, want)
			}
		})
	}
}

// TestDeletePassingFailure uses a server that at first cannot delete, and later can.
func TestDeletePassingFailure(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	location := storage.Join(root, "bad")
	if err := store.Create(t.Context(), location, nil); err != nil {
		t.Fatal(err)
	}
	var asked []string
	proxy.Follow(fakecloud.FirstN(2, failing("SlowDown", &asked)))
	if err := store.Delete(t.Context(), location); err != nil {
		t.Errorf("Delete = %v", err)
	}
	if keys := fakecloud.StartS3(t).Keys(t, bucketOf(root)); len(keys) > 0 {
		t.Errorf("left over: %q", keys)
	}
}

// TestDeleteNamesAnother uses a server whose answer names an object that was not in the request.
// That object stays, and Delete returns an error.
func TestDeleteNamesAnother(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	for _, name := range []string{"asked", "other"} {
		if err := store.Create(t.Context(), storage.Join(root, name), nil); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Follow(fakecloud.Nth(0, answerOK("<DeleteResult><Error><Key>w/other</Key><Code>InternalError</Code></Error></DeleteResult>")))
	err := store.Delete(t.Context(), storage.Join(root, "asked"))
	if err == nil || !strings.Contains(err.Error(), "w/other: InternalError") {
		t.Errorf("Delete = %v, want what the server said", err)
	}
	if got := proxy.Requests(); got != "POST" {
		t.Errorf("requests %s, want one", got)
	}
	if keys := fakecloud.StartS3(t).Keys(t, bucketOf(root)); !slices.Equal(keys, []string{"w/asked", "w/other"}) {
		t.Errorf("the bucket has %q", keys)
	}
}

// TestDeleteAnsweredBySomethingElse gives a Delete an answer with status 200 from something that is
// not an S3 server, or that does not confirm the deletion. Delete then does not report success.
func TestDeleteAnsweredBySomethingElse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer   string
		requests string
		deleted  bool
	}{
		"a page":           {"<!DOCTYPE html>\n<html><body>Back soon</body></html>", "POST", false},
		"a word":           {"OK", "POST", false},
		"a cut document":   {"<DeleteResult><Err", "POST", false},
		"an error":         {"<Error><Code>InternalError</Code></Error>", "POST POST", true},
		"nothing to tell":  {"", "POST", true},
		"an empty result":  {"<?xml version=\"1.0\"?>\n<DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>", "POST", true},
		"a longer preface": {strings.Repeat(" \n", 1<<12) + "<DeleteResult></DeleteResult>", "POST", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t)
			proxy.Follow(fakecloud.Nth(0, answerOK(tt.answer)))
			if err := store.Delete(t.Context(), storage.Join(root, "a")); (err == nil) != tt.deleted {
				t.Errorf("Delete = %v, want success: %t", err, tt.deleted)
			}
			if got := proxy.Requests(); got != tt.requests {
				t.Errorf("requests %s, want %s", got, tt.requests)
			}
		})
	}
}

// TestDeleteInSeveralBuckets deletes in all buckets. The error names the bucket in which the
// deletion failed.
func TestDeleteInSeveralBuckets(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	root := "s3://" + server.NewBucket(t)
	store := open(t, options(server.Endpoint), root, "s3://no-such-bucket")
	if err := store.Create(t.Context(), root+"/a", nil); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), "s3://no-such-bucket/a", root+"/a"); err == nil {
		t.Error("Delete in a bucket that is not there is no error")
	}
	if _, err := store.Stat(t.Context(), root+"/a"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat = %v, want ErrNotFound", err)
	}
}

// awkwardNames returns names that might be spelled differently in a URL, in XML or in a path.
func awkwardNames() []string {
	return []string{
		"a b", "a%20b", "a+b", "a%2Fb", "%", "%zz", "é", "e\u0301", "日本語", "🦆", "a:b", "a=b&c", "a'b", `a"b`, "a*b", "[a]", "{a}",
		"a|b", "~a", "...", "..a", "a..", "%2e%2e", "a,b;c", "a@b", "$a", "<a>&amp;", "]]>", " a", "a ", "\u2028", "\ufeff",
	}
}

// TestKeys checks the server's keys for these names. Each object is deleted without affecting
// another.
func TestKeys(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	bucket := server.NewBucket(t)
	store := open(t, options(server.Endpoint), "s3a://"+bucket)
	var want []string
	for i, name := range awkwardNames() {
		scheme := []string{"s3", "s3a", "s3n", "S3"}[i%4]
		if err := store.Create(t.Context(), scheme+"://"+bucket+"/w/"+name, nil); err != nil {
			t.Errorf("Create %q: %v", name, err)
			continue
		}
		want = append(want, "w/"+name)
	}
	slices.Sort(want)
	if got := server.Keys(t, bucket); !slices.Equal(got, want) {
		t.Fatalf("keys %q, want %q", got, want)
	}
	for len(want) > 0 {
		if err := store.Delete(t.Context(), "s3://"+bucket+"/"+want[0]); err != nil {
			t.Errorf("Delete %q: %v", want[0], err)
		}
		want = want[1:]
		if got := server.Keys(t, bucket); !slices.Equal(got, want) {
			t.Fatalf("keys %q, want %q", got, want)
		}
	}
}

// TestPaths checks the requests for these names. That includes names that this server changes: it
// takes a backslash for a slash, and merges slashes.
func TestPaths(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	var sent []string
	proxy.Follow(func(_ int, r *http.Request) fault {
		sent = append(sent, strings.TrimPrefix(r.URL.Path, "/"+bucketOf(root)+"/w/"))
		return refuse(http.StatusNotFound, "NoSuchKey")
	})
	names := append(awkwardNames(), `a\b`, `..\a`, "a//b", "\uffff")
	for _, name := range names {
		if _, err := store.Stat(t.Context(), storage.Join(root, name)); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Stat %q = %v, want ErrNotFound", name, err)
		}
	}
	if !slices.Equal(sent, names) {
		t.Errorf("sent %q, want %q", sent, names)
	}
}

// TestKeysThatXMLCannotSpell deletes an object whose key cannot be named in the body of a request.
func TestKeysThatXMLCannotSpell(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	proxy.Follow(func(_ int, r *http.Request) fault {
		if r.Method == http.MethodPost {
			return refuse(http.StatusBadRequest, "MalformedXML")
		}
		return nil
	})
	replaced, location := storage.Join(root, "a\ufffd"), storage.Join(root, "a\uffff")
	direct := open(t, options(fakecloud.StartS3(t).Endpoint), root)
	for _, each := range []string{replaced, location} {
		if err := direct.Create(t.Context(), each, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Delete(t.Context(), location); err != nil {
		t.Errorf("Delete = %v", err)
	}
	if _, err := direct.Stat(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat = %v, want ErrNotFound", err)
	}
	if _, err := direct.Stat(t.Context(), replaced); err != nil {
		t.Errorf("the object with the replacement character: %v", err)
	}
}

// TestNamesThatNoObjectHas requests the bucket itself, and keys that are too long.
func TestNamesThatNoObjectHas(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	whole := open(t, options(proxy.URL), "s3://"+bucketOf(root))
	proxy.Follow(nil)
	for _, tt := range []struct {
		store    *s3.Store
		location string
	}{
		{whole, "s3://" + bucketOf(root)},
		{whole, "s3://" + bucketOf(root) + "///"},
		{store, storage.Join(root, strings.Repeat("n", 1024))},
	} {
		if _, _, err := tt.store.Open(t.Context(), tt.location); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Open = %v, want ErrNotFound", err)
		}
		if err := tt.store.Create(t.Context(), tt.location, nil); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Create = %v, want ErrNotFound", err)
		}
		if err := tt.store.Delete(t.Context(), tt.location); err != nil {
			t.Errorf("Delete = %v", err)
		}
	}
	if got := proxy.Requests(); got != "" {
		t.Errorf("requests %s, want none", got)
	}
}

func bucketOf(root string) string { return strings.Split(root, "/")[2] }
