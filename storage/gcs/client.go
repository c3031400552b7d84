package gcs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"moorage/internal/impatient"
	"moorage/internal/worker"
)

const (
	// attemptsMax bounds how often one request is sent. Pauses double, from at most a second. The
	// last attempt is sent after 7 s on average, well within the time that a commit has.
	attemptsMax = 5
	// pauseMin is the longest first pause.
	pauseMin = time.Second
	// dialTimeout is for a connection on which nobody answers; a try more is better than a long
	// wait.
	dialTimeout = 5 * time.Second
	// idleConnectionsMax is how many connections are kept: as many as a busy node has requests
	// under way. HTTP/1.1 has one for each.
	idleConnectionsMax = 256
	// answerBytesMax bounds a document that the server answers. A page of a listing has a thousand
	// names of a kilobyte at most.
	answerBytesMax = 16 << 20
	// errorBytesMax bounds what is read of an error.
	errorBytesMax = 16 << 10
	// writeIDBytes makes sure that no two calls draw the same id.
	writeIDBytes = 16
)

// Options say how to reach the storage. The zero value is Google's with what the environment says.
type Options struct {
	// Endpoint is the URL of the storage. Empty: Google's.
	Endpoint string
	// STS is the URL of the service that narrows tokens. Empty: Google's.
	STS string
	// IAM is the URL of the service that makes tokens for other accounts, and TokenURL that of the
	// one that makes them for keys. Empty: Google's.
	IAM, TokenURL string

	// Project is the project that engines name. Empty: they find it out or need none.
	Project string
	// Key is the key of a service account, as the JSON text that Google issues. Empty: what the
	// environment has (GOOGLE_APPLICATION_CREDENTIALS, gcloud's files, the machine's account).
	Key string
	// Impersonate is the e-mail address of the service account whose tokens are used. Empty: that
	// of the key or the environment.
	Impersonate string
	// NoAuth sends no tokens: for servers that ask for none.
	NoAuth bool

	// StallTimeout is how long the server may be silent, or take nothing of what it is sent, before
	// the client gives a try up. Default 10 s.
	StallTimeout time.Duration
	// RetryDelayMax bounds the pause between two tries. Default 5 s.
	RetryDelayMax time.Duration

	Random io.Reader // ids of writes, jitter; default crypto/rand.Reader
}

// Client is a connection to one server, for any number of Stores. It is safe for concurrent use.
type Client struct {
	http          impatient.Client
	endpoint      string
	tokens        *tokens // for requests to the storage; nil: there are none
	vender        *vender // nil: there are no tokens
	random        io.Reader
	retryDelayMax time.Duration
	quota         quota
	clientConfig  map[string]string
}

// Connect returns a client for the server that options name. It sends nothing. An error says that
// the key is not one.
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
	client.tokens = &tokens{make: source.of(scopeStorage), now: time.Now}
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

// newHTTP returns what sends requests. It follows no redirects, which would carry tokens along.
func newHTTP(stall time.Duration) impatient.Client {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: stall, // from the last byte of the request on
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          idleConnectionsMax,
		MaxIdleConnsPerHost:   idleConnectionsMax,
		Protocols:             new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	return impatient.Client{Stall: stall, Doer: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// request is what is sent to the storage, possibly several times.
type request struct {
	method string
	path   string // and query, percent-encoded, behind the endpoint
	header map[string]string
	body   func() io.Reader // nil: none
	bytes  int64            // of the body
}

// do sends a request until an answer of the kind 2xx was read by read, which closes the body if it
// succeeds. It repeats what may pass. All requests of this package may be repeated.
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

// doJSON is do for an answer that is a document, which is decoded into document.
func (c *Client) doJSON(ctx context.Context, r request, document any) error {
	return c.do(ctx, r, func(answer *http.Response) error { return readJSON(answer, document) })
}

// readJSON reads an answer to its end. A cut one is an error that may pass.
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
		return errors.New("the server answered with something else than the document that was asked for")
	}
	return nil
}

// pause waits before the next attempt, for up to a second that doubles each time, or until ctx
// ends.
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

// draw returns an id of a write.
func (c *Client) draw() (string, error) {
	var id [writeIDBytes]byte
	if _, err := io.ReadFull(c.random, id[:]); err != nil {
		return "", fmt.Errorf("draw an id: %w", err)
	}
	return hex.EncodeToString(id[:]), nil
}
