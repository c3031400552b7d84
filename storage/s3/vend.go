package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// vendAttemptsMax is the maximum number of calls of AssumeRole, because a load waits for the
	// answer.
	vendAttemptsMax = 3
	// Bounds of a credential's lifetime in AssumeRole.
	vendDurationMin = 15 * time.Minute
	vendDurationMax = 12 * time.Hour
	// vendDurationDefault is long enough for most jobs, because some clients never renew
	// credentials.
	vendDurationDefault = time.Hour
	// sessionBytesMax is the maximum length of a session's name.
	sessionBytesMax = 64
	// sessionPrefix is the prefix of the names of this catalog's sessions.
	sessionPrefix = "mrg-"
)

// The parts of a credential, under the names of Iceberg's clients.
const (
	configAccessKeyID     = "s3.access-key-id"
	configSecretAccessKey = "s3.secret-access-key"
	configSessionToken    = "s3.session-token"
	configExpires         = "s3.session-token-expires-at-ms"
	configRefresh         = "client.refresh-credentials-endpoint"
)

// Vending configures how a Client issues credentials for engines.
type Vending struct {
	// RoleARN is the role to assume. Amazon requires one, other servers may not.
	RoleARN string
	// Endpoint is the URL of the server for AssumeRole. Default: the endpoint for S3, or Amazon's
	// for the region.
	Endpoint string
	// ExternalID is the external id that the role's trust policy may require.
	ExternalID string
	// Duration is the lifetime of credentials, from 15 minutes to 12 hours. Default 1 hour.
	Duration time.Duration
	// KMSKeyARN is the key that encrypts objects, if engines need permission to use it.
	KMSKeyARN string
	// Partition is the partition of resource names. Default aws.
	Partition string
	// Dialect is the policy language of the server. Default: DialectAWS without an endpoint, and
	// DialectOther with one.
	Dialect Dialect
	// OpenMetadata lets writers replace and delete the catalog's own files. By default they cannot.
	OpenMetadata bool
}

// Dialect is a server's interpretation of policies.
type Dialect string

// The dialects.
const (
	DialectAWS   Dialect = "aws"
	DialectMinIO Dialect = "minio"
	DialectOther Dialect = "other"
)

// withDefaults returns v with defaults filled in.
func (v Vending) withDefaults(endpoint string) Vending {
	v.Duration = cmp.Or(v.Duration, vendDurationDefault)
	v.Partition = cmp.Or(v.Partition, "aws")
	if v.Dialect == "" {
		v.Dialect = DialectAWS
		if endpoint != "" {
			v.Dialect = DialectOther
		}
	}
	v.Endpoint = cmp.Or(v.Endpoint, endpoint)
	return v
}

// newSTS returns a client for AssumeRole, with the connection and signing settings of S3.
func newSTS(loaded aws.Config, options Options, vending Vending) *sts.Client {
	return sts.NewFromConfig(loaded, func(o *sts.Options) {
		if vending.Endpoint != "" {
			o.BaseEndpoint = aws.String(vending.Endpoint)
		}
		// Send the hash of the body as a header. Without that header, some servers check the hash
		// only after they have already consumed the body.
		o.APIOptions = append(o.APIOptions, v4.AddContentSHA256HeaderMiddleware)
		o.HTTPClient = cloud.Client{Doer: o.HTTPClient, Stall: options.StallTimeout}
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = vendAttemptsMax
			o.MaxBackoff = options.RetryDelayMax
		})
	})
}

// Vend issues credentials by assuming the role with a policy that allows scope.
func (s *Store) Vend(ctx context.Context, scope storage.Scope) (storage.Credential, error) {
	locations, err := s.roots.Scope(scope.Locations)
	if err != nil {
		return storage.Credential{}, err
	}
	policy, covered, err := policyFor(locations, s.client.terms(scope.Write))
	if err != nil {
		return storage.Credential{}, err
	}
	credential, err := s.client.assumeRole(ctx, scope, policy)
	if isTooLong(err) && covered > 1 {
		if policy, _, err = policyFor(locations[:1], s.client.terms(scope.Write)); err == nil {
			credential, err = s.client.assumeRole(ctx, scope, policy)
		}
	}
	if isTooLong(err) {
		err = fmt.Errorf("%w: %s: %w", storage.ErrUnscopable, scope.Locations[0], err)
	}
	return credential, err
}

// CredentialLife returns the lifetime of a credential.
func (s *Store) CredentialLife() time.Duration { return s.client.vending.Duration }

func (c *Client) terms(write bool) policyTerms {
	return policyTerms{
		partition: c.vending.Partition, dialect: c.vending.Dialect, kmsKey: c.vending.KMSKeyARN,
		protect: !c.vending.OpenMetadata, write: write,
	}
}

// assumeRole requests credentials that are narrowed to policy, which is not empty.
func (c *Client) assumeRole(ctx context.Context, scope storage.Scope, policy string) (storage.Credential, error) {
	if c.vending.RoleARN == "" && c.vending.Dialect == DialectAWS {
		return storage.Credential{}, fmt.Errorf("s3: there is no role to make credentials with: set %s", OptionRoleARN)
	}
	duration := min(max(cmp.Or(scope.Duration, c.vending.Duration), vendDurationMin), vendDurationMax)
	input := &sts.AssumeRoleInput{
		RoleArn:         aws.String(c.vending.RoleARN),
		RoleSessionName: aws.String(sessionName(scope.Session)),
		DurationSeconds: aws.Int32(int32(duration / time.Second)),
		Policy:          aws.String(policy),
	}
	if c.vending.ExternalID != "" {
		input.ExternalId = aws.String(c.vending.ExternalID)
	}
	answer, err := c.sts.AssumeRole(ctx, input)
	switch status := statusOf(err); {
	case err == nil:
	case status == 0 && ctx.Err() == nil, status == http.StatusTooManyRequests, codeOf(err) == "Throttling",
		status >= http.StatusInternalServerError && status != http.StatusNotImplemented:
		return storage.Credential{}, fmt.Errorf("%w: make credentials: %w", storage.ErrUnavailable, err)
	default:
		return storage.Credential{}, fmt.Errorf("s3: make credentials: %w", err)
	}
	made := answer.Credentials
	if made == nil || aws.ToString(made.AccessKeyId) == "" || aws.ToString(made.SecretAccessKey) == "" ||
		aws.ToString(made.SessionToken) == "" || made.Expiration == nil {
		// A credential without a session token would be a plain key, which the policy does not
		// narrow.
		return storage.Credential{}, errors.New("s3: make credentials: the response of the server is incomplete")
	}
	return storage.Credential{
		Config: map[string]string{
			configAccessKeyID:     *made.AccessKeyId,
			configSecretAccessKey: *made.SecretAccessKey,
			configSessionToken:    *made.SessionToken,
			configExpires:         strconv.FormatInt(made.Expiration.UnixMilli(), 10),
		},
		Expires: *made.Expiration, RefreshedAt: configRefresh,
	}, nil
}

// isTooLong reports whether the server requires a shorter policy. The server measures its own
// packed form of the policy, so the length of the text does not show whether it fits.
func isTooLong(err error) bool {
	var tooLong *types.PackedPolicyTooLargeException
	return errors.As(err, &tooLong)
}

// sessionName returns a session name in the form that AssumeRole accepts.
func sessionName(caller string) string {
	plain := func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.ContainsRune("+=,.@-", c):
			return c
		}
		return '-'
	}
	name := sessionPrefix + strings.Map(plain, caller)
	return name[:min(len(name), sessionBytesMax)]
}
