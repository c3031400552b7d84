package keyservice

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"moorage/internal/loopback"
	"moorage/internal/worker"
	"moorage/secrets"
)

const (
	// callTimeout is the timeout of a call with all its attempts. Code that opens a storage waits
	// for 10 s, and must get the error of the call within that time.
	callTimeout = 8 * time.Second
	// attemptTimeout leaves time for another attempt if one hangs.
	attemptTimeout = 3 * time.Second
	// attemptsMax is the maximum number of times that one request is sent. Services limit the
	// number of requests per second, so a few pauses of some hundred milliseconds are enough.
	attemptsMax = 4
	// pauseMax is the maximum length of the first pause. Later pauses double.
	pauseMax = 100 * time.Millisecond
	// answerBytesMax is the maximum size of an answer. The longest secret fits, in base64.
	answerBytesMax = 256 << 10
	// wordsMax is the maximum number of characters of a service's message in an error.
	wordsMax = 300
)

// ErrAnswer means that the response is not an answer to the request. It wraps secrets.ErrAway,
// because the response may come from a proxy.
var ErrAnswer = fmt.Errorf("%w: the service returned another response than the requested one", secrets.ErrAway)

// Client calls a service. It is safe for concurrent use.
type Client struct {
	http   *http.Client
	random io.Reader // for pauses
	// Timeouts of a call and of an attempt.
	callTimeout, attemptTimeout time.Duration
}

// NewClient returns a client that trusts server certificates signed by roots. If roots is nil, it
// trusts the system's authorities. It sends nothing.
func NewClient(roots *x509.CertPool) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	client := &http.Client{
		Transport: transport,
		// A redirect would carry a token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Client{http: client, random: rand.Reader, callTimeout: callTimeout, attemptTimeout: attemptTimeout}
}

// Answer is the response of a service.
type Answer struct {
	Status  int
	Content []byte // at most 256 KiB
}

// HTTP returns an HTTP client for other requests, such as for a token. Each request has the timeout
// of an attempt.
func (c *Client) HTTP() *http.Client {
	bounded := *c.http
	bounded.Timeout = c.attemptTimeout
	return &bounded
}

// Call sends the request that build returns. If there is no answer, or if passes reports that the
// failure is transient, Call retries with a new request from build. It returns the last answer,
// whatever its status. The context passed to build ends with the attempt.
//
// It returns secrets.ErrAway if there is no answer within 8 s, or if build fails.
func (c *Client) Call(ctx context.Context, build func(context.Context) (*http.Request, error),
	passes func(Answer) bool) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		answer, again, err := c.try(ctx, build)
		if err == nil {
			again = passes(answer)
		}
		if again && attempt < attemptsMax && c.pause(ctx, attempt) == nil {
			continue
		}
		if err != nil {
			return Answer{}, fmt.Errorf("%w: %w", secrets.ErrAway, err)
		}
		return answer, nil
	}
}

// try sends a request once. If it returns an error, again reports whether the error is transient.
func (c *Client) try(ctx context.Context, build func(context.Context) (*http.Request, error)) (
	answer Answer, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.attemptTimeout)
	defer cancel()
	request, err := build(ctx)
	if err != nil {
		return Answer{}, false, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, true, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1))
	if err != nil {
		return Answer{}, true, err
	}
	if len(content) > answerBytesMax {
		return Answer{}, false, fmt.Errorf("the service answered more than %d bytes", answerBytesMax)
	}
	return Answer{response.StatusCode, content}, false, nil
}

// pause waits before the next attempt, or until ctx ends.
func (c *Client) pause(ctx context.Context, attempt int) error {
	var drawn [4]byte
	if _, err := io.ReadFull(c.random, drawn[:]); err != nil {
		return err
	}
	part := float64(binary.BigEndian.Uint32(drawn[:])) / (1 << 32)
	if !worker.Sleep(ctx, time.Duration(part*float64(pauseMax<<(attempt-1)))) {
		return context.Cause(ctx)
	}
	return nil
}

// Decode reads the answer, a JSON object, into document. It returns ErrAnswer on failure. The error
// contains no part of the answer, which may have a secret.
func (a Answer) Decode(document any) error {
	if json.Unmarshal(a.Content, document) != nil {
		return ErrAnswer
	}
	return nil
}

// MayPass reports whether the status of an answer means a transient failure.
func (a Answer) MayPass() bool {
	switch a.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Words returns the beginning of a service's message, without line breaks and other control
// characters, for use in an error.
func Words(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, ""))
	if characters := []rune(text); len(characters) > wordsMax {
		return string(characters[:wordsMax]) + "…"
	}
	return text
}

// CheckEndpoint returns an error if the URL of a service is not valid. Plain HTTP is allowed only
// for services on this machine.
func CheckEndpoint(endpoint string) error {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil ||
		parsed.RawQuery != "" || parsed.Fragment != "" || strings.Trim(parsed.Path, "/") != "" {
		return fmt.Errorf("%q is not the address of a service, such as https://kms.example.com", endpoint)
	}
	if parsed.Scheme == "http" && !loopback.Is(parsed.Hostname()) {
		return fmt.Errorf("%q: http is for an address of this machine, such as 127.0.0.1", endpoint)
	}
	return nil
}
