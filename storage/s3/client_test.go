package s3_test

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
)

// TestClientConfig checks the settings for engines, without any settings from the environment.
func TestClientConfig(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options s3.Options
		env     map[string]string
		want    map[string]string
	}{
		{"amazon", s3.Options{}, nil,
			map[string]string{"client.region": "us-east-1", "s3.region": "us-east-1"}},
		{"region", s3.Options{Region: "eu-central-1"}, map[string]string{"AWS_REGION": "us-west-2"},
			map[string]string{"client.region": "eu-central-1", "s3.region": "eu-central-1"}},
		{"environment", s3.Options{}, map[string]string{"AWS_REGION": "us-west-2", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"},
			map[string]string{"client.region": "us-west-2", "s3.region": "us-west-2", "s3.endpoint": "http://127.0.0.1:1", "s3.path-style-access": "true"}},
		{"endpoint", s3.Options{Endpoint: "http://127.0.0.1:1", AccessKeyID: "a", SecretAccessKey: "secret"}, nil,
			map[string]string{"client.region": "us-east-1", "s3.region": "us-east-1", "s3.endpoint": "http://127.0.0.1:1", "s3.path-style-access": "true"}},
		{"buckets as hosts", s3.Options{Endpoint: "http://127.0.0.1:1", Addressing: s3.AddressHost}, nil,
			map[string]string{"client.region": "us-east-1", "s3.region": "us-east-1", "s3.endpoint": "http://127.0.0.1:1", "s3.path-style-access": "false"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cleanEnvironment(t)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			store := open(t, tt.options, "s3://bucket/w")
			if got := store.ClientConfig(); !maps.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestCredentials reaches the server with keys from each possible source.
func TestCredentials(t *testing.T) {
	server := fakecloud.StartS3(t)
	root := "s3://" + server.NewBucket(t) + "/w"
	files := t.TempDir()
	file := filepath.Join(files, "credentials")
	text := "[lake]\naws_access_key_id = " + fakecloud.S3AccessKeyID + "\naws_secret_access_key = " + fakecloud.S3SecretAccessKey + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		options s3.Options
		env     map[string]string
		fails   string // part of the error; empty for success
	}{
		{"static", s3.Options{AccessKeyID: fakecloud.S3AccessKeyID, SecretAccessKey: fakecloud.S3SecretAccessKey}, nil, ""},
		{"static before environment", s3.Options{AccessKeyID: fakecloud.S3AccessKeyID, SecretAccessKey: fakecloud.S3SecretAccessKey},
			map[string]string{"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other"}, ""},
		{"environment", s3.Options{}, map[string]string{"AWS_ACCESS_KEY_ID": fakecloud.S3AccessKeyID, "AWS_SECRET_ACCESS_KEY": fakecloud.S3SecretAccessKey}, ""},
		{"profile", s3.Options{Profile: "lake"}, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file}, ""},
		{"wrong secret", s3.Options{AccessKeyID: fakecloud.S3AccessKeyID, SecretAccessKey: "wrong"}, nil, "Forbidden"},
		{"none", s3.Options{}, map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}, "no credentials"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cleanEnvironment(t)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			tt.options.Endpoint = server.Endpoint
			err := open(t, tt.options, root).Probe(t.Context())
			if (err == nil) != (tt.fails == "") || !strings.Contains(fmt.Sprint(err), tt.fails) {
				t.Errorf("Probe = %v, want %q", err, tt.fails)
			}
		})
	}
}

// TestOptionsOfAPlace overrides the options of the process with the options of a place.
func TestOptionsOfAPlace(t *testing.T) {
	t.Parallel()
	base := s3.Options{Endpoint: "http://127.0.0.1:1", Region: "base", AccessKeyID: "a", SecretAccessKey: "b"}
	for _, tt := range []struct {
		name  string
		place map[string]string
		want  s3.Options
		fails bool
	}{
		{"vending", map[string]string{
			"s3.sts.role-arn": "arn:aws:iam::123456789012:role/engines", "s3.sts.endpoint": "https://sts.example.com",
			"s3.sts.external-id": "moorage:1", "s3.sts.duration": "2h", "s3.partition": "aws-cn", "s3.dialect": "minio",
			"s3.kms.key-arn": "arn:aws:kms:eu-west-1:123456789012:key/5a-1", "s3.protect-metadata": "false",
		}, withVending(base, s3.Vending{
			RoleARN: "arn:aws:iam::123456789012:role/engines", Endpoint: "https://sts.example.com", ExternalID: "moorage:1",
			Duration: 2 * time.Hour, Partition: "aws-cn", Dialect: s3.DialectMinIO,
			KMSKeyARN: "arn:aws:kms:eu-west-1:123456789012:key/5a-1", OpenMetadata: true,
		}), false},
		{"role with a quote", map[string]string{"s3.sts.role-arn": `arn:aws:iam::1:role/a"`}, base, true},
		{"no role", map[string]string{"s3.sts.role-arn": "engines"}, base, true},
		{"key with a star", map[string]string{"s3.kms.key-arn": "arn:aws:kms:eu-west-1:1:key/*"}, base, true},
		{"short duration", map[string]string{"s3.sts.duration": "14m"}, base, true},
		{"long duration", map[string]string{"s3.sts.duration": "13h"}, base, true},
		{"no duration", map[string]string{"s3.sts.duration": "an hour"}, base, true},
		{"dialect", map[string]string{"s3.dialect": "ceph"}, base, true},
		{"partition", map[string]string{"s3.partition": "aws:*"}, base, true},
		{"STS without a host", map[string]string{"s3.sts.endpoint": "sts"}, base, true},
		{"protection", map[string]string{"s3.protect-metadata": "maybe"}, base, true},
		{"none", nil, base, false},
		{"some", map[string]string{"s3.region": "eu"}, s3.Options{Endpoint: base.Endpoint, Region: "eu", AccessKeyID: "a", SecretAccessKey: "b"}, false},
		{"all", map[string]string{"s3.endpoint": "http://127.0.0.1:2", "s3.region": "eu", "s3.path-style-access": "false", "s3.profile": "lake"},
			s3.Options{Endpoint: "http://127.0.0.1:2", Region: "eu", Addressing: s3.AddressHost, Profile: "lake"}, false},
		{"path style", map[string]string{"s3.path-style-access": "true"},
			s3.Options{Endpoint: base.Endpoint, Region: "base", Addressing: s3.AddressPath, AccessKeyID: "a", SecretAccessKey: "b"}, false},
		{"no truth", map[string]string{"s3.path-style-access": "maybe"}, base, true},
		{"misspelt", map[string]string{"s3.end-point": "x"}, base, true},
		{"a secret", map[string]string{"s3.secret-access-key": "x"}, base, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := base.With(tt.place)
			if (err != nil) != tt.fails || !tt.fails && got != tt.want {
				t.Errorf("%+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func withVending(options s3.Options, vending s3.Vending) s3.Options {
	options.Vending = vending
	return options
}

func TestCheckEndpoint(t *testing.T) {
	t.Parallel()
	for endpoint, good := range map[string]bool{
		"http://127.0.0.1:9000": true, "https://s3.example.com": true, "https://example.com/s3": true,
		"": false, "127.0.0.1:9000": false, "localhost:9000": false, "s3://bucket": false, "http://": false,
		"http://user:secret@host": false, "http://host?x=1": false, "http://a b": false,
	} {
		if err := s3.CheckEndpoint(endpoint); (err == nil) != good {
			t.Errorf("CheckEndpoint(%q) = %v", endpoint, err)
		}
	}
}

// TestMissingProfile names a section that does not exist.
func TestMissingProfile(t *testing.T) {
	cleanEnvironment(t)
	if _, err := s3.Connect(t.Context(), s3.Options{Profile: "nobody"}); err == nil {
		t.Error("Connect with a profile that is not there is no error")
	}
}

// TestKeepsConnections reads the properties of 200 objects at once, twice. The second time needs no
// new connection.
func TestKeepsConnections(t *testing.T) {
	t.Parallel()
	const requests = 200
	var made atomic.Int64
	var arrived sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait()
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	store := open(t, options(server.URL), "s3://bucket/w")
	for range 2 {
		arrived.Add(requests)
		var group errgroup.Group
		for range requests {
			group.Go(func() error {
				_, err := store.Stat(t.Context(), "s3://bucket/w/a")
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if got := made.Load(); got != requests {
		t.Errorf("%d connections, want %d", got, requests)
	}
}

// cleanEnvironment hides the settings that the SDK would read from the machine.
func cleanEnvironment(t *testing.T) {
	t.Helper()
	empty := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": empty, "AWS_SHARED_CREDENTIALS_FILE": empty, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
}

// TestWordsOfProbe: if the bucket of a new warehouse cannot be used, the error names the relevant
// option.
func TestWordsOfProbe(t *testing.T) {
	cleanEnvironment(t)
	var status atomic.Int32
	var region atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if of := region.Load(); *of != "" {
			w.Header().Set("X-Amz-Bucket-Region", *of)
		}
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(server.Close)
	store := open(t, s3.Options{Endpoint: server.URL, Region: "us-east-1", AccessKeyID: "a", SecretAccessKey: "b"}, "s3://lake/w")
	for _, c := range []struct {
		status int
		region string
		want   string
	}{
		{404, "", "there is no bucket called lake"},
		{301, "eu-central-1", "the bucket lake is in the region eu-central-1, and requests go to us-east-1: set the option s3.region=eu-central-1: "},
		{400, "eu-central-1", "set the option s3.region=eu-central-1: "},
		{403, "", "the server refuses requests for the bucket lake, with the key and the region us-east-1: check the key, its rights on the bucket, and the option s3.region: "},
		{403, "us-east-1", "check the key, its rights on the bucket, and the option s3.region: "},
	} {
		status.Store(int32(c.status))
		region.Store(&c.region)
		if err := store.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d, region %q: %v; want %q", c.status, c.region, err, c.want)
		}
	}
	unknown := &net.DNSError{Err: "no such host", Name: "lake.s3.corp", IsNotFound: true}
	hosts := open(t, s3.Options{Endpoint: server.URL, Addressing: s3.AddressHost, AccessKeyID: "a", SecretAccessKey: "b"}, "s3://lake/w")
	if err := hosts.ExplainLook("lake", unknown); !strings.Contains(err.Error(), "set the option s3.path-style-access=true: ") {
		t.Errorf("a host that is unknown: %v", err)
	}
	if err := store.ExplainLook("lake", unknown); strings.Contains(err.Error(), "path-style") {
		t.Errorf("a host that is unknown, with buckets in paths: %v", err)
	}
}
