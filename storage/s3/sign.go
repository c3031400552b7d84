package s3

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"moorage/storage"
)

const (
	// signedDateAge is how far the time in a request may differ from now. The signature includes
	// that time.
	signedDateAge = 5 * time.Minute
	// amzDateLayout is the layout of X-Amz-Date.
	amzDateLayout = "20060102T150405Z"
	// service is the service for which requests are signed.
	service = "s3"
)

// Sign signs a request to the server with the key of the store. It signs only requests that
// checkRequest accepts and whose signature the server checks completely; see ProbeSigning. The
// answer has the headers that the engine must add.
func (s *Store) Sign(ctx context.Context, request storage.SignRequest) (storage.Signature, error) {
	checked, err := s.check(request)
	if err == nil {
		err = s.checkSigned(ctx, checked.call)
	}
	if err != nil {
		return storage.Signature{}, err
	}
	return s.signChecked(ctx, checked, request.Headers)
}

// sign is the form of Sign that the probe uses. It does not require that the server checks
// signatures, because the probe has yet to find that out.
func (s *Store) sign(ctx context.Context, request storage.SignRequest) (storage.Signature, error) {
	checked, err := s.check(request)
	if err != nil {
		return storage.Signature{}, err
	}
	return s.signChecked(ctx, checked, request.Headers)
}

// check returns the part of a request that may be signed.
func (s *Store) check(request storage.SignRequest) (checkedRequest, error) {
	locations, err := s.roots.Scope(request.Locations)
	if err != nil {
		return checkedRequest{}, err
	}
	return s.client.checkRequest(request, locations)
}

// signChecked signs a checked request, which the engine sends with the headers in sent.
func (s *Store) signChecked(ctx context.Context, checked checkedRequest, sent map[string][]string) (
	storage.Signature, error) {
	credentials, err := s.client.sdk.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return storage.Signature{}, fmt.Errorf("s3: sign: %w", err)
	}
	at := s.client.now().UTC()
	if checked.date != "" {
		if at, err = dateOf(checked.date, at); err != nil {
			return storage.Signature{}, err
		}
	}
	unsigned := &http.Request{Method: checked.method, URL: checked.url, Host: checked.url.Host, Header: checked.headers}
	signer := v4.NewSigner(func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = true // as S3 requires
		o.DisableHeaderHoisting = true
	})
	unsigned.Header.Set("X-Amz-Content-Sha256", checked.payload)
	unsigned.ContentLength = -1 // not signed
	if err := signer.SignHTTP(ctx, credentials, unsigned, checked.payload, service, s.client.region(), at); err != nil {
		return storage.Signature{}, fmt.Errorf("s3: sign: %w", err)
	}
	return storage.Signature{Headers: added(unsigned.Header, sent)}, nil
}

// added returns the headers of a signature that are not in sent. It leaves out the headers in sent,
// because a client may add the result to its own headers.
func added(signed http.Header, sent map[string][]string) map[string][]string {
	headers := make(map[string][]string)
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Content-Sha256", "X-Amz-Security-Token"} {
		if values := signed.Values(name); len(values) > 0 {
			headers[name] = values
		}
	}
	for name := range sent {
		delete(headers, http.CanonicalHeaderKey(name))
	}
	return headers
}

func (c *Client) region() string { return c.sdk.Options().Region }

// dateOf parses the time in a request, which must be close to now.
func dateOf(date string, now time.Time) (time.Time, error) {
	at, err := time.Parse(amzDateLayout, date)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: X-Amz-Date %q", storage.ErrMalformedRequest, date)
	}
	if age := now.Sub(at); age > signedDateAge || age < -signedDateAge {
		return time.Time{}, fmt.Errorf("%w: X-Amz-Date %s is not within %s of this server's clock, %s",
			storage.ErrNotSigned, date, signedDateAge, now.Format(amzDateLayout))
	}
	return at, nil
}

// checkedRequest is a request that may be signed.
type checkedRequest struct {
	call    string // name of its signable
	method  string
	url     *url.URL
	headers http.Header // the signed headers
	payload string      // X-Amz-Content-Sha256
	date    string      // X-Amz-Date as sent; if empty, the signer's clock
}
