package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"moorage/storage"
)

// answerBytesMax bounds what is read of the answer to a request of a probe.
const answerBytesMax = 64 << 10

// ProbeSigning signs requests for a folder below each root, changes them, and sends them. It writes
// a few small objects and deletes them.
//
// A server must refuse a header X-Amz-* that is not signed, as Amazon's does. Else an engine that
// may write one object of a table adds X-Amz-Copy-Source and has the server's key copy anything.
func (s *Store) ProbeSigning(ctx context.Context) error {
	keys, names := s.rootKeys()
	for _, name := range names {
		probe, err := s.newVendProbe(name, keys[name])
		if err == nil {
			err = (&signProbe{probe}).run(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// signProbe is what a probe of signing tries in one bucket.
type signProbe struct{ *vendProbe }

// tampering is a change to a signed request.
type tampering struct {
	what   string
	change func(r *http.Request)
}

func (p *signProbe) run(ctx context.Context) (err error) {
	beside, file := p.beside[0].key+probeData, p.inside+probeData
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeEndTimeout)
		defer cancel()
		left := []types.ObjectIdentifier{
			{Key: aws.String(beside)}, {Key: aws.String(file)}, {Key: aws.String(file + "2")},
		}
		if failures := p.store.client.deleteObjects(ctx, p.bucket, left); len(failures) > 0 {
			err = errors.Join(err, fmt.Errorf("delete what the probe wrote: %w", errors.Join(failures...)))
		}
	}()
	if err := p.writes(p.store.client.sdk, beside)(ctx); err != nil {
		return fmt.Errorf("write %s with the server's own key: %w", beside, err)
	}
	if status, err := p.send(ctx, file, nil); err != nil || status != http.StatusOK {
		return fmt.Errorf("s3: a signed write of %s was answered with %d: %w", file, status, err)
	}
	add := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, each := range []tampering{
		{"a copy from elsewhere (X-Amz-Copy-Source)", add("X-Amz-Copy-Source", "/"+p.bucket+"/"+escapePath(beside))},
		{"an access list (X-Amz-Acl)", add("X-Amz-Acl", "public-read")},
		{"another object", func(r *http.Request) { r.URL.Path, r.URL.RawPath = r.URL.Path+"2", r.URL.RawPath+"2" }},
		{"no signature", func(r *http.Request) { r.Header.Del("Authorization") }},
	} {
		status, err := p.send(ctx, file, each.change)
		if err != nil {
			return fmt.Errorf("s3: find out whether a signed request can be changed: %w", err)
		}
		if status < http.StatusMultipleChoices {
			return fmt.Errorf("%w: in the bucket %s a write was let through to which was added after it was signed: %s",
				storage.ErrUnenforced, p.bucket, each.what)
		}
	}
	return nil
}

// send sends a signed write of an object, changed by change, and returns the status of the answer.
func (p *signProbe) send(ctx context.Context, key string, change func(r *http.Request)) (int, error) {
	client := p.store.client
	target, err := client.addressOf(p.bucket, key)
	if err != nil {
		return 0, err
	}
	location := storage.Location{Scheme: storage.SchemeS3, Authority: p.bucket, Path: "/" + p.inside}
	signature, err := p.store.Sign(ctx, storage.SignRequest{
		Method: http.MethodPut, URI: target.String(), Region: client.region(),
		Locations: []string{location.String()}, Write: true,
	})
	if err != nil {
		return 0, err
	}
	body := []byte("probe")
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, target.String(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.URL.RawPath = escapePath(target.Path)
	for name, values := range signature.Headers {
		request.Header[name] = values
	}
	if change != nil {
		change(request)
	}
	answer, err := client.sdk.Options().HTTPClient.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, answerBytesMax))
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}

// addressOf returns the address of an object.
func (c *Client) addressOf(bucket, key string) (*url.URL, error) {
	endpoints := c.endpoints()
	if len(endpoints) == 0 {
		return nil, errors.New("s3: requests to a server behind a path are not signed")
	}
	target := endpoints[0]
	target.Path = "/" + key
	if c.sdk.Options().UsePathStyle || strings.Contains(bucket, ".") {
		target.Path = "/" + bucket + target.Path
	} else {
		target.Host = bucket + "." + target.Host
	}
	return &target, nil
}
