package adls

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// storageDomains returns the domains of storage accounts in Azure's clouds.
func storageDomains() []string {
	return []string{"core.windows.net", "storage.azure.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net"}
}

// isAzures reports whether a host belongs to an Azure storage account.
func isAzures(host string) bool {
	for _, domain := range storageDomains() {
		if strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// checkEndpointForTokens returns an error if the endpoint would get tokens and the process does not
// trust it.
func (o Options) checkEndpointForTokens() error {
	if o.Endpoint == "" || slices.Contains(strings.Fields(o.Trusted), o.Endpoint) {
		return nil
	}
	parsed, err := url.Parse(o.Endpoint)
	if err == nil && parsed.Scheme == "https" && parsed.Port() == "" && isAzures(parsed.Hostname()) {
		return nil
	}
	return fmt.Errorf("adls: the option %s: tokens are not sent to %s. Name a host of Azure's, or start the server "+
		"with --trusted-storage %s, or use the key of the account", OptionEndpoint, o.Endpoint, o.Endpoint)
}

// checkHost returns an error if requests to host, which comes from a location, would send tokens to
// a host that is not Azure's. If an endpoint is set, tokens go to that endpoint, whatever the host.
func (c *Client) checkHost(host string) error {
	if c.options.Endpoint != "" || isAzures(host) {
		return nil
	}
	return fmt.Errorf("tokens are not sent to %s, which is no host of Azure's. For a private cloud give the warehouse "+
		"the option %s, and start the server with --trusted-storage", host, OptionEndpoint)
}

// tokenPolicies returns the policies that add an identity's tokens to requests. The tokens are
// always for Azure Storage, whatever a server demands.
func tokenPolicies(identity azcore.TokenCredential) []policy.Policy {
	return []policy.Policy{runtime.NewBearerTokenPolicy(identity, []string{storageScope}, nil), noChallenge{}}
}

// noChallenge removes the server's demand for a kind of token from an answer, so that earlier
// policies do not see the demand.
type noChallenge struct{}

// Do implements policy.Policy.
func (noChallenge) Do(request *policy.Request) (*http.Response, error) {
	answer, err := request.Next()
	if answer != nil {
		answer.Header.Del("WWW-Authenticate")
	}
	return answer, err
}
