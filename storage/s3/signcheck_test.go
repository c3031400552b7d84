package s3_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
)

// at is the address of the server in these tests. Nothing is sent there.
const at = "http://127.0.0.1:9000"

func signer(tb testing.TB) *s3.Store {
	tb.Helper()
	client, err := s3.Connect(tb.Context(), options(at))
	if err != nil {
		tb.Fatal(err)
	}
	store, err := client.Within([]string{"s3://lake/wh", "s3://lake/old"})
	if err != nil {
		tb.Fatal(err)
	}
	store.AssumeSound()
	return store
}

// asking returns a request for a table that its caller may write.
func asking(method, uri string, headers ...string) storage.SignRequest {
	request := storage.SignRequest{
		Method: method, URI: uri, Region: fakecloud.S3Region, Headers: make(map[string][]string),
		Locations: []string{"s3://lake/wh/tab", "s3://lake/old/tab"}, Write: true,
	}
	for i := 0; i < len(headers); i += 2 {
		request.Headers[headers[i]] = append(request.Headers[headers[i]], headers[i+1])
	}
	return request
}

func deleting(body string) storage.SignRequest {
	request := asking(http.MethodPost, at+"/lake?delete")
	request.Body = []byte(body)
	return request
}

// signable returns requests that are signed. Each request in unsignable differs from one of these.
func signable() map[string]storage.SignRequest {
	const key = at + "/lake/wh/tab/data/a"
	requests := map[string]storage.SignRequest{
		"get":           asking("GET", key, "Range", "bytes=0-1", "User-Agent", "x", "amz-sdk-invocation-id", "1"),
		"get with x-id": asking("GET", key+"?x-id=GetObject", "x-amz-checksum-mode", "ENABLED"),
		"get by Java":   asking("GET", key, "x-amz-te", "append-md5"),
		"get a part":    asking("GET", key+"?partNumber=1"), "head": asking("HEAD", key),
		"get of an old place":       asking("GET", at+"/lake/old/tab/data/a"),
		"get metadata":              asking("GET", at+"/lake/wh/tab/metadata/1.metadata.json"),
		"get the folder's own name": asking("HEAD", at+"/lake/wh/tab"),
		"get an odd name":           asking("GET", key+"%25%20%2B%E6%97%A5%2520%27%22"),
		"list":                      asking("GET", at+"/lake?list-type=2&prefix=wh%2Ftab%2F"),
		"list on": asking("GET", at+"/lake/?list-type=2&prefix=wh/tab/data&delimiter=%2F&continuation-token=1%2B&"+
			"start-after=a&max-keys=1&encoding-type=url&fetch-owner=false&x-id=ListObjectsV2"),
		"list parts": asking("GET", key+"?uploadId=1&max-parts=1&part-number-marker=1"),
		"put": asking("PUT", key, "Content-Type", "a/b", "Content-MD5", "x", "x-amz-meta-a", "b", "If-None-Match", "*",
			"X-Amz-Content-SHA256", strings.Repeat("0a", 32), "x-amz-storage-class", "STANDARD",
			"x-amz-server-side-encryption", "aws:kms", "Expect", "100-continue", "Content-Length", "4"),
		"put with a trailer": asking("PUT", key, "x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
			"x-amz-trailer", "x-amz-checksum-crc32", "x-amz-decoded-content-length", "4", "Content-Encoding", "aws-chunked",
			"x-amz-sdk-checksum-algorithm", "CRC32"),
		"put now":        asking("PUT", key, "X-Amz-Date", time.Now().UTC().Format("20060102T150405Z")),
		"put a manifest": asking("PUT", at+"/lake/wh/tab/metadata/snap.avro"),
		"begin parts":    asking("POST", key+"?uploads"), "begin parts, spelled": asking("POST", key+"?uploads="),
		"put a part": asking("PUT", key+"?partNumber=1&uploadId=1"),
		"end parts":  asking("POST", key+"?uploadId=1"), "abort parts": asking("DELETE", key+"?uploadId=1"),
		"delete": asking("DELETE", key),
		"delete many": deleting(`<?xml version="1.0" encoding="UTF-8"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
			`<Object><Key>wh/tab/a</Key></Object><Object><Key>wh/tab/b &amp; c</Key></Object><Quiet>true</Quiet></Delete>`),
	}
	return requests
}

func TestSignable(t *testing.T) {
	t.Parallel()
	store := signer(t)
	for name, request := range signable() {
		got, err := store.Sign(t.Context(), request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got.Headers["Authorization"]) != 1 {
			t.Errorf("%s: the answer has the headers %q", name, got.Headers)
		}
		for added := range got.Headers {
			for sent := range request.Headers { // the header may be added a second time
				if strings.EqualFold(added, sent) {
					t.Errorf("%s: the answer has the header %s, which was sent", name, added)
				}
			}
		}
	}
}

// TestReadersSignNoWrites requests signatures with only the right to read.
func TestReadersSignNoWrites(t *testing.T) {
	t.Parallel()
	store := signer(t)
	for name, request := range signable() {
		request.Write = false
		_, err := store.Sign(t.Context(), request)
		isRead := request.Method == "GET" || request.Method == "HEAD"
		if isRead != (err == nil) || !isRead && !errors.Is(err, storage.ErrNeedsWrite) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unsignable returns requests that must not be signed, by what is wrong with them.
func unsignable() map[string]storage.SignRequest {
	requests := make(map[string]storage.SignRequest)
	for _, part := range []map[string]storage.SignRequest{
		otherOperations(), otherHeaders(), otherPlaces(), otherLists(), otherDeletes(), otherForms(),
	} {
		maps.Copy(requests, part)
	}
	return requests
}

// otherOperations returns requests for operations that no engine needs.
func otherOperations() map[string]storage.SignRequest {
	requests := make(map[string]storage.SignRequest)
	add := func(method, uri string) { requests[method+" "+strings.TrimPrefix(uri, at)] = asking(method, uri) }
	for _, part := range []string{"acl", "policy", "policyStatus", "tagging", "versions", "versioning", "versionId=1",
		"torrent", "retention", "legal-hold", "object-lock", "select&select-type=2", "restore", "lifecycle", "cors", "website",
		"logging", "notification", "replication", "encryption", "accelerate", "requestPayment", "inventory", "attributes",
		"ownershipControls", "publicAccessBlock", "location", "append&position=0", "renameObject",
		"response-content-type=text/html", "X-Amz-Signature=1", "lambdaArn=1"} {
		for _, method := range []string{"GET", "PUT", "POST", "DELETE"} {
			add(method, at+"/lake/wh/tab/data/a?"+part)
		}
		add("PUT", at+"/lake?"+part)
		add("GET", at+"/lake?"+part)
	}
	for _, method := range []string{"OPTIONS", "PATCH", "TRACE", "CONNECT", "COPY", "get", "", "POST"} {
		add(method, at+"/lake/wh/tab/data/a")
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST"} {
		add(method, at+"/lake")
		add(method, at+"/lake/")
		add(method, at+"/")
		add(method, at)
	}
	add("GET", at+"/lake/wh/tab/data/a?uploads")
	add("HEAD", at+"/lake/wh/tab/data/a?uploadId=1")
	add("PUT", at+"/lake/wh/tab/data/a?partNumber=1")
	add("PUT", at+"/lake/wh/tab/data/a?uploadId=1")
	add("POST", at+"/lake/wh/tab/data/a?uploads=1")
	add("POST", at+"/lake/wh/tab/data/a?uploads&uploadId=1")
	add("DELETE", at+"/lake/wh/tab/data/a?uploadId=1&uploadId=2")
	add("GET", at+"/lake/wh/tab/data/a?partNumber=1&PartNumber=2")
	return requests
}

func otherHeaders() map[string]storage.SignRequest {
	requests := make(map[string]storage.SignRequest)
	for _, name := range []string{"x-amz-copy-source", "X-Amz-Copy-Source", "x-amz-copy-source-range",
		"x-amz-copy-source-if-match", "x-amz-metadata-directive", "x-amz-tagging-directive", "x-amz-acl", "x-amz-grant-read",
		"x-amz-grant-full-control", "x-amz-object-lock-mode", "x-amz-object-lock-legal-hold",
		"x-amz-bypass-governance-retention", "x-amz-tagging", "x-amz-website-redirect-location", "x-amz-security-token",
		"x-amz-mfa", "x-amz-expected-bucket-owner", "x-amz-request-payer", "x-amz-write-offset-bytes", "x-amz-rename-source",
		"x-amz-if-match-last-modified-time", "x-amz-if-match-size", "x-amz-source-expected-bucket-owner",
		"x-amz-optional-object-attributes", "x-amz-anything", "x-minio-force-delete", "x-minio-extract",
		"x-http-method-override", "x-forwarded-prefix", "x-forwarded-host", "authorization", "cookie", "date",
		"transfer-encoding", "x-amz", "x_amz_copy_source", "x-amz-copy-source "} {
		for _, method := range []string{"GET", "PUT"} {
			requests[method+" with "+name] = asking(method, at+"/lake/wh/tab/data/a", name, "/lake/wh/other/a")
		}
	}
	key := at + "/lake/wh/tab/data/a"
	twice := asking("PUT", key, "x-amz-meta-a", "1", "x-amz-meta-a", "2")
	requests["a header with two values"] = twice
	requests["a header in two spellings"] = asking("PUT", key, "X-Amz-Meta-A", "1", "x-amz-meta-a", "2")
	requests["a header without a value"] = asking("PUT", key)
	requests["a header without a value"].Headers["x-amz-meta-a"] = nil
	requests["a new line in a value"] = asking("PUT", key, "x-amz-meta-a", "1\nx-amz-copy-source: /a/b")
	requests["a return in a value"] = asking("PUT", key, "x-amz-meta-a", "1\rb")
	requests["a new line in a name"] = asking("PUT", key, "x-amz-meta-a\nx-amz-acl", "1")
	requests["another coding"] = asking("GET", key, "x-amz-te", "append-md5, chunked")
	requests["an old date"] = asking("PUT", key, "x-amz-date", "20200101T000000Z")
	requests["a date to come"] = asking("PUT", key, "x-amz-date", time.Now().Add(time.Hour).UTC().Format("20060102T150405Z"))
	requests["no date"] = asking("PUT", key, "x-amz-date", "now")
	requests["a signed stream"] = asking("PUT", key, "x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
	requests["a hash of another length"] = asking("PUT", key, "x-amz-content-sha256", "00")
	requests["a hash in upper case"] = asking("PUT", key, "x-amz-content-sha256", strings.Repeat("A", 64))
	return requests
}

// otherPlaces returns requests for objects outside the table, and spellings that a server may take
// for such objects.
func otherPlaces() map[string]storage.SignRequest {
	requests := make(map[string]storage.SignRequest)
	for _, uri := range []string{
		"https://127.0.0.1:9000/lake/wh/tab/a", "http://127.0.0.1/lake/wh/tab/a", "http://127.0.0.1:9001/lake/wh/tab/a",
		"http://127.0.0.1:90001/lake/wh/tab/a", "http://127.0.0.2:9000/lake/wh/tab/a", "http://localhost:9000/lake/wh/tab/a",
		"http://[::1]:9000/lake/wh/tab/a", "http://0x7f000001:9000/lake/wh/tab/a", "http://127.0.0.1:9000.evil/lake/wh/tab/a",
		"http://127.0.0.1:9000@evil/lake/wh/tab/a", "http://user@127.0.0.1:9000/lake/wh/tab/a",
		"http://user:secret@127.0.0.1:9000/lake/wh/tab/a", "http://127.0.0.1:9000/lake/wh/tab/a#x",
		"http://127.0.0.1:9000/lake/wh/tab/a#", "http://evil/127.0.0.1:9000/lake/wh/tab/a", "//127.0.0.1:9000/lake/wh/tab/a",
		"/lake/wh/tab/a", "", "lake", "http:", "http://", "s3://lake/wh/tab/a", "file:///lake/wh/tab/a",
		"http:127.0.0.1:9000/lake/wh/tab/a", "http://other.127.0.0.1:9000/wh/tab/a", "http://.127.0.0.1:9000/lake/wh/tab/a",
		"http://lake.127.0.0.1:9000/lake/wh/tab/a", "http://lake.127.0.0.1:9000/wh/tab/a", "http://127.0.0.1.:9000/lake/wh/tab/a",
		"http://127.0.0.1:09000/lake/wh/tab/a", "http://127.0.0.1:/lake/wh/tab/a", "http://127.1:9000/lake/wh/tab/a",
		"http://xlake.127.0.0.1:9000/wh/tab/a",
		"http://x.lake.127.0.0.1:9000/wh/tab/a", "http://169.254.169.254/latest/meta-data", "HTTP://127.0.0.1:9000\\lake",
	} {
		requests["at "+uri] = asking("GET", uri)
	}
	for _, path := range []string{
		"/lake/wh/table/a", "/lake/wh/ta/a", "/lake/wh/tab2", "/lake/wh/tab.a", "/lake/wh/TAB/a", "/lake/WH/tab/a",
		"/lake/wh/a", "/lake/wh", "/lake/wh/", "/lake/a", "/lake/tab/a", "/lakes/wh/tab/a", "/LAKE/wh/tab/a", "/lak/wh/tab/a",
		"/lake/old/table/a", "/lake/wh/old/tab/a", "/lake/wh/tab/../table/a", "/lake/wh/tab/%2e%2e/table/a",
		"/lake/wh/tab/%2E./table/a", "/lake/wh/tab/./a", "/lake/wh/tab/..", "/lake/wh/tab/.", "/lake/../lake/wh/tab/a",
		"/lake/wh/tab%2Fa", "/lake/wh%2Ftab/a", "/lake%2Fwh/tab/a", "/lake/wh/tab/..%2Ftable/a", "/lake/wh/tab/a%2F..%2F..",
		"/lake/wh/tab//a", "/lake/wh//tab/a", "/lake//wh/tab/a", "//lake/wh/tab/a", "/lake/wh/tab/a+b", "/lake/wh+/tab/a",
		"/lake/wh/tab/a%00", "/lake/wh/tab/a%0A", "/lake/wh/tab/a%7F", "/lake/wh/tab/%C2%80", "/lake/wh/tab/%FF",
		"/lake/wh/tab/%C0%AE%C0%AE/a", "/lake/wh/tab/%", "/lake/wh/tab/%2", "/lake/wh/tab/%zz", "/lake/wh/%74ab2/a",
		"/lake/wh/tab%00/a", "/lake/wh/tab;/a", "/lake/wh/tab%20/a", "/lake/%20wh/tab/a", "/lake/wh/tab\\..\\table/../a",
	} {
		for _, method := range []string{"GET", "PUT"} {
			requests[method+" "+path] = asking(method, at+path)
		}
	}
	for _, name := range []string{"1.metadata.json", "v1.metadata.json", ".metadata.json", "a/b.metadata.json"} {
		for _, method := range []string{"PUT", "DELETE"} {
			requests[method+" metadata "+name] = asking(method, at+"/lake/wh/tab/metadata/"+name)
			requests[method+" old metadata "+name] = asking(method, at+"/lake/old/tab/metadata/"+name)
		}
		requests["parts of metadata "+name] = asking("POST", at+"/lake/wh/tab/metadata/"+name+"?uploads")
		requests["part of metadata "+name] = asking("PUT", at+"/lake/wh/tab/metadata/"+name+"?partNumber=1&uploadId=1")
	}
	for _, path := range []string{"0.metadata.json", "meta/0-a.metadata.json", "a/b/c/0.gz.metadata.json"} {
		requests["metadata elsewhere "+path] = asking("PUT", at+"/lake/wh/tab/"+path)
		requests["old metadata elsewhere "+path] = asking("DELETE", at+"/lake/old/tab/"+path)
	}
	requests["escaped metadata"] = asking("PUT", at+"/lake/wh/tab/%6Detadata/1%2Emetadata.json")
	return requests
}

func otherLists() map[string]storage.SignRequest {
	requests := make(map[string]storage.SignRequest)
	for _, query := range []string{
		"list-type=2", "list-type=2&prefix=", "list-type=2&prefix=wh", "list-type=2&prefix=wh%2F", "list-type=2&prefix=wh%2Ftab",
		"list-type=2&prefix=wh%2Ftable%2F", "list-type=2&prefix=wh%2Ftab2", "list-type=2&prefix=%2Fwh%2Ftab%2F",
		"list-type=2&prefix=WH%2Ftab%2F", "list-type=2&prefix=old%2F", "list-type=1&prefix=wh%2Ftab%2F", "prefix=wh%2Ftab%2F",
		"list-type=2&list-type=2&prefix=wh%2Ftab%2F", "list-type=2&prefix=wh%2Ftab%2F&prefix=wh%2F",
		"list-type=2&Prefix=wh%2Ftab%2F", "list-type=2&prefix=wh%2Ftab%2F&versions", "list-type=2&prefix=wh%2Ftab%2F..%2Ftable",
		"list-type=2&prefix=wh%2Ftab%2F..", "list-type=2&prefix=wh%2Ftab%2F%00", "list-type=2&prefix=wh%2Ftab%2F%FF",
		"list-type=2&prefix=wh+/tab/", "list-type=2;prefix=wh%2Ftab%2F", "list-type=2&prefix=wh%2Ftab%2F&x=%",
		"list-type=2&prefix=wh%2Ftab%2F&acl", "list-type=&prefix=wh%2Ftab%2F", "uploads&prefix=wh%2Ftab%2F",
		"versions&prefix=wh%2Ftab%2F", "list-type=2&prefix=wh%2Ftab%2F&metadata=true",
	} {
		requests["list "+query] = asking("GET", at+"/lake?"+query)
	}
	requests["list another bucket"] = asking("GET", at+"/pond?list-type=2&prefix=wh%2Ftab%2F")
	requests["list below a key"] = asking("GET", at+"/lake/wh/tab?list-type=2&prefix=wh%2Ftab%2F")
	return requests
}

func otherDeletes() map[string]storage.SignRequest {
	const good = `<Object><Key>wh/tab/a</Key></Object>`
	requests := map[string]storage.SignRequest{
		"delete without a body":    asking("POST", at+"/lake?delete"),
		"delete=1":                 deleting(`<Delete>` + good + `</Delete>`),
		"delete and more":          deleting(`<Delete>` + good + `</Delete>`),
		"delete on a key":          deleting(`<Delete>` + good + `</Delete>`),
		"delete in another bucket": deleting(`<Delete>` + good + `</Delete>`),
		"delete with another hash": deleting(`<Delete>` + good + `</Delete>`),
		"delete with a trailer":    deleting(`<Delete>` + good + `</Delete>`),
	}
	set := func(name string, change func(*storage.SignRequest)) {
		request := requests[name]
		change(&request)
		requests[name] = request
	}
	set("delete=1", func(r *storage.SignRequest) { r.URI = at + "/lake?delete=1" })
	set("delete and more", func(r *storage.SignRequest) { r.URI = at + "/lake?delete&acl" })
	set("delete on a key", func(r *storage.SignRequest) { r.URI = at + "/lake/wh/tab/a?delete" })
	set("delete in another bucket", func(r *storage.SignRequest) { r.URI = at + "/pond?delete" })
	set("delete with another hash", func(r *storage.SignRequest) {
		r.Headers["x-amz-content-sha256"] = []string{strings.Repeat("0", 64)}
	})
	set("delete with a trailer", func(r *storage.SignRequest) {
		r.Headers["x-amz-content-sha256"] = []string{"STREAMING-UNSIGNED-PAYLOAD-TRAILER"}
	})
	for name, body := range map[string]string{
		"empty": "", "text": "delete", "no objects": `<Delete></Delete>`, "an open end": `<Delete>` + good,
		"another root": `<Remove>` + good + `</Remove>`, "two documents": `<Delete>` + good + `</Delete><Delete>` + good + `</Delete>`,
		"text behind": `<Delete>` + good + `</Delete>x`, "text between": `<Delete>x` + good + `</Delete>`,
		"a sibling":          `<Delete>` + good + `<Object><Key>wh/table/a</Key></Object></Delete>`,
		"a way out":          `<Delete><Object><Key>wh/tab/../table/a</Key></Object></Delete>`,
		"a way out, escaped": `<Delete><Object><Key>wh/tab/&#46;&#46;/table/a</Key></Object></Delete>`,
		"two slashes":        `<Delete><Object><Key>wh/tab//a</Key></Object></Delete>`,
		"a slash first":      `<Delete><Object><Key>/wh/tab/a</Key></Object></Delete>`,
		"metadata":           `<Delete><Object><Key>wh/tab/metadata/1.metadata.json</Key></Object></Delete>`,
		"a version":          `<Delete><Object><Key>wh/tab/a</Key><VersionId>1</VersionId></Object></Delete>`,
		"an ETag":            `<Delete><Object><Key>wh/tab/a</Key><ETag>1</ETag></Object></Delete>`,
		"two keys":           `<Delete><Object><Key>wh/tab/a</Key><Key>wh/table/a</Key></Object></Delete>`,
		"no key":             `<Delete><Object></Object></Delete>`, "an empty key": `<Delete><Object><Key></Key></Object></Delete>`,
		"a space":                  `<Delete><Object><Key> wh/tab/a</Key></Object></Delete>`,
		"a new line":               "<Delete><Object><Key>wh/tab/a\n</Key></Object></Delete>",
		"a section":                `<Delete><Object><Key><![CDATA[wh/tab/a]]></Key></Object></Delete>`,
		"a comment":                `<Delete><!-- x -->` + good + `</Delete>`,
		"a comment in a key":       `<Delete><Object><Key>wh/tab/<!-- x -->a</Key></Object></Delete>`,
		"a type":                   `<!DOCTYPE Delete [<!ENTITY a "wh/table/a">]><Delete><Object><Key>&a;</Key></Object></Delete>`,
		"an entity":                `<Delete><Object><Key>wh/tab/&a;</Key></Object></Delete>`,
		"an element in a key":      `<Delete><Object><Key>wh/tab/<b>a</b></Key></Object></Delete>`,
		"an attribute":             `<Delete><Object a="b"><Key>wh/tab/a</Key></Object></Delete>`,
		"an attribute of the root": `<Delete a="b">` + good + `</Delete>`,
		"an unknown element":       `<Delete><Force>true</Force>` + good + `</Delete>`,
		"no truth":                 `<Delete><Quiet>maybe</Quiet>` + good + `</Delete>`,
		"an instruction":           `<Delete><?php x?>` + good + `</Delete>`,
		"a nested object":          `<Delete><Object><Object><Key>wh/tab/a</Key></Object></Object></Delete>`,
		"too many":                 `<Delete>` + strings.Repeat(good, 1001) + `</Delete>`,
		"not UTF-8":                "<Delete><Object><Key>wh/tab/\xff</Key></Object></Delete>",
		"another encoding":         `<?xml version="1.0" encoding="UTF-16"?><Delete>` + good + `</Delete>`,
	} {
		requests["delete with "+name] = deleting(body)
	}
	return requests
}

func otherForms() map[string]storage.SignRequest {
	key := at + "/lake/wh/tab/data/a"
	requests := map[string]storage.SignRequest{}
	for _, region := range []string{"", "eu-west-1", "us-east-1 ", "US-EAST-1"} {
		request := asking("GET", key)
		request.Region = region
		requests[fmt.Sprintf("region %q", region)] = request
	}
	nowhere := asking("GET", key)
	nowhere.Locations = nil
	requests["no locations"] = nowhere
	outside := asking("GET", key)
	outside.Locations = []string{"s3://pond/wh/tab"}
	requests["a location outside"] = outside
	return requests
}

// TestUnsignable requests signatures that must be refused.
func TestUnsignable(t *testing.T) {
	t.Parallel()
	store := signer(t)
	requests := unsignable()
	if len(requests) < 300 {
		t.Errorf("only %d requests", len(requests))
	}
	for name, request := range requests {
		got, err := store.Sign(t.Context(), request)
		known := errors.Is(err, storage.ErrNotSigned) || errors.Is(err, storage.ErrMalformedRequest) ||
			errors.Is(err, storage.ErrOutside)
		if !known || len(got.Headers) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	t.Logf("%d requests were refused", len(requests))
}

// FuzzSign requests signatures for arbitrary requests. A signed request refers to an object of the
// table, however it is decoded.
func FuzzSign(f *testing.F) {
	for _, request := range signable() {
		f.Add(request.Method, request.URI, "x-amz-meta-a", "b", string(request.Body))
	}
	store := signer(f)
	f.Fuzz(func(t *testing.T, method, uri, header, value, body string) {
		request := asking(method, uri, header, value)
		if body != "" {
			request.Body = []byte(body)
		}
		if _, err := store.Sign(t.Context(), request); err != nil {
			return
		}
		lower := strings.ToLower(header)
		if strings.HasPrefix(lower, "x-amz-copy") || strings.HasPrefix(lower, "x-amz-acl") {
			t.Errorf("signed with the header %q", header)
		}
		if strings.Contains(uri, "..") && strings.Contains(uri, "/../") || !strings.Contains(uri, "lake") {
			t.Errorf("signed %s %q", method, uri)
		}
	})
}
