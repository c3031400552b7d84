package s3_test

import (
	"net/http"
	"testing"
	"time"

	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
)

type (
	fault = fakecloud.Fault
	plan  = fakecloud.Plan
)

// newProxy returns a proxy in front of the test server, a store that uses the proxy, and an empty
// root of the store.
func newProxy(t *testing.T, change ...func(*s3.Options)) (*fakecloud.Proxy, *s3.Store, string) {
	t.Helper()
	server := fakecloud.StartS3(t)
	root := "s3://" + server.NewBucket(t) + "/w"
	proxy := fakecloud.NewProxy(t, server.Endpoint)
	opts := options(proxy.URL)
	opts.RetryDelayMax = time.Millisecond
	for _, each := range change {
		each(&opts)
	}
	return proxy, open(t, opts, root), root
}

// refuse answers with one of S3's errors, without passing the request on.
func refuse(status int, code string) fault {
	return fakecloud.Answer(status, "application/xml", "<Error><Code>"+code+"</Code><Message>as planned</Message></Error>")
}

// answerOK answers with status 200 and body, without passing the request on.
func answerOK(body string) fault { return fakecloud.Answer(http.StatusOK, "application/xml", body) }
