package gcs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/gcs"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

func TestVending(t *testing.T) {
	t.Parallel()
	cloud := fakecloud.NewGoogleCloud(t)
	storagetest.RunVending(t, func(t *testing.T) storagetest.Vending {
		root := "gs://" + cloud.Server.NewBucket(t) + "/wh"
		with := cloudOptions(t, cloud)
		with.Impersonate = fakecloud.GoogleImpersonated // else no credential ends before an hour
		return storagetest.Vending{
			Store: open(t, with, root), Root: root,
			Engine: func(_ *testing.T, made storage.Credential) storagetest.Engine {
				return engine{cloud.URL, made.Config["gcs.oauth2.token"]}
			},
			ProtectsMetadata: true,
		}
	})
}

// TestVendOfKey: a credential made from a key's token expires with that token.
func TestVendOfKey(t *testing.T) {
	t.Parallel()
	cloud := fakecloud.NewGoogleCloud(t)
	root := "gs://" + cloud.Server.NewBucket(t) + "/wh"
	store := open(t, cloudOptions(t, cloud), root)
	if err := store.ProbeVending(t.Context()); err != nil {
		t.Error(err)
	}
	made, err := store.Vend(t.Context(), storage.Scope{Locations: []string{root + "/t"}, Duration: 15 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(made.Expires); left < 55*time.Minute || left > time.Hour {
		t.Errorf("it ends in %s, want an hour", left)
	}
	if got, want := made.Config["gcs.oauth2.token-expires-at"], strconv.FormatInt(made.Expires.UnixMilli(), 10); got != want {
		t.Errorf("clients are told that it ends at %s, want %s", got, want)
	}
	if got, want := made.RefreshedAt, "gcs.oauth2.refresh-credentials-endpoint"; got != want {
		t.Errorf("RefreshedAt = %q, want %q", got, want)
	}
	if len(made.Config) != 2 {
		t.Errorf("%d parts, want 2", len(made.Config))
	}
}

// TestShortRoots: if an account's tokens are about to expire, credentials are shorter, and a new
// token is requested each time.
func TestShortRoots(t *testing.T) {
	t.Parallel()
	cloud := fakecloud.NewGoogleCloud(t)
	cloud.Life = 20 * time.Minute
	root := "gs://" + cloud.Server.NewBucket(t) + "/wh"
	store := open(t, cloudOptions(t, cloud), root)
	made, err := store.Vend(t.Context(), storage.Scope{Locations: []string{root + "/t"}})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(made.Expires); left < 15*time.Minute || left > 20*time.Minute {
		t.Errorf("it ends in %s, want 20 minutes", left)
	}
}

// TestNoVendingWithoutTokens: a server without tokens issues no credentials.
func TestNoVendingWithoutTokens(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartGoogle(t)
	root := "gs://" + server.NewBucket(t) + "/wh"
	store := open(t, options(server.URL), root)
	if err := store.ProbeVending(t.Context()); err == nil || !strings.Contains(err.Error(), "gcs.no-auth") {
		t.Errorf("ProbeVending = %v, want that there are no tokens", err)
	}
}

// TestProbeVendingFindsLooseClouds probes clouds that do not enforce the given boundary exactly.
// The probe must detect each of them.
func TestProbeVendingFindsLooseClouds(t *testing.T) {
	t.Parallel()
	edit := func(pattern, by string) func([]fakecloud.GoogleRule) []fakecloud.GoogleRule {
		return func(rules []fakecloud.GoogleRule) []fakecloud.GoogleRule {
			for i := range rules {
				rules[i].Condition.Expression = regexp.MustCompile(pattern).ReplaceAllString(rules[i].Condition.Expression, by)
			}
			return rules
		}
	}
	roles := func(role string) func([]fakecloud.GoogleRule) []fakecloud.GoogleRule {
		return func(rules []fakecloud.GoogleRule) []fakecloud.GoogleRule {
			if len(rules) == 1 { // writers have two rules
				rules[0].Permissions = []string{"inRole:roles/" + role}
			}
			return rules
		}
	}
	for _, tt := range []struct {
		name   string
		loosen func([]fakecloud.GoogleRule) []fakecloud.GoogleRule
		finds  string
	}{
		{"ignores conditions", func(rules []fakecloud.GoogleRule) []fakecloud.GoogleRule {
			rules[0].Condition = nil
			return rules
		}, "can read in"},
		{"forgets the slash", edit(`(moorage-probe-[0-9a-f]*)/'`, `$1'`), "whose name begins with"},
		{"lists all", edit(`''\)\.startsWith\('wh/[^']*'\)`, `'nothing').startsWith('wh')`), "can list"},
		{"lists without the slash", edit(`\.startsWith\(('wh/[^']*)/'\)`, `.startsWith($1')`), "can list"},
		{"lets writers write metadata", edit(` && !resource\.name\.endsWith\('[^']*'\)`, ""), "write a metadata file"},
		{"lets readers write", roles("storage.objectUser"), "read-only"},
		{"is deaf to case", func(rules []fakecloud.GoogleRule) []fakecloud.GoogleRule {
			expression := &rules[0].Condition.Expression
			*expression += " || " + regexp.MustCompile(`/wh/moorage-probe-[0-9a-f]*`).ReplaceAllStringFunc(*expression,
				func(found string) string { return "/wh/" + strings.ToUpper(strings.TrimPrefix(found, "/wh/")) })
			return rules
		}, "only in case"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cloud := fakecloud.NewGoogleCloud(t)
			cloud.Loosen = tt.loosen
			bucket := cloud.Server.NewBucket(t)
			err := open(t, cloudOptions(t, cloud), "gs://"+bucket+"/wh").ProbeVending(t.Context())
			if !errors.Is(err, storage.ErrUnenforced) || !strings.Contains(err.Error(), tt.finds) {
				t.Errorf("ProbeVending = %v; want ErrUnenforced with %q", err, tt.finds)
			}
			if names := cloud.Server.Names(t, bucket); len(names) > 0 {
				t.Errorf("the probe left %q", names)
			}
		})
	}
}

// TestVendErrors calls services that fail. An error contains the answer, and nothing of the
// request.
func TestVendErrors(t *testing.T) {
	t.Parallel()
	cloud := fakecloud.NewGoogleCloud(t)
	root := "gs://" + cloud.Server.NewBucket(t) + "/wh"
	for name, tt := range map[string]struct {
		change      func(*gcs.Options)
		unavailable bool
		want        string
	}{
		"no STS":           {func(o *gcs.Options) { o.STS = "http://127.0.0.1:1" }, true, "connection refused"},
		"no token service": {func(o *gcs.Options) { o.TokenURL = "http://127.0.0.1:1/token" }, true, "connection refused"},
		"no IAM": {func(o *gcs.Options) {
			o.IAM, o.Impersonate = "http://127.0.0.1:1", fakecloud.GoogleImpersonated
		}, true, "connection refused"},
		"another account": {func(o *gcs.Options) { o.Impersonate = "nobody@test.iam.gserviceaccount.com" }, false,
			"403 Forbidden: Permission 'iam.serviceAccounts.getAccessToken' denied"},
		"another's key": {func(o *gcs.Options) {
			o.Key = strings.Replace(o.Key, fakecloud.GoogleAccount, "nobody@test.iam.gserviceaccount.com", 1)
		}, false, "400 Bad Request: Invalid JWT Signature."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := cloudOptions(t, cloud)
			with.RetryDelayMax = time.Millisecond
			tt.change(&with)
			_, err := open(t, with, root).Vend(t.Context(), storage.Scope{Locations: []string{root + "/t"}})
			if err == nil || errors.Is(err, storage.ErrUnavailable) != tt.unavailable || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Vend = %v; want %q, unavailable %t", err, tt.want, tt.unavailable)
			}
			for _, secret := range []string{"PRIVATE KEY", "ya29.", "eyJ"} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("the error %v holds %q", err, secret)
				}
			}
		})
	}
}

// engine uses a token, with plain requests.
type engine struct{ url, token string }

// path returns the path of an object in the JSON API.
func path(location string) string {
	bucket, name, _ := strings.Cut(strings.TrimPrefix(location, "gs://"), "/")
	return "/storage/v1/b/" + bucket + "/o/" + url.PathEscape(name)
}

func (e engine) send(ctx context.Context, method, path, kind, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, e.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+e.token)
	request.Header.Set("Content-Type", kind)
	return http.DefaultClient.Do(request)
}

// do sends a request, which must succeed.
func (e engine) do(ctx context.Context, method, path, body string) error {
	answer, err := e.send(ctx, method, path, "application/octet-stream", body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return denied(answer)
}

func denied(answer *http.Response) error {
	switch {
	case answer.StatusCode/100 == 2:
		return nil
	case answer.StatusCode == http.StatusForbidden:
		return storagetest.ErrDenied
	}
	return errors.New(answer.Status)
}

func (e engine) Read(ctx context.Context, location string) error {
	return e.do(ctx, http.MethodGet, path(location)+"?alt=media", "")
}

func (e engine) Write(ctx context.Context, location string) error {
	bucket, name, _ := strings.Cut(strings.TrimPrefix(location, "gs://"), "/")
	query := url.Values{"uploadType": {"media"}, "name": {name}}
	return e.do(ctx, http.MethodPost, "/upload/storage/v1/b/"+bucket+"/o?"+query.Encode(), "mine")
}

func (e engine) List(ctx context.Context, prefix string) error {
	bucket, name, _ := strings.Cut(strings.TrimPrefix(prefix, "gs://"), "/")
	return e.do(ctx, http.MethodGet, "/storage/v1/b/"+bucket+"/o?prefix="+url.QueryEscape(name), "")
}

func (e engine) Delete(ctx context.Context, location string) error {
	body := fmt.Sprintf("--b\r\nContent-Type: application/http\r\nContent-ID: <1>\r\n\r\nDELETE %s HTTP/1.1\r\n\r\n\r\n--b--\r\n",
		path(location))
	answer, err := e.send(ctx, http.MethodPost, "/batch/storage/v1", "multipart/mixed; boundary=b", body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := denied(answer); err != nil {
		return err
	}
	_, parameters, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	part, err := multipart.NewReader(answer.Body, parameters["boundary"]).NextPart()
	if err != nil {
		return err
	}
	one, err := http.ReadResponse(bufio.NewReader(part), nil)
	if err != nil {
		return err
	}
	defer one.Body.Close()
	_, _ = io.Copy(io.Discard, one.Body)
	return denied(one)
}
