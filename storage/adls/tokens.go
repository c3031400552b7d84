package adls

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// storageDomains returns the domains of Azure's clouds below which storage accounts are.
func storageDomains() []string {
	return []string{"core.windows.net", "storage.azure.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net"}
}

// isAzures reports whether a host is one of a storage account of Azure's.
func isAzures(host string) bool {
	for _, domain := range storageDomains() {
		if strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// checkEndpointForTokens returns an error if tokens would go to a host that a place named.
func (o Options) checkEndpointForTokens() error {
	if o.Endpoint == "" || !o.endpointIsPlaces {
		return nil
	}
	parsed, err := url.Parse(o.Endpoint)
	if err == nil && parsed.Scheme == "https" && parsed.Port() == "" && isAzures(parsed.Hostname()) {
		return nil
	}
	return fmt.Errorf("adls: the option %s: tokens are not sent to %s. Name a host of Azure's, or the one that the "+
		"server is started with, or reach the account with its key", OptionEndpoint, o.Endpoint)
}

// checkHost returns an error if tokens would go to a host that a location names and that is not
// Azure's. With an endpoint they go there.
func (c *Client) checkHost(host string) error {
	if c.options.Endpoint != "" || isAzures(host) {
		return nil
	}
	return fmt.Errorf("tokens are not sent to %s, which is no host of Azure's: the server of a private cloud is "+
		"named when Moorage is started", host)
}

// tokenPolicies returns what adds tokens of an identity to requests. Their scope is that of Azure
// Storage, whatever a server asks for.
func tokenPolicies(identity azcore.TokenCredential) []policy.Policy {
	return []policy.Policy{runtime.NewBearerTokenPolicy(identity, []string{storageScope}, nil), noChallenge{}}
}

// noChallenge hides from the policies before it what kind of token a server asks for.
type noChallenge struct{}

// Do implements policy.Policy.
func (noChallenge) Do(request *policy.Request) (*http.Response, error) {
	answer, err := request.Next()
	if answer != nil {
		answer.Header.Del("WWW-Authenticate")
	}
	return answer, err
}
