package adls_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"moorage/storage"
	"moorage/storage/adls"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

// TestVending tries the credentials on a simulated account, which checks signatures as documented
// by Azure.
func TestVending(t *testing.T) {
	t.Parallel()
	storagetest.RunVending(t, func(t *testing.T) storagetest.Vending {
		lake := fakecloud.StartLake(t)
		root := lake.Behind.NewContainer(t) + "/wh"
		return storagetest.Vending{
			Store: open(t, identified(t, lake), root), Root: root,
			Engine: func(_ *testing.T, made storage.Credential) storagetest.Engine {
				return engine{lake.Endpoint, made}
			},
			Refuses:    isRefused,
			Impossible: isImpossible,
		}
	})
}

// isRefused reports whether credentials are refused for a location with this name.
func isRefused(name string) bool { return strings.ContainsAny(name, "%+") || isImpossible(name) }

// isImpossible reports whether package storage refuses a name that Azure allows.
func isImpossible(name string) bool {
	_, err := storage.Parse("abfss://c-1@account.dfs.core.windows.net/" + name)
	return err != nil
}

// realAccount is the variable with the location of a folder in a hierarchical account, in which
// TestRealAccount may write. The identity of the process needs the roles of the guide.
const realAccount = "MOORAGE_TEST_AZURE_LOCATION"

// TestRealAccount does the same with Azure itself, if there is an account for the test.
func TestRealAccount(t *testing.T) {
	root := os.Getenv(realAccount)
	if root == "" {
		t.Skipf("not run: %s names no folder in Azure", realAccount)
	}
	parsed, err := storage.Parse(root)
	if err != nil {
		t.Fatal(err)
	}
	_, host, _ := strings.Cut(parsed.Authority, "@")
	endpoint := "https://" + storage.AzureBlobHost(host)
	var count atomic.Int64
	storagetest.RunVending(t, func(t *testing.T) storagetest.Vending {
		place := storage.Join(root, fmt.Sprint(count.Add(1)))
		store := open(t, adls.Options{Hierarchical: true}, place)
		t.Cleanup(func() { deleteAll(t, store, place) })
		return storagetest.Vending{
			Store: store, Root: place,
			Engine: func(_ *testing.T, made storage.Credential) storagetest.Engine {
				return engine{endpoint, made}
			},
			Refuses:    isRefused,
			Impossible: isImpossible,
		}
	})
}

// deleteAll deletes the files below a folder.
func deleteAll(t *testing.T, store *adls.Store, folder string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for after := ""; ; {
		page, err := store.List(ctx, folder, after, 1000)
		if err != nil {
			t.Error(err)
			return
		}
		for _, found := range page.Files {
			if err := store.Delete(ctx, found.Location); err != nil {
				t.Error(err)
			}
		}
		if after = page.Next; after == "" {
			return
		}
	}
}

// TestCredential checks the names under which clients find a credential.
func TestCredential(t *testing.T) {
	t.Parallel()
	lake := fakecloud.StartLake(t)
	root := lake.Behind.NewContainer(t)
	store := open(t, identified(t, lake), root)
	made, err := store.Vend(t.Context(), storage.Scope{Locations: []string{root + "/t"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, value := range made.Config {
		names = append(names, name)
		switch {
		case strings.HasPrefix(name, "adls.sas-token-expires-at-ms."):
			if value != fmt.Sprint(made.Expires.UnixMilli()) {
				t.Errorf("%s is %s, and the credential ends at %v", name, value, made.Expires)
			}
		default:
			query, err := url.ParseQuery(value)
			if err != nil || query.Get("sig") == "" || query.Get("sp") != "rl" || query.Get("sdd") != "1" {
				t.Errorf("%s is %q, %v", name, value, err)
			}
		}
	}
	slices.Sort(names)
	const dfs, blob = fakecloud.AzureAccount + ".dfs.core.windows.net", fakecloud.AzureAccount + ".blob.core.windows.net"
	want := []string{
		"adls.sas-token", "adls.sas-token-expires-at-ms." + fakecloud.AzureAccount, "adls.sas-token-expires-at-ms." + blob,
		"adls.sas-token-expires-at-ms." + dfs, "adls.sas-token." + fakecloud.AzureAccount, "adls.sas-token." + blob,
		"adls.sas-token." + dfs,
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the credential has the parts %q, want %q", names, want)
	}
}

// TestVendNeedsAnIdentity: no credential is signed with an account's key, or for an account without
// folders.
func TestVendNeedsAnIdentity(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartAzure(t)
	root := server.NewContainer(t)
	options := emulated(server)
	scope := storage.Scope{Locations: []string{root + "/t"}}
	if _, err := open(t, options, root).Vend(t.Context(), scope); !errors.Is(err, storage.ErrUnscopable) {
		t.Errorf("without a hierarchical namespace: %v, want ErrUnscopable", err)
	}
	options.Hierarchical = true
	made, err := open(t, options, root).Vend(t.Context(), scope)
	if err == nil || errors.Is(err, storage.ErrUnscopable) || errors.Is(err, storage.ErrUnavailable) ||
		!strings.Contains(err.Error(), "identity") {
		t.Errorf("with the key of the account: %v, %v; want an error that asks for an identity", made, err)
	}
	if err := open(t, options, root).ProbeVending(t.Context()); err == nil {
		t.Error("the probe found nothing wrong")
	}
	if names := server.Names(t, root); len(names) > 0 {
		t.Errorf("the probe left %q", names)
	}
}

// TestProbeVendingFindsLooseAccounts probes accounts that do not enforce all restrictions of a
// signature. The probe must detect each of them, and leave nothing behind.
func TestProbeVendingFindsLooseAccounts(t *testing.T) {
	t.Parallel()
	lake := fakecloud.StartLake(t)
	isList := func(r *http.Request) bool { return r.URL.Query().Get("comp") == "list" }
	forReading := func(r *http.Request) bool { return r.URL.Query().Get("sp") == "rl" }
	for _, tt := range []struct {
		name  string
		lets  func(r *http.Request) bool
		finds string
	}{
		{"ignores the directory", func(*http.Request) bool { return true }, "can read in"},
		{"forgets the slash", func(r *http.Request) bool {
			return strings.Contains(r.URL.Path, "y/data") && r.Method == http.MethodDelete
		}, "delete in a sibling folder whose name begins with"},
		{"is deaf to case", func(r *http.Request) bool {
			return strings.Contains(r.URL.Path, "MOORAGE") && r.Method == http.MethodPut
		}, "write in a sibling folder whose name differs"},
		{"lists siblings", func(r *http.Request) bool {
			return isList(r) && strings.HasSuffix(r.URL.Query().Get("prefix"), "y/")
		}, "can list a sibling folder whose name begins with"},
		{"lists all", func(r *http.Request) bool {
			return isList(r) && strings.Count(r.URL.Query().Get("prefix"), "/") == 1
		}, "list the folder above"},
		{"lets readers write", func(r *http.Request) bool { return forReading(r) && r.Method == http.MethodPut },
			"can write"},
		{"lets readers delete", func(r *http.Request) bool {
			return forReading(r) && r.Method == http.MethodDelete && !strings.Contains(r.URL.Path, "y/") &&
				!strings.Contains(r.URL.Path, "MOORAGE")
		}, "can delete, although they are read-only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("sig") != "" && tt.lets(r) {
					r.Header.Set("Authorization", "Bearer "+fakecloud.AzureToken)
				}
				lake.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			options := identified(t, lake)
			options.Endpoint = front.URL + "/" + fakecloud.AzureAccount
			options.Trusted = options.Endpoint
			container := lake.Behind.NewContainer(t)
			err := open(t, options, container+"/wh").ProbeVending(t.Context())
			if !errors.Is(err, storage.ErrUnenforced) || !strings.Contains(err.Error(), tt.finds) {
				t.Errorf("ProbeVending = %v; want ErrUnenforced with %q", err, tt.finds)
			}
			if left := lake.Behind.Names(t, container); !slices.Equal(left, []string{"wh"}) {
				t.Errorf("the probe left %q, want the folder of the root alone", left)
			}
		})
	}
}

// engine uses a credential as a client does, without other rights.
type engine struct {
	endpoint string
	made     storage.Credential
}

// client returns a client of the container of a location, and the name of the blob, byte for byte.
func (e engine) client(location string) (*container.Client, string, error) {
	authority, name, _ := strings.Cut(strings.TrimPrefix(location, "abfss://"), "/")
	in, _, _ := strings.Cut(authority, "@")
	client, err := container.NewClientWithNoCredential(e.endpoint+"/"+in+"?"+e.made.Config["adls.sas-token"],
		&container.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}})
	return client, name, err
}

func (e engine) Read(ctx context.Context, location string) error {
	client, name, err := e.client(location)
	if err != nil {
		return err
	}
	answer, err := client.NewBlobClient(name).DownloadStream(ctx, nil)
	if err != nil {
		return denied(err)
	}
	return answer.Body.Close()
}

func (e engine) Write(ctx context.Context, location string) error {
	client, name, err := e.client(location)
	if err != nil {
		return err
	}
	_, err = client.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(strings.NewReader("mine")), nil)
	return denied(err)
}

func (e engine) List(ctx context.Context, prefix string) error {
	client, name, err := e.client(prefix)
	if err != nil {
		return err
	}
	_, err = client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: to.Ptr(name)}).NextPage(ctx)
	return denied(err)
}

func (e engine) Delete(ctx context.Context, location string) error {
	client, name, err := e.client(location)
	if err != nil {
		return err
	}
	_, err = client.NewBlobClient(name).Delete(ctx, nil)
	return denied(err)
}

// denied converts a storage's refusal to ErrDenied.
func denied(err error) error {
	var response *azcore.ResponseError
	if errors.As(err, &response) && (response.StatusCode == http.StatusForbidden ||
		response.StatusCode == http.StatusUnauthorized) {
		return fmt.Errorf("%w: %w", storagetest.ErrDenied, err)
	}
	return err
}
