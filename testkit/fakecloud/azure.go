package fakecloud

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// The account of the emulator, and the account's key; scripts/azureserver.py has the same values.
const (
	AzureAccount    = "moorage"
	AzureAccountKey = "dGhlIGtleSBvZiB0aGUgYWNjb3VudCBvZiB0ZXN0cywgb2YgNTEyIGJpdHMsIGZvciBub2JvZHkgZWxzZS4uIQ=="
)

// AzureServer is a running emulator. It is safe for concurrent use.
type AzureServer struct {
	// Endpoint is the URL of the account's blob service.
	Endpoint string

	key        *service.SharedKeyCredential
	client     *service.Client
	containers atomic.Int64
	process    *Process
}

var sharedAzure = sync.OnceValues(startAzure)

// StartAzure returns the emulator of this process. It starts the emulator if no test has done so.
// The emulator ends with the process, even if the process crashes.
func StartAzure(tb testing.TB) *AzureServer {
	tb.Helper()
	server, err := sharedAzure()
	if err != nil {
		tb.Fatalf("fakecloud: azure: %v", err)
	}
	return server
}

// NewContainer creates an empty container for the calling test alone, and returns its location.
func (s *AzureServer) NewContainer(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("container-%d", s.containers.Add(1))
	if _, err := s.client.CreateContainer(tb.Context(), name, nil); err != nil {
		tb.Fatalf("fakecloud: azure: make a container: %v", err)
	}
	return "abfss://" + name + "@" + AzureAccount + ".dfs.core.windows.net"
}

// Names returns the names of all blobs in a container, in byte order. location comes from
// NewContainer.
func (s *AzureServer) Names(tb testing.TB, location string) []string {
	tb.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(location, "abfss://"), "@")
	names, err := s.names(tb.Context(), name, "")
	if err != nil {
		tb.Fatalf("fakecloud: azure: list a container: %v", err)
	}
	return names
}

// names returns the names of the blobs that begin with prefix.
func (s *AzureServer) names(ctx context.Context, in, prefix string) (names []string, err error) {
	pages := s.client.NewContainerClient(in).NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, found := range page.Segment.BlobItems {
			names = append(names, *found.Name)
		}
	}
	return names, nil
}

func startAzure() (*AzureServer, error) {
	process, err := StartProcess("azureserver.py")
	if err != nil {
		return nil, err
	}
	s := &AzureServer{Endpoint: process.URL, process: process}
	if s.key, err = service.NewSharedKeyCredential(AzureAccount, AzureAccountKey); err != nil {
		return nil, err
	}
	core := azcore.ClientOptions{PerCallPolicies: []policy.Policy{olderVersion{}}}
	s.client, err = service.NewClientWithSharedKeyCredential(s.Endpoint, s.key,
		&service.ClientOptions{ClientOptions: core})
	return s, err
}

// olderVersion changes the API version of each request to one that the emulator supports.
type olderVersion struct{}

// Do implements policy.Policy.
func (olderVersion) Do(request *policy.Request) (*http.Response, error) {
	request.Raw().Header["x-ms-version"] = []string{azureVersion}
	return request.Next()
}

// azureVersion is the version of the Azure Storage API that olderVersion sets.
const azureVersion = "2022-11-02"

// emulatedSecret is the secret from which the emulator makes user delegation keys. It comes from
// the emulator's source.
const emulatedSecret = "I17GKLvcJUossaebtsEDZZ2RJ8GNLwLH4m7hRMxbVbkx6wNIRAABj4Rtw0FBhFuEAgmbL4gFMzUw+AStz9Sqdg=="

// EmulatedKey returns the user delegation key that the emulator issues to an identity, valid from
// start to expiry.
func EmulatedKey(objectID, tenantID, start, expiry, version string) string {
	mac := hmac.New(sha256.New, []byte(emulatedSecret))
	mac.Write([]byte(strings.Join([]string{objectID, tenantID, start, expiry, "b", version}, "\n")))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
