// Package azuretest starts doubles of Azure Storage for tests: the emulator Azurite, and Lake, a
// double of an account with a hierarchical namespace in front of it. Both listen on 127.0.0.1, one
// for each test binary that needs it. A test that needs the emulator fails without it. This command
// installs the emulator, below .cache:
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

// The account of the emulator and its key, the same as in scripts/azureserver.py.
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
// emulator ends with the process, even if the process crashes.
func Start(tb testing.TB) *Server {
	tb.Helper()
	server, err := shared()
	if err != nil {
		tb.Fatalf("azuretest: %v", err)
	}
	return server
}

// NewContainer creates an empty container for the calling test alone, and returns its location.
func (s *Server) NewContainer(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("container-%d", s.containers.Add(1))
	if _, err := s.client.CreateContainer(tb.Context(), name, nil); err != nil {
		tb.Fatalf("azuretest: make a container: %v", err)
	}
	return "abfss://" + name + "@" + Account + ".dfs.core.windows.net"
}

// Names returns the names of all blobs in a container, in byte order. location comes from
// NewContainer.
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

// olderVersion sets a version of the API that the emulator supports.
type olderVersion struct{}

// Do implements policy.Policy.
func (olderVersion) Do(request *policy.Request) (*http.Response, error) {
	request.Raw().Header["x-ms-version"] = []string{version}
	return request.Next()
}

// version is a version of the API of Azure Storage.
const version = "2022-11-02"

// emulatedSecret is the secret from which the emulator makes user delegation keys. It is in its
// source.
const emulatedSecret = "I17GKLvcJUossaebtsEDZZ2RJ8GNLwLH4m7hRMxbVbkx6wNIRAABj4Rtw0FBhFuEAgmbL4gFMzUw+AStz9Sqdg=="

// EmulatedKey returns the user delegation key that the emulator gives to an identity for a period.
func EmulatedKey(objectID, tenantID, start, expiry, version string) string {
	mac := hmac.New(sha256.New, []byte(emulatedSecret))
	mac.Write([]byte(strings.Join([]string{objectID, tenantID, start, expiry, "b", version}, "\n")))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
