package s3_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
)

// tableRequests returns requests for a table in a bucket of a double, by name.
func tableRequests(endpoint string) map[string]storage.SignRequest {
	table := endpoint + "/lake/wh/t/a"
	requests := map[string]storage.SignRequest{
		"GetObject":               {Method: "GET", URI: table},
		"HeadObject":              {Method: "HEAD", URI: table},
		"ListObjectsV2":           {Method: "GET", URI: endpoint + "/lake?list-type=2&prefix=wh/t/"},
		"PutObject":               {Method: "PUT", URI: table},
		"CreateMultipartUpload":   {Method: "POST", URI: table + "?uploads"},
		"UploadPart":              {Method: "PUT", URI: table + "?partNumber=1&uploadId=u"},
		"ListParts":               {Method: "GET", URI: table + "?uploadId=u"},
		"CompleteMultipartUpload": {Method: "POST", URI: table + "?uploadId=u"},
		"AbortMultipartUpload":    {Method: "DELETE", URI: table + "?uploadId=u"},
		"DeleteObject":            {Method: "DELETE", URI: table},
		"DeleteObjects": {Method: "POST", URI: endpoint + "/lake?delete",
			Body: []byte("<Delete><Object><Key>wh/t/a</Key></Object></Delete>")},
	}
	for name, request := range requests {
		request.Region, request.Locations, request.Write = fakecloud.S3Region, []string{"s3://lake/wh/t"}, true
		requests[name] = request
	}
	return requests
}

// TestProbeSigningFindsWhatIsOverlooked uses servers that do not check one signed part of a
// request. If all requests have that part, the server is not usable. If only some requests have it,
// exactly those are no longer signed.
func TestProbeSigningFindsWhatIsOverlooked(t *testing.T) {
	t.Parallel()
	const copySource = "x-amz-copy-source"
	puts := func(part bool) func(r *http.Request) bool {
		return func(r *http.Request) bool { return r.Method == "PUT" && r.URL.Query().Has("uploadId") == part }
	}
	for _, tt := range []struct {
		overlooks string
		only      func(r *http.Request) bool
		names     string // text in the features that validate shows
		withheld  string // names of calls; "all", or empty for none
	}{
		{overlooks: ""},
		{overlooks: "method", names: "another method", withheld: "all"},
		{overlooks: "host", names: "another host", withheld: "all"},
		{overlooks: "path", names: "another path", withheld: "all"},
		{overlooks: "query", names: "another query", withheld: "all"},
		{overlooks: "signature", names: "without a signature", withheld: "all"},
		{overlooks: "path", only: func(r *http.Request) bool { return r.Method == "DELETE" }, names: "another path", withheld: "all"},
		{overlooks: "query", only: func(r *http.Request) bool { return r.URL.Query().Has("list-type") },
			names: "another query", withheld: "all"},
		{overlooks: copySource, names: "X-Amz-Copy-Source", withheld: "PutObject UploadPart"},
		{overlooks: copySource, only: puts(true), names: "X-Amz-Copy-Source", withheld: "UploadPart"},
		{overlooks: "x-amz-acl", names: "X-Amz-Acl", withheld: "PutObject CreateMultipartUpload"},
		{overlooks: "x-amz-tagging", names: "X-Amz-Tagging", withheld: "PutObject"},
		{overlooks: "x-amz-object-lock", names: "X-Amz-Object-Lock", withheld: "PutObject"},
		{overlooks: "x-amz-meta", names: "X-Amz-Meta", withheld: "PutObject"},
		{overlooks: "x-amz-meta-probe", names: "X-Amz-Meta", withheld: "PutObject"},
		{overlooks: "body", names: "another body", withheld: "DeleteObjects"},
	} {
		t.Run(strings.Trim(tt.overlooks+" "+tt.withheld, " "), func(t *testing.T) {
			t.Parallel()
			server := newDouble(t, tt.overlooks)
			server.only = tt.only
			store := open(t, options(server.URL), "s3://lake/wh")
			err := store.ProbeSigning(t.Context())
			if count := len(server.takeRequests()); count > 40 {
				t.Errorf("the probe sent %d requests", count)
			}
			essential := tt.withheld == "all" || strings.Contains(tt.withheld, "PutObject")
			if errors.Is(err, storage.ErrUnenforced) != essential || !essential && err != nil {
				t.Errorf("ProbeSigning = %v", err)
			}
			if essential && !strings.Contains(fmt.Sprint(err), tt.names) {
				t.Errorf("the error does not name %q: %v", tt.names, err)
			}
			if shown := fmt.Sprint(store.Features()); tt.names != "" && !strings.Contains(shown, tt.names) {
				t.Errorf("validate would show %s, without %q", shown, tt.names)
			}
			for call, request := range tableRequests(server.URL) {
				_, err := store.Sign(t.Context(), request)
				want := tt.withheld == "all" || strings.Contains(" "+tt.withheld+" ", " "+call+" ")
				if errors.Is(err, storage.ErrNotSigned) != want || !want && err != nil {
					t.Errorf("%s: %v", call, err)
				}
			}
			if asked := server.takeRequests(); len(asked) > 0 {
				t.Errorf("another probe within a day: %q", asked)
			}
			for _, key := range server.keys() {
				t.Errorf("the probe left %s", key)
			}
		})
	}
}

// TestSignFindsOut signs for a server that was not probed before.
func TestSignFindsOut(t *testing.T) {
	t.Parallel()
	server := newDouble(t, "body")
	store := open(t, options(server.URL), "s3://lake/wh")
	requests := tableRequests(server.URL)
	if _, err := store.Sign(t.Context(), requests["DeleteObjects"]); !errors.Is(err, storage.ErrNotSigned) {
		t.Errorf("a bulk delete on a server that checks no bodies: %v", err)
	}
	if _, err := store.Sign(t.Context(), requests["DeleteObject"]); err != nil {
		t.Error(err)
	}
}

// TestSignNeedsTheProbe requests signatures for a server that does not answer.
func TestSignNeedsTheProbe(t *testing.T) {
	t.Parallel()
	const nowhere = "http://127.0.0.1:1"
	with := options(nowhere)
	with.RetryDelayMax = time.Millisecond
	store := open(t, with, "s3://lake/wh")
	if _, err := store.Sign(t.Context(), tableRequests(nowhere)["GetObject"]); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Sign = %v", err)
	}
}

// TestOneHostStyle signs for warehouses whose bucket is in the path, and in the host's name.
func TestOneHostStyle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		style s3.Addressing
		uri   string
		want  bool
	}{
		{s3.AddressPath, "http://127.0.0.1:9000/lake/wh/t/a", true},
		{s3.AddressPath, "http://lake.127.0.0.1:9000/wh/t/a", false},
		{s3.AddressHost, "http://lake.127.0.0.1:9000/wh/t/a", true},
		{s3.AddressHost, "http://127.0.0.1:9000/lake/wh/t/a", false},
		{s3.AddressHost, "http://LAKE.127.0.0.1:9000/wh/t/a", false},
		{s3.AddressHost, "http://lake.127.0.0.1.:9000/wh/t/a", false},
		{s3.AddressHost, "http://lake.127.0.0.1:9000/lake/wh/t/a", false},
		{s3.AddressHost, "http://lake.127.0.0.1:9000//wh/t/a", false},
		{s3.AddressHost, "http://lake.127.0.0.1/wh/t/a", false},
	} {
		options := options(at)
		options.Addressing = tt.style
		store := open(t, options, "s3://lake/wh")
		store.AssumeSound()
		_, err := store.Sign(t.Context(), storage.SignRequest{
			Method: "GET", URI: tt.uri, Region: fakecloud.S3Region, Locations: []string{"s3://lake/wh/t"},
		})
		if (err == nil) != tt.want {
			t.Errorf("style %d, %s: %v", tt.style, tt.uri, err)
		}
	}
}
