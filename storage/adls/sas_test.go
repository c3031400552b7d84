package adls

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"moorage/storage"
	"moorage/testkit/fakecloud"
)

// testKey is a user delegation key whose value is the bytes 0 to 31.
func testKey(t *testing.T) delegationKey {
	t.Helper()
	return delegationKey{
		ObjectID: "6fd63d7e-0000-4000-8000-000000000001", TenantID: "6fd63d7e-0000-4000-8000-000000000002",
		Start: mustTime(t, "2026-11-25T10:00:00Z"), Expiry: mustTime(t, "2026-11-26T10:15:00Z"),
		Service: "b", Version: "2022-11-02", Value: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
	}
}

func mustTime(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestSign compares signatures with Azure's documentation for version 2022-11-02: the signed
// fields, one per line, and their HMAC-SHA256, which was computed with another program.
func TestSign(t *testing.T) {
	t.Parallel()
	const keyFields = "\n6fd63d7e-0000-4000-8000-000000000001\n6fd63d7e-0000-4000-8000-000000000002" +
		"\n2026-11-25T10:00:00Z\n2026-11-26T10:15:00Z\nb\n2022-11-02"
	const rest = "\n\n\n\n\nhttps\n2022-11-02\nd\n\n\n\n\n\n\n"
	for _, tt := range []struct {
		directory, permissions string
		text                   string
		depth, signature       string
	}{
		{"orders", permissionsRead,
			"rl\n\n2026-11-25T11:15:00Z\n/blob/account/lake/orders" + keyFields + rest,
			"1", "SqT7JuboviDqnXuqXKct2nYIdnu/dwZtNQxHwx4NpBQ="},
		{"wh/sales/orders-1", permissionsWrite,
			"racwdl\n\n2026-11-25T11:15:00Z\n/blob/account/lake/wh/sales/orders-1" + keyFields + rest,
			"3", "Eys6WYj47i1bYl5kevlleBTEc5/mXN+KaJaYsgRvyq0="},
		{"wh/a b/é=20", permissionsWrite,
			"racwdl\n\n2026-11-25T11:15:00Z\n/blob/account/lake/wh/a b/é=20" + keyFields + rest,
			"3", "9QWoUpQZWWpvspuF/CbpStEmyZJ0HrqbUDgoWn7SU+M="},
	} {
		g := grant{"account", "lake", tt.directory, tt.permissions, mustTime(t, "2026-11-25T11:15:00Z")}
		if got := g.stringToSign(testKey(t)); got != tt.text {
			t.Errorf("%s: signed is\n%q, want\n%q", tt.directory, got, tt.text)
		}
		text, err := g.sign(testKey(t))
		if err != nil {
			t.Fatal(err)
		}
		query, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"sv": "2022-11-02", "sr": "d", "sdd": tt.depth, "sp": tt.permissions, "se": "2026-11-25T11:15:00Z",
			"spr": "https", "skoid": "6fd63d7e-0000-4000-8000-000000000001",
			"sktid": "6fd63d7e-0000-4000-8000-000000000002", "skt": "2026-11-25T10:00:00Z",
			"ske": "2026-11-26T10:15:00Z", "sks": "b", "skv": "2022-11-02", "sig": tt.signature,
		} {
			if got := query.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", tt.directory, name, got, want)
			}
		}
		if len(query) != 13 {
			t.Errorf("%s: the signature has the parameters %v", tt.directory, query)
		}
	}
}

func TestSignRefusesWithoutKey(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "not base64!"} {
		key := testKey(t)
		key.Value = value
		if got, err := (grant{directory: "a"}).sign(key); err == nil {
			t.Errorf("signed with the key %q: %q", value, got)
		}
	}
}

// TestEmulatorChecksSignature has the emulator check the signed fields. The emulator does not
// support signatures for directories, which differ from a blob's signature in one letter. A correct
// signature gets as far as the check of the protocol, which comes after the check of the signature.
// With one byte changed, it does not.
func TestEmulatorChecksSignature(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartAzure(t)
	root := server.NewContainer(t)
	container, _, _ := strings.Cut(strings.TrimPrefix(root, "abfss://"), "@")
	key := testKey(t)
	key.Start, key.Expiry = time.Now().Add(-time.Hour).Truncate(time.Second), time.Now().Add(time.Hour).Truncate(time.Second)
	key.Value = fakecloud.EmulatedKey(key.ObjectID, key.TenantID, key.Start.UTC().Format(sasTime),
		key.Expiry.UTC().Format(sasTime), key.Version)
	g := grant{fakecloud.AzureAccount, container, "wh/t/a b", permissionsRead, time.Now().Add(time.Hour)}

	const before, after = "\n" + serviceVersion + "\nd\n", "\n" + serviceVersion + "\nb\n"
	ofBlob := strings.Replace(g.stringToSign(key), before, after, 1)
	secret, err := base64.StdEncoding.DecodeString(key.Value)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		ofBlob:                                   "AuthorizationProtocolMismatch",
		strings.Replace(ofBlob, "a b", "a c", 1): "AuthorizationFailure",
		strings.Replace(ofBlob, "https", "https ", 1): "AuthorizationFailure",
	} {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		signed, err := g.sign(key)
		if err != nil {
			t.Fatal(err)
		}
		query, err := url.ParseQuery(signed)
		if err != nil {
			t.Fatal(err)
		}
		query.Set("sr", "b")
		query.Del("sdd")
		query.Set("sig", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		if status, body := get(t, server.Endpoint+"/"+container+"/wh/t/a%20b?"+query.Encode()); status != http.StatusForbidden ||
			!strings.Contains(body, "<Code>"+want+"</Code>") {
			t.Errorf("signed over %q: %d %s, want %s", text, status, body, want)
		}
	}
}

func get(t *testing.T, address string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

// TestDelegationKeys: a key is requested once, by one caller at a time, and kept for half of its
// lifetime.
func TestDelegationKeyIsKept(t *testing.T) {
	t.Parallel()
	now := mustTime(t, "2026-11-25T10:15:00Z")
	keys := &delegationKeys{now: func() time.Time { return now }, kept: testKey(t)} // good for 24 h
	for _, tt := range []struct {
		after time.Duration
		life  time.Duration
		want  bool
	}{
		{0, time.Hour, true},
		{11 * time.Hour, 12 * time.Hour, true},
		{12*time.Hour + time.Minute, time.Hour, false},
		{11 * time.Hour, 14 * time.Hour, false},
		{25 * time.Hour, time.Hour, false},
	} {
		now = mustTime(t, "2026-11-25T10:15:00Z").Add(tt.after)
		if _, got := keys.usable(now.Add(tt.life)); got != tt.want {
			t.Errorf("%s after it was asked for, for %s: usable is %t, want %t", tt.after, tt.life, got, tt.want)
		}
	}
}

// TestDirectory: a directory that no signature can express exactly is refused before a signature is
// made.
func TestDirectory(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/wh/t": "wh/t", "/wh/a b": "wh/a b", "/wh/é": "wh/é", "/wh/=C3=A9": "wh/=C3=A9", "/": "", "/wh/100%": "",
		"/wh/a%20b": "", "/wh/a+b": "",
	} {
		store := &Store{client: &Client{options: Options{Hierarchical: true}}}
		location := storage.Location{Scheme: storage.SchemeAzure, Authority: "lake@account.dfs.core.windows.net", Path: path}
		if got, err := store.directory(location); got != want || (err == nil) != (want != "") {
			t.Errorf("the directory of %q is %q, %v; want %q", path, got, err, want)
		}
		store.client.options.Hierarchical = false
		if got, err := store.directory(location); err == nil {
			t.Errorf("the directory of %q is %q in an account without directories", path, got)
		}
	}
}
