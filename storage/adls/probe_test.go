package adls_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"moorage/storage"
	"moorage/storage/adls"
	"moorage/testkit/fakecloud"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartAzure(t)
	container := server.NewContainer(t)
	for _, root := range []string{container, container + "/w", strings.Replace(container, "abfss", "wasbs", 1)} {
		if err := open(t, emulated(server), root).Probe(t.Context()); err != nil {
			t.Errorf("Probe of %q: %v", root, err)
		}
	}
	if names := server.Names(t, container); len(names) > 0 {
		t.Errorf("the probe left %q", names)
	}
	missing := strings.Replace(container, "container-", "none-", 1)
	if err := open(t, emulated(server), missing).Probe(t.Context()); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Probe of a container that is missing = %v, want ErrNotFound", err)
	}
	if _, err := open(t, emulated(server), missing).Stat(t.Context(), missing+"/a"); err == nil ||
		errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat in a container that is missing = %v, want another error than ErrNotFound", err)
	}
}

// TestWrongKey: the error explains what to do, and does not contain any part of the key.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartAzure(t)
	wrong := emulated(server)
	wrong.AccountKey = "c2VjcmV0IG9mIG5vYm9keQ=="
	root := server.NewContainer(t)
	store := open(t, wrong, root)
	_, statErr := store.Stat(t.Context(), root+"/a")
	for _, err := range []error{store.Probe(t.Context()), statErr, store.Delete(t.Context(), root+"/a")} {
		if err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), wrong.AccountKey) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %q; want one line with 403 and without the key", err)
		}
	}
}

func TestClientConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		endpoint string
		roots    []string
		want     map[string]string
	}{
		{"Azure", "", []string{"abfss://c-1@account.dfs.core.windows.net/a", "wasb://c-2@account.blob.core.windows.net"},
			map[string]string{"adls.account-name": "account"}},
		{"another cloud", "", []string{"abfss://c-1@account.dfs.core.chinacloudapi.cn"}, map[string]string{
			"adls.account-name": "account", "adls.blob-storage-authority": ".blob.core.chinacloudapi.cn",
			"adls.dfs-storage-authority": ".dfs.core.chinacloudapi.cn",
		}},
		{"an emulator", "http://127.0.0.1:10000/account", []string{"abfss://c-1@account.dfs.core.windows.net"},
			map[string]string{
				"adls.account-name": "account", "adls.blob-storage-authority": "127.0.0.1:10000",
				"adls.blob-storage-scheme": "http", "adls.dfs-storage-authority": "127.0.0.1:10000",
				"adls.dfs-storage-scheme": "http",
			}},
		{"two accounts", "", []string{"abfss://c-1@account1.dfs.core.windows.net", "abfss://c-1@account2.dfs.core.windows.net"},
			nil},
	} {
		store := open(t, adls.Options{Endpoint: tt.endpoint, AccountKey: fakecloud.AzureAccountKey}, tt.roots...)
		if got := store.ClientConfig(); !maps.Equal(got, tt.want) {
			t.Errorf("%s: ClientConfig() = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	options, err := adls.Options{}.With(map[string]string{
		"adls.endpoint": "https://127.0.0.1:1/a", "adls.tenant-id": "t", "adls.client-id": "c",
		"adls.hierarchical": "true", "adls.sas.duration": "30m",
	})
	if err != nil || options.Endpoint == "" || options.TenantID != "t" || options.ClientID != "c" || !options.Hierarchical ||
		options.Duration.Minutes() != 30 {
		t.Errorf("With = %+v, %v", options, err)
	}
	for name, value := range map[string]string{
		"adls.endpoint": "127.0.0.1:1", "adls.tenant-id": "a/b", "adls.client-id": "", "adls.hierarchical": "yes please",
		"adls.sas.duration": "1m", "adls.account-key": "x", "s3.region": "x",
	} {
		if _, err := (adls.Options{}).With(map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("With(%s=%s) = %v, want an error that names the option", name, value, err)
		}
	}
	for _, secret := range []map[string]string{
		nil, {"client-secret": ""}, {"account-key": "hidden", "client-secret": "hidden"}, {"other": "hidden"},
		{"client-secret": "hidden"}, // without tenant and client
	} {
		if _, err := (adls.Options{}).WithSecret(secret); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("WithSecret(%v) = %v, want an error without the secret", secret, err)
		}
	}
	if _, err := options.WithSecret(map[string]string{"client-secret": "s"}); err != nil {
		t.Errorf("WithSecret: %v", err)
	}
}

func TestWithinRefuses(t *testing.T) {
	t.Parallel()
	client, err := adls.Connect(adls.Options{Endpoint: "http://127.0.0.1:1/a", AccountKey: fakecloud.AzureAccountKey})
	if err != nil {
		t.Fatal(err)
	}
	for _, roots := range [][]string{
		{"s3://b/a"}, {"abfss://c/a"},
		{"abfss://c-1@account1.dfs.core.windows.net", "abfss://c-1@account2.dfs.core.windows.net"},
	} {
		if _, err := client.Within(roots); err == nil {
			t.Errorf("Within(%q) returned no error", roots)
		}
	}
}
