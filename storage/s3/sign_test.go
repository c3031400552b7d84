package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

// signingClient sends requests that a store signs, like an engine without a key. It keeps the
// requests that it has sent.
type signingClient struct {
	store *s3.Store
	// scope is the access that the engine has.
	scope storage.Scope

	// mu guards the fields below; a leaf.
	mu   sync.Mutex
	sent []sentRequest
}

// sentRequest is a signed request, with its answer.
type sentRequest struct {
	request *http.Request
	body    []byte
	signed  http.Header // added by the signer
	status  int
}

// Do signs a request and sends it.
func (c *signingClient) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	asked := storage.SignRequest{
		Method: r.Method, URI: r.URL.String(), Region: fakecloud.S3Region, Headers: r.Header.Clone(),
		Locations: c.scope.Locations, Write: c.scope.Write,
	}
	if r.URL.Query().Has("delete") {
		asked.Body = body
	}
	signature, err := c.store.Sign(r.Context(), asked)
	if err != nil {
		return nil, err
	}
	for name, values := range signature.Headers {
		r.Header[name] = values
	}
	sent := sentRequest{request: r.Clone(context.WithoutCancel(r.Context())), body: body, signed: signature.Headers}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		sent.status = answer.StatusCode
		c.mu.Lock()
		c.sent = append(c.sent, sent)
		c.mu.Unlock()
	}
	return answer, err
}

// resend sends a request once more, modified by change.
func (s sentRequest) resend(t *testing.T, change func(r *http.Request)) int {
	t.Helper()
	r := s.request.Clone(t.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(s.body)), int64(len(s.body))
	change(r)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// engine returns a client of the SDK that has no key and sends its requests through c.
func (c *signingClient) engine(endpoint string) engine {
	return engine{sdk.New(sdk.Options{
		Region: fakecloud.S3Region, BaseEndpoint: aws.String(endpoint), UsePathStyle: true, HTTPClient: c,
		Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{},
	})}
}

// signedEngine converts the signer's refusals to the errors of the storage. It deletes files one by
// one, because bulk deletes are not signed for SeaweedFS.
type signedEngine struct{ engine }

func refusedBySigner(err error) error {
	if errors.Is(err, storage.ErrNotSigned) || errors.Is(err, storage.ErrNeedsWrite) {
		return fmt.Errorf("%w: %w", storagetest.ErrDenied, err)
	}
	return err
}

func (e signedEngine) Read(ctx context.Context, location string) error {
	return refusedBySigner(e.engine.Read(ctx, location))
}

func (e signedEngine) Write(ctx context.Context, location string) error {
	return refusedBySigner(e.engine.Write(ctx, location))
}

func (e signedEngine) List(ctx context.Context, prefix string) error {
	return refusedBySigner(e.engine.List(ctx, prefix))
}

func (e signedEngine) Delete(ctx context.Context, location string) error {
	bucket, key := parts(location)
	_, err := e.client.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: bucket, Key: key})
	return refusedBySigner(denied(err))
}

// signatures turns a Signer into a Vender. Its credential stands for the scope for which requests
// are signed.
type signatures struct {
	*s3.Store
	scopes *sync.Map // a storage.Scope for each number
	next   *atomic.Int64
}

func (s signatures) Vend(ctx context.Context, scope storage.Scope) (storage.Credential, error) {
	if len(scope.Locations) == 0 {
		return storage.Credential{}, storage.ErrUnscopable
	}
	_, err := s.Sign(ctx, storage.SignRequest{Region: fakecloud.S3Region, Locations: scope.Locations})
	if errors.Is(err, storage.ErrOutside) {
		return storage.Credential{}, err
	}
	number := fmt.Sprint(s.next.Add(1))
	s.scopes.Store(number, scope)
	lives := scope.Duration
	if lives == 0 {
		lives = time.Hour
	}
	return storage.Credential{Config: map[string]string{"scope": number}, Expires: time.Now().Add(lives)}, nil
}

func (s signatures) ProbeVending(context.Context) error { return nil }

// TestSigningLookAlikes runs the suite for credentials with signatures, on a server that cannot
// issue usable credentials.
func TestSigningLookAlikes(t *testing.T) {
	t.Parallel()
	storagetest.RunVending(t, func(t *testing.T) storagetest.Vending {
		server := fakecloud.StartS3(t)
		root := "s3://" + server.NewBucket(t) + "/wh"
		store := signatures{Store: open(t, options(server.Endpoint), root), scopes: new(sync.Map),
			next: new(atomic.Int64)}
		// Names with two slashes are not signed. SeaweedFS turns a backslash into a slash when it
		// deletes.
		impossible := func(name string) bool { return strings.Contains(name, "//") || strings.Contains(name, `\`) }
		return storagetest.Vending{
			Store: store, Root: root,
			Engine: func(_ *testing.T, made storage.Credential) storagetest.Engine {
				scope, _ := store.scopes.Load(made.Config["scope"])
				client := &signingClient{store: store.Store, scope: scope.(storage.Scope)}
				return signedEngine{client.engine(server.Endpoint)}
			},
			Impossible: impossible, ProtectsMetadata: true,
		}
	})
}

// signedCalls makes every kind of signed request, on one table.
func signedCalls(t *testing.T, client *sdk.Client, bucket, table string) {
	t.Helper()
	key := func(name string) *string { return aws.String(table + "/data/" + name) }
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	ctx := t.Context()
	must(client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &bucket, Key: key("a b+c%é"), Body: strings.NewReader("body"),
		ContentType: aws.String("text/plain"), Metadata: map[string]string{"a": "b"}}))
	must(client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &bucket, Key: key("b"), Body: strings.NewReader("body"),
		IfNoneMatch: aws.String("*")}))
	got, err := client.GetObject(ctx, &sdk.GetObjectInput{Bucket: &bucket, Key: key("a b+c%é"), Range: aws.String("bytes=1-2")})
	must(got, err)
	if err == nil {
		body, err := io.ReadAll(got.Body)
		if string(body) != "od" || err != nil {
			t.Errorf("read %q, %v", body, err)
		}
	}
	must(client.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: &bucket, Key: key("b")}))
	must(client.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: &bucket, Prefix: aws.String(table + "/"),
		Delimiter: aws.String("/"), MaxKeys: aws.Int32(2), StartAfter: aws.String(table + "/a")}))
	upload, err := client.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{Bucket: &bucket, Key: key("m")})
	if err != nil {
		t.Fatal(err)
	}
	part, err := client.UploadPart(ctx, &sdk.UploadPartInput{Bucket: &bucket, Key: key("m"), UploadId: upload.UploadId,
		PartNumber: aws.Int32(1), Body: strings.NewReader("part")})
	if err != nil {
		t.Fatal(err)
	}
	must(client.ListParts(ctx, &sdk.ListPartsInput{Bucket: &bucket, Key: key("m"), UploadId: upload.UploadId}))
	must(client.CompleteMultipartUpload(ctx, &sdk.CompleteMultipartUploadInput{Bucket: &bucket, Key: key("m"),
		UploadId:        upload.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}}}}))
	upload, err = client.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{Bucket: &bucket, Key: key("n")})
	if err != nil {
		t.Fatal(err)
	}
	must(client.AbortMultipartUpload(ctx, &sdk.AbortMultipartUploadInput{Bucket: &bucket, Key: key("n"), UploadId: upload.UploadId}))
	must(client.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: &bucket, Key: key("b")}))
	deleted, err := client.DeleteObjects(ctx, &sdk.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{{Key: key("a b+c%é")}, {Key: key("m")}}, Quiet: aws.Bool(true)}})
	must(deleted, err)
	if err == nil && len(deleted.Errors) > 0 {
		t.Errorf("not deleted: %v", deleted.Errors)
	}
}

// TestSignedCalls makes every kind of signed request. It then sends each again with one byte of the
// signed parts changed. The server must refuse that.
func TestSignedCalls(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(tb testing.TB) *fakecloud.S3Server{
		"seaweedfs": fakecloud.StartS3, "minio": fakecloud.StartMinIO,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			bucket := server.NewBucket(t)
			store := open(t, options(server.Endpoint), "s3://"+bucket+"/wh")
			store.AssumeSound() // otherwise some requests would not be signed
			client := &signingClient{store: store, scope: storage.Scope{
				Locations: []string{"s3://" + bucket + "/wh/t"}, Write: true,
			}}
			signedCalls(t, client.engine(server.Endpoint).client, bucket, "wh/t")
			if len(client.sent) < 13 {
				t.Fatalf("only %d requests were signed", len(client.sent))
			}
			refused := 0
			for _, sent := range client.sent {
				if sent.status >= 300 {
					t.Errorf("%s %s was answered with %d", sent.request.Method, sent.request.URL, sent.status)
				}
				for what, change := range changes(sent) {
					status := sent.resend(t, change)
					if status < 400 {
						t.Errorf("%s %s with a changed %s was answered with %d", sent.request.Method, sent.request.URL, what, status)
					}
					refused++
				}
			}
			if keys := server.Keys(t, bucket); len(keys) > 0 {
				t.Errorf("objects are left: %q", keys)
			}
			t.Logf("%d requests, %d changed ones refused", len(client.sent), refused)
		})
	}
}

// changes returns changes of one byte each to the signed parts of a request.
func changes(sent sentRequest) map[string]func(r *http.Request) {
	found := map[string]func(r *http.Request){
		"path": func(r *http.Request) {
			r.URL.Opaque = ""
			r.URL.Path, r.URL.RawPath = r.URL.Path+"x", ""
		},
		"query": func(r *http.Request) {
			query := r.URL.Query()
			query.Set("x-id", "x")
			r.URL.RawQuery = query.Encode()
		},
		"signature": func(r *http.Request) {
			value := []byte(r.Header.Get("Authorization"))
			last := &value[len(value)-1]
			*last = map[bool]byte{true: '0', false: '1'}[*last == '1']
			r.Header.Set("Authorization", string(value))
		},
		"method": func(r *http.Request) {
			r.Method = map[bool]string{true: http.MethodPut, false: http.MethodDelete}[r.Method == http.MethodDelete]
		},
	}
	_, list, _ := strings.Cut(sent.request.Header.Get("Authorization"), "SignedHeaders=")
	list, _, _ = strings.Cut(list, ",")
	for header := range strings.SplitSeq(list, ";") {
		if header == "host" || header == "x-amz-date" {
			continue // a change would mean another server or another time
		}
		found[header] = func(r *http.Request) { r.Header.Set(header, r.Header.Get(header)+"0") }
	}
	return found
}

// strict returns the address of a proxy that refuses unsigned X-Amz-* headers, as Amazon does.
func strict(t *testing.T, server *fakecloud.S3Server) string {
	t.Helper()
	p := fakecloud.NewProxy(t, server.Endpoint)
	p.Follow(func(_ int, r *http.Request) fault {
		_, list, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
		list, _, _ = strings.Cut(list, ",")
		signed := strings.Split(list, ";")
		for name := range r.Header {
			if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") && !slices.Contains(signed, name) {
				return refuse(http.StatusForbidden, "AccessDenied")
			}
		}
		return nil
	})
	return p.URL
}

// TestSeaweedFSIsSigned makes every kind of request on a server that does not check the body of a
// bulk delete. Bulk deletes are not signed, and everything else is.
func TestSeaweedFSIsSigned(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	bucket := server.NewBucket(t)
	store := open(t, options(server.Endpoint), "s3://"+bucket+"/wh")
	if err := store.ProbeSigning(t.Context()); err != nil {
		t.Fatal(err)
	}
	requests := tableRequests(server.Endpoint)
	for call, request := range requests {
		request.URI = strings.ReplaceAll(request.URI, "/lake", "/"+bucket)
		request.Locations = []string{"s3://" + bucket + "/wh/t"}
		_, err := store.Sign(t.Context(), request)
		if errors.Is(err, storage.ErrNotSigned) != (call == "DeleteObjects") || err != nil && call != "DeleteObjects" {
			t.Errorf("%s: %v", call, err)
		}
	}
	if shown := fmt.Sprint(store.Features()); !strings.Contains(shown, "DeleteObjects") || strings.Contains(shown, "Put") {
		t.Errorf("validate would show %s", shown)
	}
	client := &signingClient{store: store, scope: storage.Scope{Locations: []string{"s3://" + bucket + "/wh/t"}, Write: true}}
	engine, location := signedEngine{client.engine(server.Endpoint)}, "s3://"+bucket+"/wh/t/data/a"
	for _, do := range []func(context.Context, string) error{engine.Write, engine.Read, engine.Delete} {
		if err := do(t.Context(), location); err != nil {
			t.Error(err)
		}
	}
}

func TestProbeSigning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		endpoint func(t *testing.T) (string, *fakecloud.S3Server)
		finds    string // empty if the server is usable
	}{
		{"minio", func(t *testing.T) (string, *fakecloud.S3Server) {
			server := fakecloud.StartMinIO(t)
			return server.Endpoint, server
		}, "X-Amz-"},
		{"seaweedfs", func(t *testing.T) (string, *fakecloud.S3Server) {
			server := fakecloud.StartS3(t)
			return server.Endpoint, server
		}, ""},
		{"as strict as Amazon's", func(t *testing.T) (string, *fakecloud.S3Server) {
			server := fakecloud.StartS3(t)
			return strict(t, server), server
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			endpoint, server := tt.endpoint(t)
			bucket := server.NewBucket(t)
			err := open(t, options(endpoint), "s3://"+bucket+"/wh").ProbeSigning(t.Context())
			switch {
			case tt.finds == "" && err != nil:
				t.Errorf("ProbeSigning = %v", err)
			case tt.finds != "" && (!errors.Is(err, storage.ErrUnenforced) || !strings.Contains(err.Error(), tt.finds)):
				t.Errorf("ProbeSigning = %v; want ErrUnenforced with %q", err, tt.finds)
			}
			if keys := server.Keys(t, bucket); len(keys) > 0 {
				t.Errorf("the probe left %q", keys)
			}
		})
	}
}

func BenchmarkSign(b *testing.B) {
	client, err := s3.Connect(b.Context(), options("http://127.0.0.1:1"))
	if err != nil {
		b.Fatal(err)
	}
	store, err := client.Within([]string{"s3://lake/wh"})
	if err != nil {
		b.Fatal(err)
	}
	store.AssumeSound()
	request := storage.SignRequest{
		Method: http.MethodGet, URI: "http://127.0.0.1:1/lake/wh/t/data/a.parquet", Region: fakecloud.S3Region,
		Headers: map[string][]string{"Range": {"bytes=0-8"}, "User-Agent": {"x"}}, Locations: []string{"s3://lake/wh/t"},
	}
	for b.Loop() {
		if _, err := store.Sign(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}
