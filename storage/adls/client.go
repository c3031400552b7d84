package adls

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// serviceVersion is the version of the REST API in requests and in signatures for engines. All
	// of Azure's clouds support it.
	serviceVersion = "2022-11-02"
	// headerVersion is the header that contains the version.
	headerVersion = "x-ms-version"
	// attemptsMax is the maximum number of times that one request is sent.
	attemptsMax = 5
	// retryDelay is the first pause before a retry; the next pauses are longer.
	retryDelay = 200 * time.Millisecond
	// dialTimeout is the timeout of connecting to a host.
	dialTimeout = 5 * time.Second
	// idleConnectionsMax is the maximum number of idle connections: as many as a busy node has
	// concurrent requests.
	idleConnectionsMax = 256
	// idleTimeout is shorter than the timeout of Azure's load balancers.
	idleTimeout = 90 * time.Second
)

// Client holds an identity and the settings that Stores use to reach Azure. Any number of Stores
// can share it. It is safe for concurrent use.
type Client struct {
	options  Options
	core     azcore.ClientOptions
	identity azcore.TokenCredential // nil if the key of an account is used
	now      func() time.Time

	// accounts holds an *account for each host in use.
	accounts sync.Map
}

// account is a storage account.
type account struct {
	name    string // the first label of its host
	service *service.Client
	// keys holds the keys that sign credentials for engines. It is nil without an identity that
	// could request such keys.
	keys *delegationKeys
}

// Connect returns a client for options. It reads the environment, and sends nothing.
func Connect(options Options) (*Client, error) {
	options.StallTimeout = cmp.Or(options.StallTimeout, 10*time.Second)
	options.RetryDelayMax = cmp.Or(options.RetryDelayMax, 5*time.Second)
	options.Duration = cmp.Or(options.Duration, durationDefault)
	c := &Client{options: options, core: newCore(options), now: time.Now}
	if options.AccountKey != "" {
		return c, nil
	}
	err := options.checkEndpointForTokens()
	if err != nil {
		return nil, err
	}
	if c.identity, err = newIdentity(options, c.core); err != nil {
		return nil, fmt.Errorf("adls: %w", shorten(err))
	}
	return c, nil
}

// newCore returns the settings of requests, including requests for tokens.
func newCore(options Options) azcore.ClientOptions {
	transport := &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		// This timeout begins after the last byte of the request. cloud.Client limits the time
		// before and after that.
		ResponseHeaderTimeout: options.StallTimeout,
		TLSHandshakeTimeout:   options.StallTimeout,
		MaxIdleConns:          idleConnectionsMax,
		MaxIdleConnsPerHost:   idleConnectionsMax,
		IdleConnTimeout:       idleTimeout,
		ForceAttemptHTTP2:     true,
	}
	return azcore.ClientOptions{
		Transport: cloud.Client{Doer: &http.Client{Transport: transport}, Stall: options.StallTimeout},
		Telemetry: policy.TelemetryOptions{ApplicationID: "moorage"},
		Retry: policy.RetryOptions{
			MaxRetries: attemptsMax - 1, RetryDelay: retryDelay, MaxRetryDelay: options.RetryDelayMax,
		},
	}
}

// newIdentity returns the identity of the requests to Azure.
func newIdentity(options Options, core azcore.ClientOptions) (azcore.TokenCredential, error) {
	switch {
	case options.ClientSecret != "":
		return azidentity.NewClientSecretCredential(options.TenantID, options.ClientID, options.ClientSecret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: core})
	case options.ClientID != "":
		managed, err := azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{
			ClientOptions: core, ID: azidentity.ClientID(options.ClientID),
		})
		if err != nil {
			return nil, err
		}
		workload, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: core, ClientID: options.ClientID, TenantID: options.TenantID,
		})
		if err != nil { // the machine has no workload token
			return managed, nil
		}
		return azidentity.NewChainedTokenCredential([]azcore.TokenCredential{workload, managed}, nil)
	}
	return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions: core, TenantID: options.TenantID,
	})
}

// account returns the account for the authority of a location, as spelled by package storage.
func (c *Client) account(authority string) (*account, error) {
	_, host, _ := strings.Cut(authority, "@")
	if found, ok := c.accounts.Load(host); ok {
		return found.(*account), nil
	}
	name, _, _ := strings.Cut(host, ".")
	endpoint := cmp.Or(c.options.Endpoint, "https://"+storage.AzureBlobHost(host))
	made := &account{name: name}
	core := c.core
	core.PerCallPolicies = []policy.Policy{pinVersion{}}
	options := &service.ClientOptions{ClientOptions: core}
	var err error
	if c.identity == nil {
		var key *service.SharedKeyCredential
		if key, err = service.NewSharedKeyCredential(name, c.options.AccountKey); err == nil {
			made.service, err = service.NewClientWithSharedKeyCredential(endpoint, key, options)
		}
	} else if err = c.checkHost(host); err == nil {
		// If the SDK's client had the identity, it would request a token for whatever resource the
		// server names.
		options.PerRetryPolicies = tokenPolicies(c.identity)
		if made.service, err = service.NewClientWithNoCredential(endpoint, options); err == nil {
			made.keys = newDelegationKeys(endpoint, c.identity, core, c.now)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("adls: reach the account %s: %w", name, shorten(err))
	}
	kept, _ := c.accounts.LoadOrStore(host, made)
	return kept.(*account), nil
}

// pinVersion sets serviceVersion in requests, instead of the newest version that the SDK knows.
type pinVersion struct{}

// Do implements policy.Policy.
func (pinVersion) Do(request *policy.Request) (*http.Response, error) {
	request.Raw().Header[headerVersion] = []string{serviceVersion}
	return request.Next()
}
