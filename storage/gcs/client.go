package gcs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"moorage/internal/worker"
	"moorage/storage/cloud"
)

const (
	// attemptsMax is the maximum number of times that one request is sent. The first pause is at
	// most a second, and pauses double. On average, the last attempt begins after 7 s, well within
	// the timeout of a commit.
	attemptsMax = 5
	// pauseMin is the maximum length of the first pause.
	pauseMin = time.Second
	// dialTimeout is the timeout of connecting to a host. Another try is better than a long wait.
	dialTimeout = 5 * time.Second
	// idleConnectionsMax is the maximum number of idle connections: as many as a busy node has
	// concurrent requests. HTTP/1.1 needs a connection for each request.
	idleConnectionsMax = 256
	// answerBytesMax is the maximum size of a JSON document in the server's answer. A page of a
	// listing has at most a thousand names of a kilobyte each.
	answerBytesMax = 16 << 20
	// errorBytesMax is the maximum number of bytes that are read from an error answer.
	errorBytesMax = 16 << 10
)

// Options describes how to reach the storage. The zero value means Google's storage, with the
// settings of the environment.
type Options struct {
	// Endpoint is the URL of the storage. Default: Google's.
	Endpoint string
	// STS is the URL of the service that narrows tokens. Default: Google's.
	STS string
	// IAM is the URL of the service that issues tokens of an impersonated account. TokenURL is the
	// URL of the service that issues tokens for the key of an account. Default: Google's.
	IAM, TokenURL string

	// Project is the project that engines send with requests. If it is empty, engines determine the
	// project themselves, or need none.
	Project string
	// Key is the key of a service account, as the JSON text that Google issues. Default: the
	// environment's credentials (GOOGLE_APPLICATION_CREDENTIALS, gcloud's files, the machine's
	// account).
	Key string
	// Impersonate is the e-mail address of the service account whose tokens are used. Default: the
	// account of the key or the environment.
	Impersonate string
	// NoAuth sends no tokens, for servers that require none.
	NoAuth bool
	// Trusted lists further servers that may get tokens: their URLs, separated by spaces.
	Trusted string

	// StallTimeout is the longest time without any transfer before the client abandons a try.
	// Default 10 s.
	StallTimeout time.Duration
	// RetryDelayMax is the maximum pause between two tries. Default 5 s.
	RetryDelayMax time.Duration

	Random io.Reader // ids of writes, jitter; default crypto/rand.Reader
}

// Client is a connection to one server, for any number of Stores. It is safe for concurrent use.
type Client struct {
	http          cloud.Client
	endpoint      string
	tokens        *tokens // for requests to the storage; nil if no tokens are used
	vender        *vender // nil if no tokens are used
	random        io.Reader
	retryDelayMax time.Duration
	quota         quota
	clientConfig  map[string]string
}

// Connect returns a client for the server in options. It sends nothing. An error means that the key
// is invalid.
func Connect(options Options) (*Client, error) {
	setDefaults(&options)
	client := &Client{
		http: newHTTP(options.StallTimeout), endpoint: strings.TrimSuffix(options.Endpoint, "/"),
		random: options.Random, retryDelayMax: options.RetryDelayMax, clientConfig: clientConfig(options),
	}
	if options.NoAuth {
		return client, nil
	}
	source, err := newSource(options, client.http)
	if err != nil {
		return nil, err
	}
	client.tokens = &tokens{make: source.makerFor(scopeStorage), now: time.Now}
	client.vender = newVender(options, client.http, source)
	return client, nil
}

func setDefaults(options *Options) {
	options.Endpoint = cmp.Or(options.Endpoint, googleEndpoint)
	options.STS = cmp.Or(options.STS, googleSTS)
	options.IAM = cmp.Or(options.IAM, googleIAM)
	options.StallTimeout = cmp.Or(options.StallTimeout, 10*time.Second)
	options.RetryDelayMax = cmp.Or(options.RetryDelayMax, 5*time.Second)
	if options.Random == nil {
		options.Random = rand.Reader
	}
}

// newHTTP returns the HTTP client. It does not follow redirects, which would pass tokens to other
// hosts.
func newHTTP(stall time.Duration) cloud.Client {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: stall, // counted from the last byte of the request
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          idleConnectionsMax,
		MaxIdleConnsPerHost:   idleConnectionsMax,
		Protocols:             new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	return cloud.Client{Stall: stall, Doer: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// request is a request to the storage, which may be sent several times.
type request struct {
	method string
	path   string // with query, percent-encoded, relative to the endpoint
	header map[string]string
	body   func() io.Reader // nil if there is no body
	bytes  int64            // of the body
}

// do sends a request until read has read an answer with a 2xx status. If read succeeds, it must
// have closed the body. do repeats the request after failures that may be temporary. All requests
// of this package may be repeated.
func (c *Client) do(ctx context.Context, r request, read func(*http.Response) error) error {
	for attempt := 0; ; attempt++ {
		err := c.try(ctx, r, read)
		if err == nil {
			c.quota.refill()
			return nil
		}
		if ctx.Err() != nil || !mayPass(err) || attempt == attemptsMax-1 || !c.quota.take() {
			return err
		}
		if paused := c.pause(ctx, attempt); paused != nil {
			return fmt.Errorf("%w, after %w", paused, err)
		}
	}
}

// try sends a request once.
func (c *Client) try(ctx context.Context, r request, read func(*http.Response) error) error {
	var body io.Reader
	if r.body != nil {
		body = r.body()
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, c.endpoint+r.path, body)
	if err != nil {
		return err
	}
	sent.ContentLength = r.bytes
	sent.Header.Set("User-Agent", "moorage")
	sent.Header.Set("Accept-Encoding", "identity")
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	if c.tokens != nil {
		token, err := c.tokens.get(ctx, tokenLeftMin)
		if err != nil {
			return err
		}
		sent.Header.Set("Authorization", "Bearer "+token.value)
	}
	answer, err := c.http.Do(sent)
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		defer answer.Body.Close()
		return newStatusError(answer)
	}
	return read(answer)
}

// doJSON is like do, for an answer with a JSON document, which it decodes into document.
func (c *Client) doJSON(ctx context.Context, r request, document any) error {
	return c.do(ctx, r, func(answer *http.Response) error { return readJSON(answer, document) })
}

// readJSON reads an answer to its end. A truncated answer is a temporary error.
func readJSON(answer *http.Response, document any) error {
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax+1))
	if err != nil {
		return err
	}
	if len(content) > answerBytesMax {
		return fmt.Errorf("the server answered more than %d bytes", answerBytesMax)
	}
	if json.Unmarshal(content, document) != nil {
		return errors.New("the server did not return the requested document")
	}
	return nil
}

// pause waits before the next attempt, or until ctx ends. The first pause is at most a second, and
// the maximum doubles each time.
func (c *Client) pause(ctx context.Context, attempt int) error {
	var drawn [4]byte
	if _, err := io.ReadFull(c.random, drawn[:]); err != nil {
		return err
	}
	longest := min(pauseMin<<attempt, c.retryDelayMax)
	part := float64(binary.BigEndian.Uint32(drawn[:])) / (1 << 32)
	if !worker.Sleep(ctx, time.Duration(part*float64(longest))) {
		return context.Cause(ctx)
	}
	return nil
}
