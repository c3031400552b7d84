// Package azuretest starts what stands for Azure Storage in tests: the emulator Azurite, and Lake,
// a double of an account with a hierarchical namespace in front of it. Both are on 127.0.0.1, one
// for each test binary that asks for it. Without the emulator a test that needs it fails. This
// command installs it, below .cache:
//
//	interop/setup.sh azurite
//
// It must not know what is tested.
package azuretest

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

	"moorage/internal/cloudtest"
)

// The account of the emulator, and the key that it is signed with, as scripts/azureserver.py has
// them.
const (
	Account    = "moorage"
	AccountKey = "dGhlIGtleSBvZiB0aGUgYWNjb3VudCBvZiB0ZXN0cywgb2YgNTEyIGJpdHMsIGZvciBub2JvZHkgZWxzZS4uIQ=="
)

// Server is a running emulator. It is safe for concurrent use.
type Server struct {
	// Endpoint is the URL of the account's blob service.
	Endpoint string

	key        *service.SharedKeyCredential
	client     *service.Client
	containers atomic.Int64
	process    *cloudtest.Process
}

var shared = sync.OnceValues(start)

// Start returns the emulator of this process. It starts the emulator if no test did before. The
// emulator ends with the process, however that ends.
func Start(tb testing.TB) *Server {
	tb.Helper()
	server, err := shared()
	if err != nil {
		tb.Fatalf("azuretest: %v", err)
	}
	return server
}

// NewContainer makes an empty container, which no other test has, and returns its location.
func (s *Server) NewContainer(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("container-%d", s.containers.Add(1))
	if _, err := s.client.CreateContainer(tb.Context(), name, nil); err != nil {
		tb.Fatalf("azuretest: make a container: %v", err)
	}
	return "abfss://" + name + "@" + Account + ".dfs.core.windows.net"
}

// Names returns the names of all blobs in a container, whose location NewContainer returned, in
// byte order.
func (s *Server) Names(tb testing.TB, location string) []string {
	tb.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(location, "abfss://"), "@")
	names, err := s.names(tb.Context(), name, "")
	if err != nil {
		tb.Fatalf("azuretest: list a container: %v", err)
	}
	return names
}

// names returns the names of the blobs that begin with prefix.
func (s *Server) names(ctx context.Context, in, prefix string) (names []string, err error) {
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

func start() (*Server, error) {
	process, err := cloudtest.Start("azureserver.py")
	if err != nil {
		return nil, err
	}
	s := &Server{Endpoint: process.URL, process: process}
	if s.key, err = service.NewSharedKeyCredential(Account, AccountKey); err != nil {
		return nil, err
	}
	core := azcore.ClientOptions{PerCallPolicies: []policy.Policy{olderVersion{}}}
	s.client, err = service.NewClientWithSharedKeyCredential(s.Endpoint, s.key,
		&service.ClientOptions{ClientOptions: core})
	return s, err
}

// olderVersion asks for a version of the API that the emulator knows.
type olderVersion struct{}

// Do implements policy.Policy.
func (olderVersion) Do(request *policy.Request) (*http.Response, error) {
	request.Raw().Header["x-ms-version"] = []string{version}
	return request.Next()
}

// version is that of the API of Azure Storage.
const version = "2022-11-02"

// emulatedSecret is what the emulator makes user delegation keys from. It is in its source.
const emulatedSecret = "I17GKLvcJUossaebtsEDZZ2RJ8GNLwLH4m7hRMxbVbkx6wNIRAABj4Rtw0FBhFuEAgmbL4gFMzUw+AStz9Sqdg=="

// EmulatedKey returns the user delegation key that the emulator gives to an identity for a time.
func EmulatedKey(objectID, tenantID, start, expiry, version string) string {
	mac := hmac.New(sha256.New, []byte(emulatedSecret))
	mac.Write([]byte(strings.Join([]string{objectID, tenantID, start, expiry, "b", version}, "\n")))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
