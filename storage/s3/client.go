package s3

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// attemptsMax is the maximum number of times that one request is sent. The first pause is at
	// most a second, and pauses double. On average, the last attempt begins after 7 s, well within
	// the timeout of a commit.
	attemptsMax = 5
	// dialTimeout is the timeout of connecting to a host. Another try is better than a long wait.
	dialTimeout = 5 * time.Second
	// idleConnectionsMax is the maximum number of idle connections: as many as a busy node has
	// concurrent requests. HTTP/1.1 needs a connection for each request.
	idleConnectionsMax = 256
	// fallbackRegion is the region in signatures if no other is known. Servers other than Amazon's
	// have this region or no region.
	fallbackRegion = "us-east-1"
)

// Options describes how to reach the server. The zero value means Amazon's S3, with the settings of
// the environment.
type Options struct {
	// Endpoint is the server's URL, such as http://127.0.0.1:9000. Default: AWS_ENDPOINT_URL_S3 or
	// the profile's endpoint, or else Amazon's for the region.
	Endpoint string
	// Region is the region for which requests are signed. Default: the region of the environment or
	// the profile, or else us-east-1.
	Region string
	// Addressing decides where in a URL the bucket goes.
	Addressing Addressing

	// AccessKeyID and SecretAccessKey are static credentials. Default: the default chain of the AWS
	// SDKs (environment, shared files, web identity, container, instance).
	AccessKeyID, SecretAccessKey string
	// Profile is a section of the shared configuration files, which may contain credentials.
	// Default: AWS_PROFILE, or none.
	Profile string

	// StallTimeout is the longest time without any transfer before the client abandons a try.
	// Default 10 s.
	StallTimeout time.Duration
	// RetryDelayMax is the maximum pause between two tries. Default 5 s.
	RetryDelayMax time.Duration

	// Vending decides how credentials for engines are made.
	Vending Vending

	Random io.Reader    // ids of writes; default crypto/rand.Reader
	Logger *slog.Logger // default: discards
}

// Addressing is where in a URL the bucket goes.
type Addressing uint8

const (
	// AddressDefault is AddressPath if there is an endpoint, because few servers other than
	// Amazon's have a host name for each bucket. Otherwise it is AddressHost.
	AddressDefault Addressing = iota
	// AddressPath is http://host/bucket/key.
	AddressPath
	// AddressHost is http://bucket.host/key.
	AddressHost
)

// Client is a connection to one server, for any number of Stores. It is safe for concurrent use.
type Client struct {
	sdk          *s3.Client
	backoff      retry.BackoffDelayer // pause before a bulk delete is repeated for the rest
	random       io.Reader
	log          *slog.Logger
	clientConfig map[string]string
	sts          *sts.Client
	vending      Vending
	now          func() time.Time

	signing signKnowledge

	// buckets holds a *bucket for each bucket in use, by name.
	buckets sync.Map
}

// Connect returns a client for the server in options. It reads the environment and the shared
// configuration files of the AWS SDKs, and sends nothing.
func Connect(ctx context.Context, options Options) (*Client, error) {
	setDefaults(&options)
	loaded, err := config.LoadDefaultConfig(ctx, loadOptions(options)...)
	if err != nil {
		return nil, fmt.Errorf("s3: read the configuration: %w", err)
	}
	loaded.Region = cmp.Or(loaded.Region, fallbackRegion)
	sdk := s3.NewFromConfig(loaded, func(o *s3.Options) {
		if options.Endpoint != "" {
			o.BaseEndpoint = aws.String(options.Endpoint)
		}
		o.UsePathStyle = options.Addressing == AddressPath || options.Addressing == AddressDefault &&
			o.BaseEndpoint != nil
		o.Retryer = newRetryer(options)
		o.HTTPClient = cloud.Client{Doer: o.HTTPClient, Stall: options.StallTimeout}
		// This package itself adds a checksum that the server supports to its writes; see stamp.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		if o.Credentials != nil {
			o.Credentials = explained{o.Credentials}
		}
		// This package's reader checks the bytes itself, even across a broken connection.
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	vending := options.Vending.withDefaults(aws.ToString(sdk.Options().BaseEndpoint))
	return &Client{
		sdk:          sdk,
		sts:          newSTS(loaded, options, vending),
		vending:      vending,
		now:          time.Now,
		backoff:      retry.NewExponentialJitterBackoff(options.RetryDelayMax),
		random:       options.Random,
		log:          options.Logger,
		clientConfig: clientConfig(sdk.Options()),
	}, nil
}

// explained wraps a provider of credentials. If there are no credentials, its error names the
// places where the SDK looked. It is safe for concurrent use.
type explained struct{ aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider. Its failures are storage.ErrNoCredentials.
func (e explained) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := e.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		return found, noCredentials{err}
	}
	return found, nil
}

// noCredentials wraps storage.ErrNoCredentials and its cause.
type noCredentials struct{ cause error }

// Error implements error.
func (n noCredentials) Error() string {
	return "there are no credentials for S3: the warehouse has no secret, and " +
		"none come from the environment (AWS_ACCESS_KEY_ID), the shared files (~/.aws) or the machine's role: " +
		n.cause.Error()
}

// Unwrap returns storage.ErrNoCredentials and the cause.
func (n noCredentials) Unwrap() []error { return []error{storage.ErrNoCredentials, n.cause} }

func setDefaults(options *Options) {
	options.StallTimeout = cmp.Or(options.StallTimeout, 10*time.Second)
	options.RetryDelayMax = cmp.Or(options.RetryDelayMax, 5*time.Second)
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
}

// loadOptions returns the options that override the environment and the shared files.
func loadOptions(options Options) []func(*config.LoadOptions) error {
	transport := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			// This timeout begins after the last byte of the request. cloud.Client limits the time
			// before and after that.
			t.ResponseHeaderTimeout = options.StallTimeout
			// Raise the limit for all hosts too, because the SDK's default is 100.
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnectionsMax, idleConnectionsMax
		})
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(transport),
		// The SDK's messages are about connections. The errors contain them too.
		config.WithLogger(logging.LoggerFunc(func(_ logging.Classification, format string, values ...any) {
			options.Logger.Debug("s3: " + fmt.Sprintf(format, values...))
		})),
	}
	if options.Region != "" {
		load = append(load, config.WithRegion(options.Region))
	}
	if options.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(options.Profile))
	}
	if options.AccessKeyID != "" {
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(options.AccessKeyID, options.SecretAccessKey, "")))
	}
	return load
}

// newRetryer returns the policy of retries. It repeats a request in the SDK's cases, after status
// 409 or 429, and after an answer whose body was truncated or stalled. All requests of this package
// may be repeated. A pause ends when the context ends. All requests share the SDK's quota of
// retries. Each answered request refills it. While a server is down, the quota keeps callers from
// sending five attempts each.
func newRetryer(options Options) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attemptsMax
		o.MaxBackoff = options.RetryDelayMax
		o.Retryables = append(o.Retryables,
			retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusConflict: {},
				http.StatusTooManyRequests: {}}},
			retry.IsErrorRetryableFunc(isCutAnswer))
	})
}

// isCutAnswer reports whether the connection broke or was abandoned within the body of an answer.
func isCutAnswer(err error) aws.Ternary {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, cloud.ErrStalled) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// clientConfig returns the settings that an engine needs to reach the same server, under the names
// used by Java, PyIceberg, DuckDB and Trino.
func clientConfig(options s3.Options) map[string]string {
	config := map[string]string{
		optionClientRegion: options.Region,
		OptionRegion:       options.Region,
	}
	if options.BaseEndpoint != nil {
		config[OptionEndpoint] = *options.BaseEndpoint
		config[OptionPathStyle] = strconv.FormatBool(options.UsePathStyle)
	}
	return config
}
